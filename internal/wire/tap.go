package wire

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"sluice"
	"sluice/internal/estimate"
	"sluice/internal/route"
)

// TapOptions says how a Tap treats the answer.
type TapOptions struct {
	StripUsage      bool          // the client did not ask for usage: splice it out (OpenAI streams)
	StripContinuous bool          // the client asked for usage at the end but the gateway asked for it in every event: splice it out of events that have choices
	Stored          bool          // the answer is kept by its id (Head.Store)
	Input           sluice.Tokens // the input estimate, for an answer that reports no input at all
	Ceiling         sluice.Tokens // largest credible figure, such as the context length; 0 takes DefaultCeiling
}

// DefaultCeiling is the largest token count of one attempt that is believed.
const DefaultCeiling sluice.Tokens = 1 << 27

// Step is what one event of an answer means.
type Step struct {
	Out      []byte        // bytes to forward, valid until the next call of Event and of Events.Next; nil when the event is dropped
	Content  bool          // it carries content, or ends the answer: forwarding it commits. Otherwise it is preamble or a comment
	Terminal bool          // the dialect's terminal marker: nothing after it is forwarded
	Err      *sluice.Error // the upstream failed inside the stream; Out is nil
}

// outputKind sorts what a model produces. Each is counted as a text of its own.
type outputKind uint8

const (
	textOutput outputKind = iota
	reasoningOutput
	argumentOutput
	numOutputKinds
)

// Tap watches one answer on its way to the client: it decides what is forwarded,
// reads usage and counts what is delivered. It is not safe for concurrent use.
type Tap struct {
	op Operation
	o  TapOptions
	by *reading

	counters   [numOutputKinds]estimate.Counter
	lastKind   outputKind
	lastChoice int64

	usage     sluice.Usage // merged, as reported
	cost      reportedCost
	reported  bool // some usage was
	fresh     bool // the event that is read now told more output than was told before
	covered   sluice.Tokens
	final     bool // the last usage is that of the whole answer
	anthropic anthropicFigures

	begun, ended choiceSet // choices that were seen, that have a finish reason
	done         bool      // the terminal marker was seen
	failed       bool
	mended       int64
	toolCalls    int64
	sequence     int64  // number of the last event, where they have one; -1 before the first
	id           string // of the answer, where it may be named later
	unkept       bool   // the provider does not keep it
	searches     int64  // that the provider ran, where its usage does not tell
	blocked      bool   // the prompt was, and there is no answer
	finish       string
	model        string
	tier         string
	out          []byte
	state        []route.State
	shape        shape
	seen         noted
}

// choiceSet is a set of choice indexes; those beyond 127 share one place.
type choiceSet [2]uint64

func (s *choiceSet) add(i int64) {
	i = min(max(i, 0), 127)
	s[i/64] |= 1 << (i % 64)
}

func (s *choiceSet) has(i int64) bool { return s[i/64]&(1<<(i%64)) != 0 }

// NewTap returns a Tap for one attempt's answer.
func NewTap(op Operation, o TapOptions) *Tap {
	if o.Ceiling <= 0 {
		o.Ceiling = DefaultCeiling
	}
	return &Tap{op: op, o: o, by: readingOf(op), sequence: -1}
}

// Event takes the next event of a streamed answer. An event that the end of the
// stream cut short counts if its data is whole, and is completed.
func (t *Tap) Event(e Event) Step {
	if t.done || t.failed {
		return Step{}
	}
	if len(e.Data) == 0 { // a comment, a blank line or an event that clients do not dispatch
		if err := t.bareError(e); err != nil {
			t.failed = true
			return Step{Err: err}
		}
		if e.Unterminated {
			return Step{}
		}
		return Step{Out: e.Raw}
	}
	s, ok := t.again(&e)
	if ok {
		return s
	}
	t.seen = noted{calls: t.toolCalls}
	mended := t.mended
	s = t.by.event(t, e)
	if t.fresh { // an event's own text is in its figures, whichever comes first in it
		t.fresh = false
		t.cover(t.Delivered())
	}
	switch {
	case s.Err != nil && e.Unterminated && s.Err.Reason == sluice.UpstreamMalformed:
		return Step{} // half an event: End tells that the stream was cut
	case s.Err != nil:
		t.failed = true
		s.Out = nil
	case s.Out != nil:
		s.Out = t.mend(s.Out)
		if e.Unterminated {
			s.Out = ended(s.Out)
		}
		t.done = s.Terminal
	}
	if t.mended == mended {
		t.remember(&e, &s)
	}
	return s
}

