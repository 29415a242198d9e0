package dialect

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// closed is a schema whose objects all say that they have no other properties than those
// that they name, which providers want of a schema that an answer is held to. Where one
// says nothing of it, that says no more than what holding to a schema means; one that says
// otherwise stays as it is, and is open. optional reports properties that need not be
// there, and odd what OpenAI does not take in a strict schema.
func closed(v jsontext.Value) (out jsontext.Value, is schemaTraits) {
	is.root(v)
	return is.close(v, 0), is
}

// schemaTraits is what tells whether a schema can be strict.
type schemaTraits struct{ open, optional, odd bool }

// strict reports a schema that OpenAI takes as a strict one.
func (s *schemaTraits) strict() bool { return !s.open && !s.optional && !s.odd }

// oddities are the words that OpenAI does not take in a strict schema.
var oddities = []string{
	"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames",
	"unevaluatedProperties", "unevaluatedItems", "contains", "minProperties", "maxProperties", "uniqueItems",
}

// deepest bounds how deep a schema is looked into; what is below is open.
const deepest = 64

// root notes what a strict schema may not be at its root: anything but an object.
func (s *schemaTraits) root(v jsontext.Value) {
	for _, m := range members(v) {
		if m.name == "anyOf" || m.name == "type" && word(m.value) != "object" {
			s.odd = true
		}
	}
}

func (s *schemaTraits) close(v jsontext.Value, depth int) jsontext.Value {
	if len(v) == 0 || v[0] != '{' {
		return v
	}
	if depth > deepest {
		s.open = true
		return v
	}
	b := []byte{'{'}
	var properties, required []string
	object, said := false, false
	for _, m := range members(v) {
		switch m.name {
		case "type":
			object = object || strings.Contains(string(m.value), `"object"`)
		case "properties", "$defs", "definitions":
			for _, p := range members(m.value) {
				if m.name == "properties" {
					properties = append(properties, p.name)
				}
			}
			object = object || m.name == "properties"
			m.value = s.each(m.value, depth)
		case "required":
			_ = json.Unmarshal(m.value, &required, lenient) // what is no list requires nothing
		case "additionalProperties":
			said = true
			s.open = s.open || !is(m.value, "false")
		case "items":
			m.value = s.close(m.value, depth+1)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			m.value = s.list(m.value, depth)
		}
		s.odd = s.odd || slices.Contains(oddities, m.name)
		b = append(append(text(sep(b), m.name), ':'), m.value...)
	}
	needed := make(map[string]bool, len(required))
	for _, name := range required {
		needed[name] = true
	}
	for _, name := range properties {
		s.optional = s.optional || !needed[name]
	}
	if object && !said {
		b = append(key(b, "additionalProperties"), "false"...)
	}
	return append(b, '}')
}

// each closes the schemas of an object that has one under each name.
func (s *schemaTraits) each(v jsontext.Value, depth int) jsontext.Value {
	b := []byte{'{'}
	for _, m := range members(v) {
		b = append(text(sep(b), m.name), ':')
		b = append(b, s.close(m.value, depth+1)...)
	}
	return append(b, '}')
}

func (s *schemaTraits) list(v jsontext.Value, depth int) jsontext.Value {
	var list []jsontext.Value
	if json.Unmarshal(v, &list, lenient) != nil {
		return v
	}
	b := []byte{'['}
	for _, x := range list {
		b = append(sep(b), s.close(x, depth+1)...)
	}
	return append(b, ']')
}

// held is the schema of an answer or of a tool's arguments that is to be held to it, for
// OpenAI's dialects: closed and strict, or, where it cannot be strict, as it is. A client
// of those dialects has said itself what it wants.
func (r *reporter) held(v jsontext.Value, path string) (schema jsontext.Value, strict bool) {
	if r.from.dialect == r.to.dialect || v == nil {
		return v, true
	}
	shut, traits := closed(v)
	if !traits.strict() {
		r.tell(FeatureNotStrict, path)
		return v, false
	}
	return shut, true
}

// heldAlways is the same for dialects that hold all answers to their schema and need it
// closed.
func heldAlways(v jsontext.Value) jsontext.Value {
	shut, _ := closed(v)
	return shut
}
