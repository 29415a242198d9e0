package config

import (
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/quota"
)

// section is a struct of the file, for the reference.
type section struct {
	path   string // of one of its kind
	t      reflect.Type
	fields []field
}

// field is one line of the reference.
type field struct{ name, what, def, doc string }

// sections lists the structs of the file, each once, in the order of the file,
// with the defaults that they set.
func sections() []section { return sectionsOf(reflect.New(reflect.TypeFor[Config]()).Elem()) }

// sectionsOf lists those of a file that v stands for.
func sectionsOf(v reflect.Value) []section {
	var out []section
	seen := make(map[reflect.Type]bool)
	for _, t := range append(scenarioLeaves(), reflect.TypeFor[Secret](), reflect.TypeFor[Time](), reflect.TypeFor[UnknownPrice](), reflect.TypeFor[Limits](), reflect.TypeFor[RunLimits]()) {
		seen[t] = true // values, described by themselves
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		t := v.Type()
		if seen[t] {
			return
		}
		switch t.Kind() {
		case reflect.Pointer:
			walk(reflect.New(t.Elem()).Elem(), path)
			return
		case reflect.Slice:
			walk(reflect.New(t.Elem()).Elem(), path+"[]")
			return
		case reflect.Map:
			walk(reflect.New(t.Elem()).Elem(), path+".NAME")
			return
		case reflect.Struct:
		default:
			return
		}
		seen[t] = true
		s := section{path: path, t: t}
		if d, ok := v.Addr().Interface().(defaulter); ok {
			d.setDefaults()
		}
		var below []func()
		for _, f := range reflect.VisibleFields(t) {
			name := fieldName(f)
			if !f.IsExported() || f.Anonymous || name == "" {
				continue
			}
			s.fields = append(s.fields, field{name, describe(f.Type), defaultOf(f, v), f.Tag.Get("jsonschema")})
			below = append(below, func() { walk(v.FieldByIndex(f.Index), strings.TrimPrefix(path+"."+name, ".")) })
		}
		out = append(out, s)
		for _, fn := range below {
			fn()
		}
	}
	walk(v, "")
	return out
}

// write is the section as a table.
func (s *section) write(b *strings.Builder, title string) {
	fmt.Fprintf(b, "\n## %s\n\n| field | value | default | meaning |\n|---|---|---|---|\n", title)
	for _, f := range s.fields {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.name, f.what, f.def, strings.ReplaceAll(f.doc, "|", `\|`))
	}
}

func defaultOf(f reflect.StructField, v reflect.Value) string {
	if !mayBeLeftOut(f) {
		return "required"
	}
	x := v.FieldByIndex(f.Index)
	if x.Type() == reflect.TypeFor[UnknownPrice]() {
		return "`refuse`"
	}
	if x.Kind() == reflect.Struct || x.Kind() == reflect.Pointer || x.IsZero() && !meantZero(f) {
		return ""
	}
	b, err := marshal(x.Interface())
	if err != nil {
		return ""
	}
	return "`" + strings.Trim(string(b), `"`) + "`"
}

// describe names a type for readers of the reference.
func describe(t reflect.Type) string {
	known := map[reflect.Type]string{
		reflect.TypeFor[Duration](): "duration", reflect.TypeFor[Count](): "count", reflect.TypeFor[Bytes](): "bytes",
		reflect.TypeFor[Percent](): "share", reflect.TypeFor[Money](): "money", reflect.TypeFor[Address](): "address",
		reflect.TypeFor[Time](): "moment", reflect.TypeFor[Secret](): "secret", reflect.TypeFor[Limits](): "limits", reflect.TypeFor[RunLimits](): "bounds of a run",
		reflect.TypeFor[Price](): "price", reflect.TypeFor[UnknownPrice](): "unknown price", reflect.TypeFor[sluice.Class](): "class",
		reflect.TypeFor[Fallback](): "name or mapping", reflect.TypeFor[ModelPool](): "name or mapping", reflect.TypeFor[APIKey](): "secret or mapping",
		reflect.TypeFor[LogLevel](): "word", reflect.TypeFor[Headroom](): "share or planner",
	}
	if name, ok := known[t]; ok {
		return name
	}
	if name, ok := scenarioTypes[t]; ok {
		return name
	}
	if _, ok := reflect.New(t).Interface().(worded); ok {
		return "word"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Slice:
		return "list of " + describe(t.Elem())
	case reflect.Map:
		return "mapping of " + describe(t.Elem())
	case reflect.Struct:
		return "mapping"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64, reflect.Float64:
		return "number"
	}
	return "text"
}

// Reference writes the reference of the file, docs/config.md, from the struct
// tags.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("\n## Limits\n\nWhat is left out is not limited. Requests and tokens per second and minute are token buckets with a burst of one window; hour, day and month are windows of the UTC calendar.\n\n| limit | bounds |\n|---|---|\n")
	for _, f := range limitFields {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.name, f.doc)
	}
	b.WriteString("\n## Bounds of a run\n\nA run is the requests with one `sluice-run`. What it has taken does not come back; a run that has been idle for a day, or for its time if that is longer, is forgotten.\n\nOf one tenant at most 65,536 runs and users with limits are told apart, of all tenants 262,144. Further runs share the bounds of one, and further users the limits of one, until others are forgotten: users once nothing of their limits is used.\n\n" +
		"A bound on `output_tokens` or `tokens` is held whole: a request of the run is asked for no more output than the run has left, which `sluice-dropped` tells, and holds all that it may have, so that several at a time do not exceed it together. What is left for less than 16 tokens a choice refuses. Input is held as it is estimated, so that by `input_tokens` and `tokens` a run may exceed its bound by what the input of its running requests is more than that; `spend` of a plan that is `soft` by what it holds too little.\n\n| bound | of |\n|---|---|\n")
	for _, f := range quota.RunBounds {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, f.Doc)
	}
	for _, s := range sections() {
		title := "`" + s.path + "`"
		if s.path == "" {
			title = "The file"
		}
		if s.t == reflect.TypeFor[Price]() {
			title = "Prices: `" + s.path + "`, and every `price` and `ceiling`"
		}
		s.write(&b, title)
		if s.t == reflect.TypeFor[Price]() {
			b.WriteString("\nOr, of a model that is not billed by tokens, one of these, which is the price of one and not of a million:\n\n| field | meaning |\n|---|---|\n")
			for _, f := range reflect.VisibleFields(reflect.TypeFor[UnitPrice]()) {
				fmt.Fprintf(&b, "| `%s` | %s |\n", fieldName(f), f.Tag.Get("jsonschema"))
			}
		}
	}
	b.WriteString("\n## Hosted providers without a file\n\nA gateway that is started without a file offers these where the variable is set:\n\n| variable | provider | models |\n|---|---|---|\n")
	for _, h := range hostedProviders {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", h.variable, h.name, "`"+strings.Join(h.models, "`, `")+"`")
	}
	b.WriteString("\n## Providers that the catalogue knows by their host\n\n| host | catalogue |\n|---|---|\n")
	for _, h := range slices.Sorted(maps.Keys(hosts)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", h, hosts[h])
	}
	return []byte(b.String())
}
