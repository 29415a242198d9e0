package config

import (
	"github.com/goccy/go-yaml/ast"
)

// flatten copies a tree with its aliases and merged keys written out, so that it
// stands by itself. Scalars stay the nodes they are, with their places.
func (d *decoder) flatten(n node, path string) node {
	d.nodes++
	d.depth++
	defer func() { d.depth-- }()
	if d.nodes > maxNodes || d.depth > maxDepth {
		d.tooLarge(n, path)
		return nil
	}
	switch t := d.unwrap(n, path).(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out := &ast.MappingNode{}
		for _, e := range d.entries(t, path) {
			if v := d.flatten(e.value, join(path, e.key)); v != nil {
				out.Values = append(out.Values, &ast.MappingValueNode{Start: e.from.Start, Key: e.from.Key, Value: v})
			}
		}
		return out
	case *ast.SequenceNode:
		out := *t
		out.Values = nil
		for i, item := range t.Values {
			if v := d.flatten(item, index(path, i)); v != nil {
				out.Values = append(out.Values, v)
			}
		}
		return &out
	default:
		return t
	}
}

// patched is base with a patch applied: mappings are joined, null takes a key
// away, lists whose items have a name (backends, and contracts by their tenant)
// are joined by it, and anything else is replaced. Both must be flat; neither
// changes.
func patched(base, patch node) node {
	switch p := patch.(type) {
	case *ast.MappingNode:
		b, ok := base.(*ast.MappingNode)
		if !ok {
			b = &ast.MappingNode{}
		}
		return patchedMapping(b, p)
	case *ast.SequenceNode:
		if b, ok := base.(*ast.SequenceNode); ok {
			if key := namedBy(b, p); key != "" {
				return patchedList(b, p, key)
			}
		}
	}
	return patch
}

func patchedMapping(base, patch *ast.MappingNode) node {
	out := &ast.MappingNode{}
	changes := make(map[string]*ast.MappingValueNode, len(patch.Values))
	for _, v := range patch.Values {
		changes[rawText(v.Key)] = v
	}
	keep := func(v *ast.MappingValueNode, value node) {
		if _, null := value.(*ast.NullNode); !null {
			out.Values = append(out.Values, &ast.MappingValueNode{Start: v.Start, Key: v.Key, Value: value})
		}
	}
	for _, v := range base.Values {
		change, ok := changes[rawText(v.Key)]
		if !ok {
			out.Values = append(out.Values, v)
			continue
		}
		delete(changes, rawText(v.Key))
		keep(change, patched(v.Value, change.Value))
	}
	for _, v := range patch.Values {
		if _, left := changes[rawText(v.Key)]; left {
			keep(v, patched(nil, v.Value)) // nulls within are dropped
		}
	}
	return out
}

// listNames are the keys by which the items of a list may be told apart.
var listNames = []string{"name", "tenant"}

// namedBy is the key by which all items of both lists are told apart, empty if
// there is none.
func namedBy(lists ...*ast.SequenceNode) string {
	for _, key := range listNames {
		all := true
		for _, l := range lists {
			for _, item := range l.Values {
				all = all && itemName(item, key) != ""
			}
		}
		if all {
			return key
		}
	}
	return ""
}

func itemName(n node, key string) string {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return ""
	}
	for _, v := range m.Values {
		if rawText(v.Key) == key {
			return rawText(v.Value)
		}
	}
	return ""
}

func patchedList(base, patch *ast.SequenceNode, key string) node {
	out := *base
	out.Values = append([]ast.Node(nil), base.Values...)
	for _, item := range patch.Values {
		found := false
		for i, have := range base.Values {
			if itemName(have, key) == itemName(item, key) {
				out.Values[i], found = patched(have, item), true
			}
		}
		if !found {
			out.Values = append(out.Values, item)
		}
	}
	return &out
}

// places finds where each value of a flat tree stands, by its path below path.
func places(n node, path string, into map[string]Pos) {
	switch t := n.(type) {
	case *ast.MappingNode:
		for _, v := range t.Values {
			at := join(path, rawText(v.Key))
			into[at] = nodePos(v.Key)
			switch v.Value.(type) {
			case *ast.MappingNode, *ast.SequenceNode, *ast.NullNode:
			default:
				into[at] = nodePos(v.Value)
			}
			places(v.Value, at, into)
		}
	case *ast.SequenceNode:
		for i, item := range t.Values {
			into[index(path, i)] = nodePos(item)
			places(item, index(path, i), into)
		}
	}
}