// mend replaces bytes that are no UTF-8, which client libraries would stumble over.
func (t *Tap) mend(out []byte) []byte {
	if utf8.Valid(out) {
		return out
	}
	t.mended++
	return bytes.ToValidUTF8(out, []byte("\ufffd"))
}

// ended gives an event the blank line that it lacks.
func ended(out []byte) []byte {
	end := "\n\n"
	if bytes.HasSuffix(out, []byte("\n")) || bytes.HasSuffix(out, []byte("\r")) {
		end = "\n"
	}
	return append(bytes.Clone(out), end...)
}

// End says what the end of the stream means: cause is what Events.Next returned,
// io.EOF for a clean end. A Step without Err is success; its Out, if any, is the
// terminal marker that the upstream left out.
func (t *Tap) End(cause error) Step {
	switch {
	case t.done:
		return Step{Terminal: true}
	case t.failed:
		return Step{Err: &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamError, Msg: "the upstream failed"}}
	case errors.Is(cause, ErrFrame):
		t.failed = true
		return Step{Err: malformed(cause)}
	case errors.Is(cause, ErrEventTooLarge):
		t.failed = true
		return Step{Err: &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamTooLarge, Msg: "the upstream sent an event beyond the bound", Err: cause}}
	}
	clean := cause == nil || errors.Is(cause, io.EOF) || errors.Is(cause, ErrUnterminated)
	if clean && t.by.whole(t) {
		t.done = true
		return Step{Out: t.by.marker, Content: true, Terminal: true}
	}
	t.failed = true
	return Step{Err: &sluice.Error{
		Kind: sluice.KindUpstream, Reason: sluice.UpstreamTruncated,
		Msg: "the upstream ended the stream before the answer was complete", Err: cause,
	}}
}

// malformed is the error for an event or body that its dialect does not allow.
func malformed(err error) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamMalformed, Msg: "the upstream sent something that is not of its dialect", Err: err}
}

// Body takes a whole answer that was not streamed and returns what to forward:
// its bytes as they are. The error is a *sluice.Error when the answer is
// malformed or carries an error object in spite of its status.
func (t *Tap) Body(b []byte) ([]byte, error) {
	if t.asideRaw(b) {
		t.done = true
		return b, nil
	}
	l := lexer{b: b, lax: true}
	var err *sluice.Error
	if t.op.Counts() {
		l.skip() // its only figure is for the client
	} else {
		err = t.by.body(t, &l)
	}
	l.end()
	switch {
	case l.err != nil:
		err = malformed(l.err)
	case err == nil:
		t.done, t.final = true, t.reported
		return b, nil
	default:
		t.final = t.reported // what it says that it took in spite of its error
	}
	t.failed = true
	return nil, err
}

// count adds the inside of a JSON string to what is delivered and reports whether
// it is anything at all.
func (t *Tap) count(kind outputKind, choice int64, text []byte, escaped bool) bool {
	if len(text) == 0 {
		return false
	}
	t.seen.texts++
	t.seen.kind, t.seen.choice = kind, choice
	if kind != t.lastKind || choice != t.lastChoice {
		t.counters[t.lastKind].Break()
		t.lastKind, t.lastChoice = kind, choice
	}
	if escaped {
		t.counters[kind].WriteJSON(text)
	} else {
		t.counters[kind].Write(text)
	}
	return true
}

// delta reads a string of output; another kind of value is skipped.
func (t *Tap) delta(l *lexer, kind outputKind, choice int64) bool {
	if l.ws() != '"' {
		l.skip()
		return false
	}
	in, escaped := l.str()
	if in.len() > 0 {
		t.seen.text = in
	}
	return t.count(kind, choice, l.b[in.start:in.end], escaped)
}

