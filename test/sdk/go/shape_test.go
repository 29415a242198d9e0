package sdk

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/traits"
)

// fitsShape reports why a value that was decoded from JSON has not the shape that the
// service's model gives it; nil if it has. The AWS client's types have no names of JSON
// in them, and its decoders pass over what they do not know: the schemas that it is
// driven by are exact. A structure has no other members than they name; a union has
// exactly one. They do not tell which members are required.
func fitsShape(s *smithy.Schema, v any, path string) error {
	switch s.Type() {
	case smithy.ShapeTypeDocument:
		return nil
	case smithy.ShapeTypeStructure, smithy.ShapeTypeUnion:
		return fitsMembers(s, v, path)
	case smithy.ShapeTypeList:
		list, ok := v.([]any)
		if !ok {
			return kind[[]any](v, path)
		}
		for i, x := range list {
			if err := fitsShape(s.ListMember(), x, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case smithy.ShapeTypeMap:
		o, ok := v.(map[string]any)
		if !ok {
			return kind[map[string]any](v, path)
		}
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if err := fitsShape(s.MapValue(), o[name], path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case smithy.ShapeTypeString, smithy.ShapeTypeEnum:
		return kind[string](v, path)
	case smithy.ShapeTypeBlob:
		text, _ := v.(string)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil || text == "" {
			return fmt.Errorf("%s is not in base 64: %v", path, v)
		}
		return nil
	case smithy.ShapeTypeBoolean:
		return kind[bool](v, path)
	case smithy.ShapeTypeInteger, smithy.ShapeTypeLong:
		n, _ := v.(json.Number)
		if _, err := n.Int64(); err != nil {
			return fmt.Errorf("%s is no whole number: %v", path, v)
		}
		return nil
	case smithy.ShapeTypeFloat, smithy.ShapeTypeDouble:
		return kind[json.Number](v, path)
	}
	return fmt.Errorf("%s has the shape %v, of which nothing is known here", path, s.TargetID())
}

func fitsMembers(s *smithy.Schema, v any, path string) error {
	o, ok := v.(map[string]any)
	if !ok {
		return kind[map[string]any](v, path)
	}
	members := s.Members()
	for _, name := range slices.Sorted(maps.Keys(o)) {
		m, ok := members[name]
		if !ok || elsewhere(m) {
			return fmt.Errorf("%s.%s is not known to %v", path, name, s.TargetID())
		}
		if err := fitsShape(m, o[name], path+"."+name); err != nil {
			return err
		}
	}
	if s.Type() == smithy.ShapeTypeUnion && len(o) != 1 {
		return fmt.Errorf("%s has %d members of the union %v", path, len(o), s.TargetID())
	}
	return nil
}

// elsewhere reports a member that is not in the body but in the path.
func elsewhere(s *smithy.Schema) bool {
	_, label := smithy.SchemaTrait[*traits.HTTPLabel](s)
	return label
}
