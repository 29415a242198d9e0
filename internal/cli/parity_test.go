package cli

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/internal/admin"
	"sluice/internal/config"
)

// jsonFields are the names of a struct's members in JSON, those of embedded ones too,
// with the values of v.
func jsonFields(v reflect.Value) map[string]reflect.Value {
	out := make(map[string]reflect.Value)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(out, jsonFields(v.Field(i)))
		case f.IsExported() && name != "" && name != "-":
			out[name] = v.Field(i)
		}
	}
	return out
}

// TestWhatTheFileSaysCanBeStored holds what plans, tenants, projects and keys of the
// file can say to what those of the API can. A field that only the file has needs a
// reason here.
func TestWhatTheFileSaysCanBeStored(t *testing.T) {
	for _, c := range []struct {
		name      string
		file, api any
		differ    map[string]string // of the file's names: how the API has it, or why it does not
	}{
		{"plan", config.Plan{}, admin.PlanFields{}, nil},
		{"tenant", config.Tenant{}, admin.TenantFields{}, map[string]string{
			"projects": "they have operations of their own",
			"keys":     "they have operations of their own",
		}},
		{"project", config.Project{}, admin.ProjectFields{}, nil},
		{"key", config.Key{}, admin.KeyFields{}, map[string]string{
			"secret":    "the API mints it",
			"previous":  "the API rotates, with an overlap",
			"project":   "it is named when the key is created, and stays",
			"not_after": "is expires, which takes a duration too",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, api := jsonFields(reflect.ValueOf(c.file)), jsonFields(reflect.ValueOf(c.api))
			if len(file) < 5 || len(api) < 5 {
				t.Fatalf("%d fields in the file and %d in the API: the test does not see them any more", len(file), len(api))
			}
			for name := range file {
				_, has := api[name]
				if _, named := c.differ[name]; has == named {
					t.Errorf("%s: in the API %v, excepted %v: give it to the API, the command line and the OpenAPI document, or name the reason here", name, has, named)
				}
			}
			for name := range c.differ {
				if _, has := file[name]; !has {
					t.Errorf("%s is excepted, and the file has it no more", name)
				}
			}
		})
	}
}

// apiFlags is a command that sends fields.
type apiFlags struct {
	flags func() (flags any, sent func() any)
	none  []string // that have no flag
}

// TestWhatTheAPITakesHasAFlag sets every flag of a command, one at a time, and sees that
// together they set every field of what it sends.
func TestWhatTheAPITakesHasAFlag(t *testing.T) {
	for name, c := range map[string]apiFlags{
		"plan": {func() (any, func() any) {
			f := &planFields{}
			return f, func() any { return f.fields() }
		}, nil},
		"tenant": {func() (any, func() any) {
			f := &tenantFields{}
			return f, func() any { return f.fields() }
		}, nil},
		"project": {func() (any, func() any) {
			f := &projectFields{}
			return f, func() any { return f.fields() }
		}, nil},
		"key": {func() (any, func() any) {
			f := &keyFields{}
			return f, func() any { return f.fields() }
		}, []string{"disabled"}}, // of update alone, which adds it
	} {
		t.Run(name, func(t *testing.T) {
			var flagged []string
			flags, _ := c.flags()
			for i := range leaves(reflect.ValueOf(flags).Elem()) {
				flags, sent := c.flags()
				leaf := leaves(reflect.ValueOf(flags).Elem())[i]
				fill(leaf)
				var set []string
				for name, v := range jsonFields(reflect.ValueOf(sent())) {
					if !v.IsZero() {
						set = append(set, name)
					}
				}
				if len(set) != 1 {
					t.Errorf("flag %d of the command sets %v, want one field", i, set)
				}
				flagged = append(flagged, set...)
			}
			for name := range jsonFields(reflect.ValueOf(c.sent())) {
				if slices.Contains(flagged, name) == slices.Contains(c.none, name) {
					t.Errorf("%s: no flag sets it, or it is excepted though one does", name)
				}
			}
		})
	}
}

// sent is what a command sends that was given nothing.
func (c apiFlags) sent() any { _, sent := c.flags(); return sent() }

// leaves are the fields of a struct of flags, those of embedded ones too.
func leaves(v reflect.Value) (out []reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			out = append(out, leaves(v.Field(i))...)
			continue
		}
		out = append(out, v.Field(i))
	}
	return out
}

// fill gives a flag a value that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("fast:concurrency"), reflect.ValueOf("1"))
	}
}
