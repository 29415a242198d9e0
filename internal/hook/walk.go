package hook

import (
	"slices"
	"strconv"
)

// text is one value that a row names.
type text struct {
	path   string // as messages[0].content; empty where nobody asked for paths
	rule   *rule
	at     span // in the document: the inside of a string literal, or a whole other value
	str    bool // it is a string
	within bool // it is below a **
	index  index
}

// span is a half-open range of bytes.
type span struct{ start, end int }

// index is what tells apart the texts of one path in a stream, outermost first.
type index struct {
	of [4]int32
	n  int
}

// within reports whether i begins as outer does.
func (i index) within(outer index) bool {
	if outer.n > i.n {
		return false
	}
	for k := range outer.n {
		if i.of[k] != outer.of[k] {
			return false
		}
	}
	return true
}

// document is the texts of one JSON document. It can be used again.
type document struct {
	b       []byte
	i       int
	depth   int
	bad     bool
	indexes []string // members that are an index
	paths   bool     // wanted
	path    []byte
	texts   []text
}

// maxDepth bounds nesting. The gateway's scan allows less of a request.
const maxDepth = 512

// find looks for what the tree names. It reports whether b is one JSON value, as far as
// that shows on the way: no more than is needed never to read beyond it.
func (d *document) find(b []byte, tree *node) bool {
	d.b, d.i, d.depth, d.bad = b, 0, 0, false
	d.texts, d.path = d.texts[:0], d.path[:0]
	d.value(tree, nil)
	d.ws()
	return !d.bad && d.i == len(d.b)
}

func (d *document) ws() byte {
	for d.i < len(d.b) {
		switch c := d.b[d.i]; c {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return c
		}
	}
	return 0
}

func (d *document) fail() {
	d.bad = true
	d.i = len(d.b)
}

// str reads a string literal and returns its inside.
func (d *document) str() span {
	start := d.i + 1
	for i := start; i < len(d.b); i++ {
		switch d.b[i] {
		case '\\':
			i++
		case '"':
			d.i = i + 1
			return span{start, i}
		}
	}
	d.fail()
	return span{}
}

// other reads a number or a word.
func (d *document) other() span {
	start := d.i
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case ',', ']', '}', ' ', '\t', '\n', '\r', ':', '"', '[', '{':
			if d.i == start {
				d.fail()
				return span{}
			}
			return span{start, d.i}
		}
		d.i++
	}
	if d.i == start {
		d.fail()
	}
	return span{start, d.i}
}

// value reads a value; n is nil where nothing below is named, deep the rule of a **
// above, if there is one.
func (d *document) value(n *node, deep *rule) {
	var own *rule
	if n != nil {
		if own = n.rule; n.deep {
			deep, own = n.rule, nil
		}
	}
	first := len(d.texts)
	if n != nil && n.rule != nil && n.rule.treat == asCut {
		start := d.skip()
		if !d.null(start) {
			d.add(n.rule, start, false, false)
		}
		return
	}
	switch c := d.ws(); c {
	case '{':
		d.object(n, deep, first)
	case '[':
		d.array(n, deep)
	case '"':
		at := d.str()
		switch {
		case deep != nil:
			d.add(deep, at, true, true)
		case own != nil:
			d.add(own, at, true, false)
		case n != nil && len(n.other) > 0:
			d.add(undecided, at, true, false)
		}
	default:
		at := d.other()
		switch {
		case d.bad:
		case deep != nil && (c == '-' || digits[c]):
			d.add(deep, at, false, true)
		case own != nil && own.treat == asEnd && !d.null(at):
			d.add(own, at, false, false)
		}
	}
}

// undecided is the rule of a text that counts only beside a certain member, until that is
// known.
var undecided = &rule{flush: -1}

// skip reads a value of any kind.
func (d *document) skip() span {
	d.ws()
	start := d.i
	d.value(nil, nil)
	return span{start, d.i}
}

func (d *document) null(at span) bool { return string(d.b[at.start:at.end]) == "null" }

