package config

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// entry is one key of a mapping.
type entry struct {
	key    string
	keyPos Pos
	value  node
	from   *ast.MappingValueNode
}

// asMapping finds the entries of a mapping as they are written.
func (d *decoder) asMapping(n node) ([]*ast.MappingValueNode, bool) {
	switch t := d.unwrap(n, "").(type) {
	case *ast.MappingNode:
		return t.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{t}, true
	}
	return nil, false
}

// entries lists a mapping's keys with those of merged mappings (<<) that it
// does not set itself.
func (d *decoder) entries(n node, path string) []entry {
	values, ok := d.asMapping(n)
	if d.nodes += len(values); d.nodes > maxNodes {
		d.tooLarge(n, path)
		return nil
	}
	if !ok {
		d.report(nodePos(n), path, "write key: value pairs, indented below", "a mapping is needed here")
		return nil
	}
	var out, merged []entry
	seen := make(map[string]Pos)
	for _, mv := range values {
		if _, isMerge := mv.Key.(*ast.MergeKeyNode); isMerge {
			if d.depth++; d.depth <= maxDepth {
				merged = append(merged, d.entries(mv.Value, path)...)
			}
			d.depth--
			continue
		}
		pos := nodePos(mv.Key)
		key, ok := d.scalar(mv.Key, path)
		if !ok {
			continue
		}
		if first, dup := seen[key]; dup {
			d.report(pos, join(path, key), fmt.Sprintf("remove one; the first stands in line %d", first.Line), "the key stands twice")
			continue
		}
		seen[key] = pos
		out = append(out, entry{key, pos, mv.Value, mv})
	}
	for _, e := range merged {
		if _, own := seen[e.key]; !own {
			seen[e.key] = e.keyPos
			out = append(out, e)
		}
	}
	return out
}

// unwrap follows anchors and aliases to the value; nil, reported, if there is
// none.
func (d *decoder) unwrap(n node, path string) node {
	for range maxDepth {
		switch t := n.(type) {
		case *ast.AnchorNode:
			n = t.Value
		case *ast.AliasNode:
			target, ok := d.anchors[t.Value.GetToken().Value]
			if !ok {
				d.report(nodePos(t), path, "define it first, as &"+t.Value.GetToken().Value, "the alias has no anchor")
				return nil
			}
			n = target
		case *ast.TagNode:
			d.report(nodePos(t), path, "remove the tag", "YAML tags are not used here")
			return nil
		default:
			return n
		}
	}
	d.report(nodePos(n), path, "write it out", "an alias refers to itself")
	return nil
}

// rawText is a scalar as it is written, references not expanded.
func rawText(n node) string {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value
	case *ast.LiteralNode:
		return t.Value.Value
	case *ast.MappingKeyNode:
		return rawText(t.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	}
	return ""
}

// scalar is the text of a scalar, references expanded.
func (d *decoder) scalar(n node, path string) (string, bool) {
	n = d.unwrap(n, path)
	switch n.(type) {
	case nil:
		return "", false
	case *ast.StringNode, *ast.LiteralNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode, *ast.MappingKeyNode:
		return d.expand(rawText(n), nodePos(n), path)
	case *ast.NullNode:
		d.report(nodePos(n), path, "give it a value, or leave the field out", "the value is empty")
		return "", false
	}
	d.report(nodePos(n), path, "write one value", "a single value is needed here, not a list or mapping")
	return "", false
}

// nodePos is where a value begins.
func nodePos(n node) Pos {
	switch t := n.(type) {
	case nil:
		return Pos{1, 1}
	case *ast.MappingNode:
		if t.Start != nil && t.Start.Type != token.MappingValueType {
			break // the brace of a flow mapping
		}
		if len(t.Values) > 0 {
			return nodePos(t.Values[0])
		}
	case *ast.MappingValueNode:
		return nodePos(t.Key)
	case *ast.LiteralNode:
		if t.Start != nil && t.Start.Position != nil {
			return Pos{t.Start.Position.Line, t.Start.Position.Column}
		}
	}
	tok := n.GetToken()
	if tok == nil || tok.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(tok.Position.Line, 1), max(tok.Position.Column, 1)}
}
