package hook

import (
	"strconv"
	"time"
)

// maxDecisions bounds what is recorded of one request.
const maxDecisions = 16

// Decision is what a hook decided at a stage, as it is recorded: never a text. Calls
// with the same result are one Decision.
type Decision struct {
	Hook    string
	Stage   Stage
	Verdict Verdict
	Why     string // the hook's word, or the cause of a failure; empty if it gave none
	Calls   int64
	Took    time.Duration // of all calls
	Counts  Counts        // of the built-in redaction
}

// Decisions is what has been decided so far.
func (r *Run) Decisions() []Decision {
	if r == nil {
		return nil
	}
	return r.log
}

// note records a verdict; nil if there is no room for it.
func (r *Run) note(h *entry, at Stage, v Verdict, why string, took time.Duration) *Decision {
	for i := range r.log {
		if d := &r.log[i]; d.Hook == h.spec.Name && d.Stage == at && d.Verdict == v && d.Why == why {
			d.Calls++
			d.Took += took
			return d
		}
	}
	if len(r.log) == maxDecisions {
		if v != Refuse && v != Failed {
			return nil
		}
		r.log = r.log[:maxDecisions-1] // what ended the request is worth more than another
	}
	r.log = append(r.log, Decision{Hook: h.spec.Name, Stage: at, Verdict: v, Why: why, Calls: 1, Took: took})
	return &r.log[len(r.log)-1]
}

// AppendJSON appends the decisions as the value of a record's member.
func (r *Run) AppendJSON(b []byte) []byte {
	b = append(b, '[')
	for i := range r.log {
		d := &r.log[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"hook":"`...), d.Hook...) // names and words need no escape
		b = append(append(b, `","stage":"`...), d.Stage.String()...)
		b = append(append(b, `","verdict":"`...), d.Verdict.String()...)
		if d.Why != "" {
			b = append(append(b, `","why":"`...), d.Why...)
		}
		b = append(b, `","calls":`...)
		b = strconv.AppendInt(b, d.Calls, 10)
		if d.Took > 0 {
			b = append(b, `,"took_us":`...)
			b = strconv.AppendInt(b, d.Took.Microseconds(), 10)
		}
		b = appendCounts(b, &d.Counts)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendCounts(b []byte, c *Counts) []byte {
	first := true
	for k, n := range c {
		if n == 0 {
			continue
		}
		if first {
			b = append(b, `,"found":{`...)
		} else {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), Kind(k).String()...), `":`...)
		b = strconv.AppendInt(b, n, 10)
	}
	if !first {
		b = append(b, '}')
	}
	return b
}
