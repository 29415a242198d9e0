package hook

import "strings"

// treat is what may be done with a value that a path names.
type treat uint8

const (
	asText  treat = iota // a text
	asJSON               // a text that is a JSON document itself, as the arguments of a tool call are
	asFixed              // a text that is shown and never changed, since a signature covers it
	asCut                // what repeats texts in another form: null in its place where texts are redacted
	asEnd                // not null: the texts of a stream that have its index end here
)

// node is a place in a document, of which some values below are named by paths.
type node struct {
	kids  []kid
	item  *node   // any item of an array
	rule  *rule   // of the value itself
	deep  bool    // every string and number below, by rule
	where []check // of which one must hold of an object for what was found within to count
	other []other // rules in the place of rule, by what stands beside the value
	chose bool    // a member of the object may have another rule
}

// other is a rule for values beside which a member has a certain value.
type other struct {
	beside check
	rule   *rule
}

type kid struct {
	name string
	*node
}

// check asks for a member with a certain value.
type check struct{ member, is string }

// rule is what a path says.
type rule struct {
	treat treat
	is    []string // asEnd: the values that count; none is any but null
	empty bool     // asCut: it is a list, and stays one
	flush int      // of a stream's text: how it is written by itself, an index of Row.Flush; -1 for none
}

func (n *node) kid(name []byte) *node {
	for i := range n.kids {
		if n.kids[i].name == string(name) {
			return n.kids[i].node
		}
	}
	return nil
}

// compile adds a path: members separated by stops, [] for each item of an array, ** for
// every string and number below, {member=value} for a condition on the object it stands
// behind, ?member=value for one on what stands beside the value. It panics on a path that is not one: they are written here alone.
func (n *node) compile(path string, r *rule) {
	at, above := n, n
	path, beside, conditional := strings.Cut(path, "?")
	for part := range strings.SplitSeq(path, ".") {
		above = at
		part, cond, has := strings.Cut(part, "{")
		name := strings.TrimRight(part, "[]")
		switch {
		case part == "**":
			at.deep = true
		case name != "":
			next := at.kid([]byte(name))
			if next == nil {
				next = &node{}
				at.kids = append(at.kids, kid{name, next})
			}
			at = next
		case part != "[]":
			panic("hook: path " + path)
		}
		for range strings.Count(part, "[]") {
			if at.item == nil {
				at.item = &node{}
			}
			at = at.item
		}
		if has {
			member, is, ok := strings.Cut(strings.TrimSuffix(cond, "}"), "=")
			if !ok {
				panic("hook: path " + path)
			}
			at.where = append(at.where, check{member, is})
		}
	}
	switch {
	case !conditional && r.treat == asEnd && at.rule != nil && at.rule.treat == asEnd:
		at.rule.is = append(at.rule.is, r.is...)
		return
	case !conditional:
		at.rule = r
		return
	}
	member, is, ok := strings.Cut(beside, "=")
	if !ok {
		panic("hook: path " + path)
	}
	at.other = append(at.other, other{check{member, is}, r})
	above.chose = true
}

// cut is what stands in the place of a value that is cut.
func (r *rule) cut() []byte {
	if r.empty {
		return []byte("[]")
	}
	return []byte("null")
}

// holds reports whether a member is what is asked for: a string, or another value as it is
// written.
func (c *check) holds(name, value []byte) bool {
	if c.member != string(name) {
		return false
	}
	return string(value) == c.is || len(value) == len(c.is)+2 && string(value[1:len(value)-1]) == c.is
}