// report takes cumulative figures: later ones overwrite, but no sum ever falls.
func (t *Tap) report(u sluice.Usage) {
	t.seen.reports++
	was := t.usage
	if t.reported && u.InputTotal() < was.InputTotal() {
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.AudioInput = was.Input, was.CacheRead, was.CacheWrite, was.CacheWrite1h, was.AudioInput
		u.Anomalous = true
	}
	if t.reported && u.OutputTotal() < was.OutputTotal() {
		u.Output, u.Reasoning, u.AudioOutput = was.Output, was.Reasoning, was.AudioOutput
		u.Anomalous = true
	}
	u.Anomalous = u.Anomalous || was.Anomalous
	t.fresh = u.OutputTotal() > was.OutputTotal() // some repeat the same, or zero, until the end
	t.usage, t.reported = u, true
}

// cover notes that the last figures are those of what was delivered so far.
func (t *Tap) cover(delivered sluice.Tokens) {
	if !tooLow(t.usage.OutputTotal(), delivered) {
		t.covered = delivered
	}
}

// tooLow reports whether a figure cannot be that of the output that was seen.
func tooLow(told, delivered sluice.Tokens) bool { return delivered > 64 && told < delivered/4 }

// Usage is the provider's final figures in disjoint classes; false if it has told
// none. Figures that cannot be are clamped, or replaced by what was counted, and
// Anomalous is set.
func (t *Tap) Usage() (sluice.Usage, bool) {
	if !t.reported || !t.final {
		return sluice.Usage{}, false
	}
	u := t.told()
	u.Source = sluice.UsageReported
	if u.InputTotal() == 0 && u.Units == 0 && t.o.Input > 0 {
		u.Input, u.Anomalous, u.Source = t.o.Input, true, sluice.UsageCounted
	}
	switch delivered := t.Delivered(); {
	case u.OutputTotal() == 0 && (delivered > 0 || u.Anomalous && t.op.Generates()): // what is unknown is never zero
		u.Reasoning = t.Reasoned()
		u.Output = max(delivered, 1) - u.Reasoning
		u.Anomalous, u.Source = true, sluice.UsageCounted
	case tooLow(u.OutputTotal(), delivered):
		u.Anomalous = true
	}
	return u, true
}

// Partial is the provider's cumulative figures at a cut (Source is UsageCounted);
// false if it has told none. They cover what was delivered up to Covered.
func (t *Tap) Partial() (sluice.Usage, bool) {
	u := t.told()
	u.Source = sluice.UsageCounted
	return u, t.reported
}

// Covered is what Delivered was when the provider's figures last grew: what was
// seen since is not in them. It is 0 where they came before any output and stand
// for its first tokens, if for any.
func (t *Tap) Covered() sluice.Tokens { return t.covered }

// told is the merged figures with what the answer says beside them.
func (t *Tap) told() sluice.Usage {
	u := t.usage
	u.ToolCalls = t.toolCalls
	u.WebSearches = max(u.WebSearches, t.searches)
	if u.ServiceTier == "" {
		u.ServiceTier = tier(t.tier)
	}
	return u
}

// Delivered is the class-based count of all output that was seen: text, reasoning,
// refusals and tool arguments.
func (t *Tap) Delivered() sluice.Tokens {
	var n sluice.Tokens
	for i := range t.counters {
		n += t.counters[i].Tokens()
	}
	return n
}

// Output is how much output there has been: what the provider last told of it and
// the count of what was seen since, or the count alone where it has told nothing.
func (t *Tap) Output() sluice.Tokens {
	n := t.Delivered()
	if t.reported {
		n += t.usage.OutputTotal() - t.covered
	}
	return n
}

// Reasoned is the part of Delivered that is reasoning.
func (t *Tap) Reasoned() sluice.Tokens { return t.counters[reasoningOutput].Tokens() }

// ToolCalls is how many tool calls the answer has begun.
func (t *Tap) ToolCalls() int64 { return t.toolCalls }

// Finished reports whether the answer is complete: its terminal marker has been
// seen, or in the OpenAI dialect a finish reason for every choice.
func (t *Tap) Finished() bool {
	return t.done || t.by.unmarked && t.by.whole(t)
}

// Mended is how many events had bytes that are no UTF-8, which were replaced.
func (t *Tap) Mended() int64 { return t.mended }

// ServedModel is the model that the provider says it ran, empty if it has not said.
func (t *Tap) ServedModel() string { return t.model }

// FinishReason is the provider's word for why the answer ended, the last one if
// there are several choices; empty if it has given none.
func (t *Tap) FinishReason() string { return t.finish }
