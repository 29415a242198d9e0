package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"sluice"
)

// node is a value of the file.
type node = ast.Node

// Bounds on what aliases can blow a file up to.
const (
	maxNodes    = 200_000
	maxDepth    = 32
	maxProblems = 200 // told at once; the rest follows when they are mended
)

// decoder fills structs from the syntax tree and goes on after a mistake, so
// that all of them are told at once. (The YAML library's own decoder stops at
// the first.)
type decoder struct {
	file     string
	env      Env
	readFile func(path string, limit int64) ([]byte, error)
	anchors  map[string]node
	problems Problems
	pos      map[string]Pos    // of each value, by path
	broken   map[string]bool   // paths that have been reported already
	values   map[string]string // what references expanded to: value to ${NAME}, so that no message shows it
	nodes    int
	depth    int
	stopped  bool

	standing []standing // secrets that stand in the file
	marks    Marks      // of those that have been taken out of a text that was kept
	anyMark  bool       // a mark stands for any secret: the configuration is looked at, not put in force
	changes  *Changes   // what was changed since the file was read; nil if nothing was

	// rehearsal reads no secret, neither of the environment nor of a file: see
	// Config.rehearse.
	rehearsal bool
}

// nodeDecoder is a type that reads a node in its own way.
type nodeDecoder interface {
	decodeNode(d *decoder, n node, path string)
}

// defaulter is a type with defaults for what is left out.
type defaulter interface{ setDefaults() }

// shorthand is a mapping that one line can stand for.
type shorthand interface {
	encoding.TextUnmarshaler
	Shorthand()
}

// worded is an enum of strings.
type worded interface{ words() []string }

// join appends a key to a path; keys that are not plain names are quoted.
func join(path, key string) string {
	if strings.ContainsAny(key, ".[]\" ") || key == "" {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) report(pos Pos, path, fix, cause string, args ...any) {
	d.broken[path] = true
	if len(d.problems) == maxProblems {
		return
	}
	d.problems = append(d.problems, Problem{File: d.file, Pos: pos, Path: d.conceal(path), Fix: d.conceal(fix), Cause: d.conceal(fmt.Sprintf(cause, args...))})
}

// conceal puts references back where their values would show.
func (d *decoder) conceal(s string) string {
	for v, ref := range d.values {
		quoted := strconv.Quote(v)
		s = strings.ReplaceAll(s, quoted[1:len(quoted)-1], ref)
		s = strings.ReplaceAll(s, v, ref)
	}
	return s
}

func (d *decoder) reportError(n node, path string, err error) {
	fix := ""
	switch e := err.(type) {
	case *valueError:
		fix = e.fix
	case *sluice.Error: // of a core's own type
		d.report(nodePos(n), path, e.Hint, "%s", e.Msg)
		return
	}
	d.report(nodePos(n), path, fix, "%s", err)
}

func (d *decoder) posOf(path string) Pos { return d.pos[path] }

// mark remembers where an entry's value stands.
func (d *decoder) mark(path string, e entry) {
	p := nodePos(e.value)
	switch d.unwrap(e.value, path).(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode, nil:
		p = e.keyPos // a section is best found by its name
	}
	d.pos[path] = p
}

// into decodes a node into what v points to.
func (d *decoder) into(n node, v any, path string) { d.value(n, reflect.ValueOf(v).Elem(), path) }

func (d *decoder) value(n node, v reflect.Value, path string) {
	d.nodes++
	d.depth++
	defer func() { d.depth-- }()
	if d.nodes > maxNodes || d.depth > maxDepth {
		d.tooLarge(n, path)
		return
	}
	n = d.unwrap(n, path)
	if n == nil {
		return
	}
	if v.Kind() == reflect.Pointer {
		if _, null := n.(*ast.NullNode); null {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			if def, ok := v.Interface().(defaulter); ok {
				def.setDefaults()
			}
		}
		d.value(n, v.Elem(), path)
		return
	}
	if _, null := n.(*ast.NullNode); null {
		return // as if it were left out
	}
	switch t := v.Addr().Interface().(type) {
	case nodeDecoder:
		t.decodeNode(d, n, path)
		return
	case *Secret:
		if s, ok := d.secret(n, path); ok {
			*t = s
		}
		return
	case worded:
		d.word(n, v, path, t.words())
		return
	case shorthand:
		if _, ok := d.asMapping(n); ok {
			d.kind(n, v, path)
			return
		}
		d.line(n, t, path)
		return
	case encoding.TextUnmarshaler:
		d.line(n, t, path)
		return
	}
	d.kind(n, v, path)
}

// line decodes a value that is written as one text.
func (d *decoder) line(n node, t encoding.TextUnmarshaler, path string) {
	text, ok := d.scalar(n, path)
	if !ok {
		return
	}
	if err := t.UnmarshalText([]byte(text)); err != nil {
		d.reportError(n, path, explain(t, text, err))
	}
}

// tooLarge reports once that aliases blow the file up, and ends the decoding.
func (d *decoder) tooLarge(n node, path string) {
	if !d.stopped {
		d.stopped = true
		d.report(nodePos(n), path, "write it out with fewer aliases", "the configuration is too large or too deep once its aliases are resolved")
	}
	d.nodes = maxNodes + 1
}

func (d *decoder) word(n node, v reflect.Value, path string, words []string) {
	text, ok := d.scalar(n, path)
	if !ok {
		return
	}
	if slices.Contains(words, text) {
		v.SetString(text)
		return
	}
	d.report(nodePos(n), path, suggest(text, words), "%q is not one of %s", text, strings.Join(words, ", "))
}

func (d *decoder) kind(n node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		text, ok := d.scalar(n, path)
		if !ok {
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString(text)
		case reflect.Bool:
			if text != "true" && text != "false" {
				d.report(nodePos(n), path, "write true or false", "%q is neither true nor false", text)
				return
			}
			v.SetBool(text == "true")
		case reflect.Int64:
			i, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				d.report(nodePos(n), path, "write a whole number", "%q is not a whole number", text)
				return
			}
			v.SetInt(i)
		case reflect.Float64:
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || f != f || f > 1e300 || f < -1e300 {
				d.report(nodePos(n), path, "write a number", "%q is not a number", text)
				return
			}
			v.SetFloat(f)
		}
	}
}

