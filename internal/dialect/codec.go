package dialect

import (
	"fmt"

	"sluice/internal/wire"
)

// codec is one dialect: all that is known of it.
type codec struct {
	dialect wire.Dialect
	op      wire.Operation // what is translated

	parseRequest func(body []byte) (*Request, error)
	emitRequest  func(b []byte, r *Request, rep *reporter) []byte
	parseAnswer  func(body []byte) (*Answer, error)
	emitAnswer   func(b []byte, a *Answer) []byte
	newReader    func() reader
	newWriter    func(*StreamOptions) writer

	fields  []field              // what its clients can ask for, in the order of the documentation
	carries map[Feature]carriage // what becomes of a request to its backends
}

// codecs are the dialects that are translated.
var codecs = []*codec{&openai, &anthropic}

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

// Operation is the operation by which a request of op is made in another dialect;
// false if it is not translated.
func Operation(op wire.Operation, to wire.Dialect) (wire.Operation, bool) {
	if codecOf(op) == nil {
		return 0, false
	}
	for _, c := range codecs {
		if c.dialect == to && c.op != op {
			return c.op, true
		}
	}
	return 0, false
}

// path is where something stands in a client's request. All dialects so far have
// messages[i].content[j].
func (p place) path(member string) string {
	at := "system"
	if p.message >= 0 {
		at = fmt.Sprintf("messages[%d].content", p.message)
	}
	if p.part >= 0 {
		at += fmt.Sprintf("[%d]", p.part)
	}
	if p.inner >= 0 {
		at += fmt.Sprintf(".content[%d]", p.inner)
	}
	if member != "" {
		at += "." + member
	}
	return at
}

// reporter collects what a target does not carry.
type reporter struct {
	to     *codec
	report Report
}

// tell notes what becomes of a feature that stands at path.
func (r *reporter) tell(f Feature, path string) Fate {
	c, ok := r.to.carries[f]
	if !ok {
		c = r.to.carries[FeatureUnknown]
	}
	if c.fate != Kept {
		r.report.add(Loss{Path: path, Fate: c.fate, Why: c.why, Fix: c.fix})
	}
	return c.fate
}

// rest tells of all asks that the target has not taken.
func (r *reporter) rest(asks []Ask) {
	for _, a := range asks {
		r.tell(a.Feature, a.Path)
	}
}
