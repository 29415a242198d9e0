package batch

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
)

// query reads the parameters of a list; those that a list does not have are refused, since
// one that is misspelt would give another page in silence.
type query struct {
	values url.Values
	err    error
}

func queryOf(r *http.Request, known ...string) *query {
	q := &query{}
	if q.values, q.err = url.ParseQuery(r.URL.RawQuery); q.err != nil {
		q.err = sluice.Invalid("", "the query is not well formed")
		return q
	}
	for name, v := range q.values {
		switch {
		case !slices.Contains(known, name):
			e := sluice.Invalid(name, "is no parameter of this list")
			e.Hint = "use " + strings.Join(known, ", ")
			q.fail(e)
		case len(v) > 1:
			q.fail(sluice.Invalid(name, "is given twice: give it once"))
		}
	}
	return q
}

// fail keeps the first error by name, so that the same query has the same answer.
func (q *query) fail(e *sluice.Error) {
	if old, ok := q.err.(*sluice.Error); !ok || e.Param < old.Param {
		q.err = e
	}
}

// limit is the length of a page.
func (q *query) limit(most, otherwise int) int {
	v := q.values.Get("limit")
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		q.fail(sluice.Invalid("limit", "is %q: write a number from 1 to %d", short(v), most))
	}
	return n
}

// id is a cursor.
func (q *query) id(name string) string {
	v := q.values.Get(name)
	if v != "" && !isID(v) {
		q.fail(sluice.Invalid(name, "is no id: write the one that a page ended with"))
	}
	return v
}

// oneOf is a word of a few, or empty.
func (q *query) oneOf(name string, words ...string) string {
	v := q.values.Get(name)
	if v != "" && !slices.Contains(words, v) {
		q.fail(sluice.Invalid(name, "is %q: write %s", short(v), strings.Join(words, " or ")))
	}
	return v
}

// short cuts what a client wrote to what an error may show of it.
func short(s string) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// readJSON reads a small body strictly: names in another case, names that come twice and
// names that are not known are errors.
func readJSON(r io.Reader, into any) error {
	err := json.UnmarshalRead(r, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok { // the connection's
		return e
	}
	e := sluice.Invalid("", "the body is no JSON object as this operation takes it")
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		switch p := dotted(s.JSONPointer); {
		case errors.Is(s.Err, json.ErrUnknownName):
			e = sluice.Invalid(p, "is no field of this operation")
		case p != "":
			e = sluice.Invalid(p, "is a %s, which is not what it must be", s.JSONKind)
		}
	}
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e = sluice.Invalid(dotted(s.JSONPointer), "is no JSON: %v at byte %d", s.Err, s.ByteOffset)
	}
	e.Err = err
	return e
}
