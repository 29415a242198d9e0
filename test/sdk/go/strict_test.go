package sdk

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// fits reports why a value that was decoded from JSON is none of a client's type; nil
// if it is one. It is strict where the clients' decoders are lenient: a member that the
// type does not have, one that it needs and that is missing, a constant of another
// value, a kind of JSON that would be left out, and a union none of whose variants fits
// are all errors. What the type leaves open (any) is open.
func fits(t reflect.Type, v any, path string) error {
	if t.Kind() == reflect.Pointer {
		if v == nil {
			return nil
		}
		return fits(t.Elem(), v, path)
	}
	if inner, ok := optional(t); ok {
		if v == nil {
			return nil
		}
		return fits(inner, v, path)
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	if variants := variantsOf(t); len(variants) > 0 {
		return fitsOne(variants, v, path)
	}
	switch t.Kind() {
	case reflect.Interface:
		return nil
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return kind[string](v, path)
		}
		return fitsStruct(t, v, path)
	case reflect.Map:
		o, ok := v.(map[string]any)
		if !ok {
			return kind[map[string]any](v, path)
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if err := fits(t.Elem(), o[name], path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			text, ok := v.(string)
			if _, err := base64.StdEncoding.DecodeString(text); err != nil || !ok {
				return fmt.Errorf("%s is not in base 64: %v", path, v)
			}
			return nil
		}
		return fitsList(t, v, path)
	case reflect.String:
		return kind[string](v, path)
	case reflect.Bool:
		return kind[bool](v, path)
	default:
		n, ok := v.(json.Number)
		if !ok {
			return kind[json.Number](v, path)
		}
		if err := json.Unmarshal([]byte(n), reflect.New(t).Interface()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}

func kind[T any](v any, path string) error {
	if _, ok := v.(T); !ok {
		return fmt.Errorf("%s is %T, not %v", path, v, reflect.TypeFor[T]())
	}
	return nil
}

func fitsList(t reflect.Type, v any, path string) error {
	list, ok := v.([]any)
	if !ok {
		return kind[[]any](v, path)
	}
	for i, x := range list {
		if err := fits(t.Elem(), x, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// fitsOne holds a value to several types, of which one has to fit. What is told is the
// error of those that its constants name, such as its type, and of these of the one
// that comes deepest.
func fitsOne(variants []reflect.Type, v any, path string) error {
	var deepest error
	named := slices.DeleteFunc(slices.Clone(variants), func(t reflect.Type) bool { return !named(t, v) })
	for _, t := range named {
		err := fits(t, v, path)
		if err == nil {
			return nil
		}
		if deepest == nil || strings.Count(err.Error(), ".") > strings.Count(deepest.Error(), ".") {
			deepest = err
		}
	}
	if deepest == nil {
		return fmt.Errorf("%s is none of the %d variants: %v", path, len(variants), v)
	}
	return deepest
}

// named reports whether a value has every constant of a type that it has a member for.
func named(t reflect.Type, v any) bool {
	o, ok := v.(map[string]any)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !ok || t.Kind() != reflect.Struct {
		return true
	}
	fields, _ := fieldsOf(t)
	for name, f := range fields {
		want, constant := f.Tag.Lookup("default")
		if got, there := o[name]; constant && there && fmt.Sprint(got) != want {
			return false
		}
	}
	return true
}

// fitsStruct holds an object to a struct by its tags.
func fitsStruct(t reflect.Type, v any, path string) error {
	o, ok := v.(map[string]any)
	if !ok {
		return kind[map[string]any](v, path)
	}
	fields, open := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		f, ok := fields[name]
		switch {
		case !ok && !open:
			return fmt.Errorf("%s.%s is not known to %v", path, name, t)
		case !ok:
			continue
		case o[name] == nil && nullable(t, f):
			continue
		}
		if err := fits(f.Type, o[name], path+"."+name); err != nil {
			return err
		}
		if want, constant := f.Tag.Lookup("default"); constant && fmt.Sprint(o[name]) != want {
			return fmt.Errorf("%s.%s is %v, always %q in %v", path, name, o[name], want, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, constant := fields[name].Tag.Lookup("default")
		needed := constant || strings.Contains(fields[name].Tag.Get("api"), "required") && !generous(t)
		if _, there := o[name]; !there && needed && !slices.Contains(unneeded[t.String()], name) {
			return fmt.Errorf("%s lacks %s, which %v needs", path, name, t)
		}
	}
	return nil
}

// nullable reports a field that may be null: one that says so, a map that has to be
// there though there may be nothing to say, and all in answers, whose types tell null
// from what is not there.
func nullable(t reflect.Type, f reflect.StructField) bool {
	api := f.Tag.Get("api")
	return isAnswer(t) || strings.Contains(api, "nullable") || f.Type.Kind() == reflect.Interface ||
		strings.Contains(api, "required") && f.Type.Kind() == reflect.Map
}

func isAnswer(t reflect.Type) bool {
	_, ok := t.FieldByName("JSON")
	return ok
}

// generous reports the types of Anthropic's answers, which say that they need what its
// service leaves out where there is nothing to say.
func generous(t reflect.Type) bool {
	return isAnswer(t) && strings.Contains(t.PkgPath(), "anthropic")
}

// fieldsOf are the members that a struct has by its tags, and whether it takes others.
func fieldsOf(t reflect.Type) (fields map[string]reflect.StructField, open bool) {
	fields = map[string]reflect.StructField{}
	for f := range t.Fields() {
		if strings.Contains(f.Tag.Get("api"), "extrafields") {
			open = true
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct, strings.Contains(options, "inline") && f.Type.Kind() == reflect.Struct:
			inner, _ := fieldsOf(f.Type)
			maps.Copy(fields, inner)
		case name != "" && f.IsExported():
			fields[name] = f
		}
	}
	return fields, open
}

// optional is the type inside of a param.Opt.
func optional(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.Name(), "Opt[") {
		return nil, false
	}
	f, ok := t.FieldByName("Value")
	return f.Type, ok
}

// variantsOf are the types that a union may have, nil for what is no union: in
// parameters they are fields by the name of Of…, in answers what methods by the name
// of As… return.
func variantsOf(t reflect.Type) (out []reflect.Type) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if strings.HasPrefix(f.Name, "Of") && strings.HasPrefix(f.Tag.Get("json"), ",") && strings.Contains(f.Tag.Get("json"), "inline") {
			out = append(out, f.Type)
		}
	}
	if !isAnswer(t) {
		return out
	}
	out = nil
	for m := range t.Methods() {
		if strings.HasPrefix(m.Name, "As") && m.Name != "AsAny" && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			out = append(out, m.Type.Out(0))
		}
	}
	return out
}
