package dialect

import (
	"sluice/internal/route"
	"sluice/internal/wire"
)

// codec is one dialect: all that is known of it.
type codec struct {
	dialect wire.Dialect
	op      wire.Operation // what is translated
	title   string         // in the documentation
	bounded bool           // its requests must bound their output
	objects bool           // its answers have the arguments of calls as objects, and not as texts
	signs   string         // the mark of what its backends sign of their reasoning; empty if they sign nothing that they take back
	several bool           // it tells several answers to one request

	parseRequest func(body []byte) (*Request, error)
	emitRequest  func(b []byte, r *Request, rep *reporter) []byte
	parseAnswer  func(body []byte, o *StreamOptions) (*Answer, error)
	emitAnswer   func(b []byte, a *Answer) []byte
	newReader    func(*StreamOptions) reader
	newWriter    func(*StreamOptions) writer
	unread       [][]byte // members of a stream's events that differ from one to the next and that newReader's does not read

	// path is where a member of what stands at a place is in a request of its
	// clients; names are the members that features with a typed place stand in.
	path  func(at place, member string) string
	names map[Feature]string

	fields    []field              // what its clients can ask for, in the order of the documentation
	carries   map[Feature]carriage // what becomes of a request to its backends
	elsewhere map[Feature]carriage // of features that it alone has: what becomes of them at backends of dialects that say nothing of them
}

// codecs are the dialects that are translated.
var codecs = []*codec{&openai, &responses, &anthropic, &gemini, &bedrock}

// codecOf is the codec of an operation's dialect, nil if the operation is not
// translated.
func codecOf(op wire.Operation) *codec {
	for _, c := range codecs {
		if c.op == op {
			return c
		}
	}
	return nil
}

// Operation is the operation by which a request of op is made at backends of a
// dialect that lack some surfaces; false if it is not translated into any of theirs.
func Operation(op wire.Operation, to wire.Dialect, lacks route.Needs) (wire.Operation, bool) {
	if codecOf(op) == nil {
		return 0, false
	}
	for _, c := range codecs {
		if c.dialect == to && c.op != op && c.op.Surface()&lacks == 0 {
			return c.op, true
		}
	}
	return 0, false
}

// carriage is what becomes of a feature of the clients of from at backends of c.
func (c *codec) carriage(from *codec, f Feature) carriage {
	if a, ok := c.carries[f]; ok {
		return a
	}
	if a, ok := from.elsewhere[f]; ok {
		return a
	}
	if a, ok := foreign[f]; ok {
		return a
	}
	return foreign[FeatureUnknown]
}

// reporter collects what a target does not carry.
type reporter struct {
	from, to    *codec
	model       string // the backend's name of its model; may be empty
	thoughtless bool   // which is known not to reason
	report      Report
	unlisted    int    // losses that it does not list
	last        string // the path of the one of them that was noted last
}

// tell notes what becomes of a feature that stands at path.
func (r *reporter) tell(f Feature, path string) Fate {
	c := r.to.carriage(r.from, f)
	if c.fate != Kept {
		r.lose(Loss{Path: path, Fate: c.fate, Why: c.why, Fix: c.fix})
	}
	return c.fate
}

// at notes what becomes of a feature of what stands at a place.
func (r *reporter) at(f Feature, p place) Fate { return r.tell(f, r.from.path(p, r.from.names[f])) }

// mark notes what becomes of a cache mark.
func (r *reporter) mark(p place) Fate {
	if _, ok := r.from.names[FeatureMark]; ok {
		return r.at(FeatureMark, p)
	}
	return r.at(FeatureCache, p)
}

// rest tells of all asks that the target has not taken.
func (r *reporter) rest(asks []Ask) {
	for _, a := range asks {
		r.tell(a.Feature, a.Path)
	}
}