func (d *decoder) structure(n node, v reflect.Value, path string) {
	for _, e := range d.entries(n, path) {
		at := join(path, e.key)
		field, ok := fieldByName(v.Type(), e.key)
		if !ok {
			d.report(e.keyPos, at, suggest(e.key, fieldNames(v.Type())), "unknown field")
			continue
		}
		if _, null := d.unwrap(e.value, at).(*ast.NullNode); null {
			continue // as if it were left out
		}
		d.mark(at, e)
		d.value(e.value, v.FieldByIndex(field.Index), at)
	}
	if !d.broken[path] {
		d.requireFields(n, v.Type(), path)
	}
}

func (d *decoder) mapping(n node, v reflect.Value, path string) {
	out := reflect.MakeMap(v.Type())
	for _, e := range d.entries(n, path) {
		at := join(path, e.key)
		d.mark(at, e)
		d.pos[at] = e.keyPos
		item := reflect.New(v.Type().Elem())
		if !d.optional(e.value, item.Type().Elem(), at) {
			continue
		}
		target := item.Elem()
		if target.Kind() == reflect.Pointer {
			target.Set(reflect.New(target.Type().Elem()))
			target = target.Elem()
		}
		if def, ok := target.Addr().Interface().(defaulter); ok {
			def.setDefaults()
		}
		d.value(e.value, target, at)
		out.SetMapIndex(reflect.ValueOf(e.key).Convert(v.Type().Key()), item.Elem())
	}
	v.Set(out)
}

// optional reports whether an item of a mapping is there, or may be empty
// because each of its fields may be left out. If neither, it reports.
func (d *decoder) optional(n node, t reflect.Type, path string) bool {
	if _, null := n.(*ast.NullNode); !null {
		return true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, own := reflect.New(t).Interface().(nodeDecoder)
	if t.Kind() == reflect.Struct && !own && t != reflect.TypeFor[Secret]() {
		d.requireFields(n, t, path)
		return true
	}
	d.report(nodePos(n), path, "give it a value, or leave it out", "the value is empty")
	return false
}

func (d *decoder) sequence(n node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.report(nodePos(n), path, "write a list: [a, b], or one item per line after a hyphen", "a list is needed here")
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		at := index(path, i)
		d.pos[at] = nodePos(item)
		x := reflect.New(v.Type().Elem())
		if def, ok := x.Interface().(defaulter); ok {
			def.setDefaults()
		}
		d.value(item, x.Elem(), at)
		out = reflect.Append(out, x.Elem())
	}
	v.Set(out)
}

// mayBeLeftOut reports whether a field is optional: its tag says omitempty, or
// zero where the zero value means something and is written out.
func mayBeLeftOut(f reflect.StructField) bool {
	return strings.Contains(f.Tag.Get("json"), ",") || meantZero(f)
}

func meantZero(f reflect.StructField) bool { return f.Tag.Get("zero") != "" }

// requireFields reports the fields that must be there and are not.
func (d *decoder) requireFields(n node, t reflect.Type, path string) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous || fieldName(f) == "" || mayBeLeftOut(f) {
			continue
		}
		at := join(path, fieldName(f))
		if _, given := d.pos[at]; !given && !d.broken[at] {
			pos := d.pos[path]
			if pos.Line == 0 {
				pos = nodePos(n)
			}
			d.report(pos, at, "add "+fieldName(f)+": "+f.Tag.Get("jsonschema"), "is missing")
		}
	}
}

// fieldByName finds the field that a key of the file means.
func fieldByName(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !f.Anonymous && fieldName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNames(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		if name := fieldName(f); f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			out = append(out, name)
		}
	}
	return out
}