func (d *document) add(r *rule, at span, str, within bool) {
	if d.bad || r.treat == asEnd && len(r.is) > 0 && !slices.Contains(r.is, string(d.b[at.start:at.end])) {
		return
	}
	t := text{rule: r, at: at, str: str, within: within}
	if d.paths {
		t.path = string(d.path)
	}
	d.texts = append(d.texts, t)
}

// enter goes one level down.
func (d *document) enter() bool {
	d.i++
	if d.depth++; d.depth > maxDepth {
		d.fail()
	}
	return !d.bad
}

func (d *document) object(n *node, deep *rule, first int) {
	if !d.enter() {
		return
	}
	holds := n == nil || len(n.where) == 0
	var own index
	var chosen []*node // by text from first on, of those that may have another rule
	var members [][2][]byte
	for more := d.ws() != '}'; more && !d.bad; {
		if d.ws() != '"' {
			d.fail()
			return
		}
		key := d.str()
		if d.ws() != ':' || d.bad {
			d.fail()
			return
		}
		d.i++
		d.ws()
		name, start := d.b[key.start:key.end], d.i
		outer := len(d.path)
		if d.paths {
			if outer > 0 {
				d.path = append(d.path, '.')
			}
			d.path = append(d.path, name...)
		}
		var below *node
		if n != nil {
			below = n.kid(name)
		}
		had := len(d.texts)
		d.value(below, deep)
		d.path = d.path[:outer]
		value := d.b[start:d.i]
		if n != nil && n.chose {
			members = append(members, [2][]byte{name, value})
			for k := had; k < len(d.texts); k++ {
				chosen = append(chosen, below)
			}
		}
		holds = holds || d.holds(n, name, value)
		own = d.indexed(own, name, value)
		if more = d.ws() == ','; more {
			d.i++
		}
	}
	if d.ws() != '}' {
		d.fail()
		return
	}
	d.i++
	d.depth--
	if !holds {
		d.texts = d.texts[:first]
	}
	for k, below := range chosen {
		if below == nil || first+k >= len(d.texts) {
			continue
		}
		for i := range below.other {
			for _, m := range members {
				if below.other[i].beside.holds(m[0], m[1]) {
					d.texts[first+k].rule = below.other[i].rule
				}
			}
		}
	}
	if len(chosen) > 0 {
		d.texts = slices.DeleteFunc(d.texts, func(t text) bool { return t.rule == undecided })
	}
	for k := first; own.n > 0 && k < len(d.texts); k++ {
		d.texts[k].index = joined(own, d.texts[k].index)
	}
}

func (d *document) holds(n *node, name, value []byte) bool {
	if n == nil {
		return false
	}
	for i := range n.where {
		if n.where[i].holds(name, value) {
			return true
		}
	}
	return false
}

// indexed adds the value of a member that is an index.
func (d *document) indexed(own index, name, value []byte) index {
	for i, want := range d.indexes {
		if want != string(name) {
			continue
		}
		v, err := strconv.ParseInt(string(value[:min(len(value), 20)]), 10, 32)
		if err != nil {
			v = 0
		}
		for own.n <= i && own.n < len(own.of) {
			own.n++
		}
		if i < len(own.of) {
			own.of[i] = int32(v)
		}
	}
	return own
}

func joined(outer, inner index) index {
	for k := 0; k < inner.n && outer.n < len(outer.of); k++ {
		outer.of[outer.n] = inner.of[k]
		outer.n++
	}
	return outer
}

func (d *document) array(n *node, deep *rule) {
	if !d.enter() {
		return
	}
	var below *node
	if n != nil {
		below = n.item
	}
	outer := len(d.path)
	for k, more := 0, d.ws() != ']'; more && !d.bad; k++ {
		if d.paths {
			d.path = append(strconv.AppendInt(append(d.path, '['), int64(k), 10), ']')
		}
		d.value(below, deep)
		d.path = d.path[:outer]
		if more = d.ws() == ','; more {
			d.i++
		}
	}
	if d.ws() != ']' {
		d.fail()
		return
	}
	d.i++
	d.depth--
}
