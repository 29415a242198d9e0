package dialect

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openAPISchema puts a schema of Gemini's own kind, a subset of OpenAPI 3.0, into JSON
// Schema: types are in capitals there, nullable is a member, whole numbers may be
// texts, and names may be in snake case. What has no such form stays as it is.
func openAPISchema(v jsontext.Value) jsontext.Value {
	var in jsontext.Value
	if json.Unmarshal(v, &in, lenient) != nil || len(in) == 0 || in[0] != '{' {
		return v
	}
	b := []byte{'{'}
	all, kind := members(in), ""
	nullable := slices.ContainsFunc(all, func(m member) bool { return m.name == "nullable" && is(m.value, "true") })
	var order []string
	for _, m := range all {
		if camel(m.name) == "propertyOrdering" {
			_ = json.Unmarshal(m.value, &order, lenient) // what is no list orders nothing
		}
	}
	for _, m := range all {
		name := camel(m.name)
		switch name {
		case "nullable":
		case "enum", "anyOf":
			v := m.value
			if name == "anyOf" {
				v = schemaList(v)
			}
			b = append(key(b, name), orNull(v, name, nullable)...)
		case "type":
			kind = strings.ToLower(word(m.value))
		case "propertyOrdering", "example":
		case "format":
			if !is(m.value, `"enum"`) { // Gemini's word for what enum says by itself
				b = append(key(b, name), m.value...)
			}
		case "items", "additionalProperties":
			b = append(key(b, name), openAPISchema(m.value)...)
		case "properties":
			b = append(key(b, name), schemas(m.value, order)...)
		case "oneOf", "allOf", "prefixItems":
			b = append(key(b, name), schemaList(m.value)...)
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			b = append(key(b, name), strings.Trim(string(m.value), `"`)...)
		default:
			b = append(append(text(sep(b), m.name), ':'), m.value...)
		}
	}
	switch {
	case kind == "" || kind == "type_unspecified":
	case nullable:
		b = append(text(append(key(b, "type"), '['), kind), `,"null"]`...)
	default:
		b = pair(b, "type", kind)
	}
	return append(b, '}')
}

// orNull is a list of values, or of schemas, that allows null where its schema does: its
// type alone would say so in vain.
func orNull(list jsontext.Value, name string, nullable bool) jsontext.Value {
	none := "null"
	if name == "anyOf" {
		none = `{"type":"null"}`
	}
	var values []jsontext.Value
	if !nullable || json.Unmarshal(list, &values, lenient) != nil || slices.ContainsFunc(values, func(v jsontext.Value) bool { return is(v, none) }) {
		return list
	}
	b := []byte{'['}
	for _, v := range values {
		b = append(sep(b), v...)
	}
	return append(append(sep(b), none...), ']')
}

// schemas are the schemas of properties, whose names are the client's own, in the order
// that is wanted of them: backends write them as they stand. Those that it does not name
// come last.
func schemas(v jsontext.Value, order []string) []byte {
	b := []byte{'{'}
	all := members(v)
	at := make(map[string]int, len(order))
	for i, name := range order {
		at[name] = i - len(order)
	}
	slices.SortStableFunc(all, func(x, y member) int { return at[x.name] - at[y.name] })
	for _, m := range all {
		b = append(text(sep(b), m.name), ':')
		b = append(b, openAPISchema(m.value)...)
	}
	return append(b, '}')
}

func schemaList(v jsontext.Value) []byte {
	var list []jsontext.Value
	if json.Unmarshal(v, &list, lenient) != nil {
		return v
	}
	b := []byte{'['}
	for _, s := range list {
		b = append(sep(b), openAPISchema(s)...)
	}
	return append(b, ']')
}

// word is the text of a value that is a string, empty for another.
func word(v jsontext.Value) string {
	var s string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return ""
	}
	return s
}

// camel is a member's name as Gemini's JSON has it, whichever of its two spellings it
// is in.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	var b strings.Builder
	up := false
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' && b.Len() > 0:
			up = true
		case up && 'a' <= c && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
			up = false
		default:
			b.WriteByte(c)
			up = false
		}
	}
	return b.String()
}

// spoken are the members whose insides are the client's own, where names are not
// Gemini's.
var spoken = map[string]bool{
	"args": true, "response": true, "parameters": true, "parametersJsonSchema": true, "responseSchema": true,
	"responseJsonSchema": true, "labels": true, "partMetadata": true,
}

// spelt is a body in which every name of Gemini's is spelt as its JSON has it.
func spelt(v jsontext.Value) jsontext.Value {
	switch {
	case len(v) == 0:
	case v[0] == '{':
		b := []byte{'{'}
		for _, m := range members(v) {
			name := camel(m.name)
			if !spoken[name] {
				m.value = spelt(m.value)
			}
			b = append(text(sep(b), name), ':')
			b = append(b, m.value...)
		}
		return append(b, '}')
	case v[0] == '[':
		var list []jsontext.Value
		if json.Unmarshal(v, &list, lenient) != nil {
			break
		}
		b := []byte{'['}
		for _, e := range list {
			b = append(sep(b), spelt(e)...)
		}
		return append(b, ']')
	}
	return v
}
