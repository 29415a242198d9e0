package fakellm

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"sluice"
)

// stretch is a piece of an answer, with the count of tokens of one choice at
// which it is complete.
type stretch struct {
	upTo     int64
	thought  bool
	text     string
	call     int // index of a tool call that this belongs to; -1 for none
	begins   bool
	fragment string
}

// plan lays out the answer in order. It also fixes how many tokens there are.
func (t *turn) plan() []stretch {
	a := t.a
	var out []stretch
	thought := min(a.b.Reasoning, mostTokens)
	if a.thinking && thought == 0 {
		thought = 24
	}
	if len(a.calls) > 0 {
		a.choices = 1
		return t.planCalls(thought)
	}
	if a.json != "" {
		return t.planJSON()
	}
	t.total, t.cut = a.output()
	if a.b.Reasoning > 0 && a.b.Tokens < 0 { // the model's own length is its visible part
		t.total += thought
		if a.max > 0 && t.total > a.max {
			t.total, t.cut = a.max, true
		}
	}
	thought = min(thought, t.total)
	a.b.Reasoning = thought
	w := t.s.words.writer(a.b.Script, a.seed, a.model.Ratio)
	if a.b.BigEvent > 0 && t.total > thought {
		out = append(out, stretch{upTo: thought + 1, text: string(filler(a.b.BigEvent)), call: -1})
	}
	for at, n := int64(0), uint64(0); at < t.total; n++ {
		limit := t.total
		if at < thought {
			limit = thought
		}
		at = min(at+t.group(n), limit)
		if text := w.upTo(sluice.Tokens(at)); text != "" {
			out = append(out, stretch{upTo: at, thought: at <= thought, text: text, call: -1})
		}
	}
	return out
}

func (t *turn) planCalls(thought int64) []stretch {
	a := t.a
	var out []stretch
	w := t.s.words.writer("latin", a.seed, a.model.Ratio)
	if thought > 0 {
		out = append(out, stretch{upTo: thought, thought: true, text: w.upTo(sluice.Tokens(thought)), call: -1})
	}
	a.b.Reasoning = thought
	at := thought
	for i, c := range a.calls {
		at += int64(scale(t.s.count.text(c.name), a.model.Ratio)) + 4
		out = append(out, stretch{upTo: at, call: i, begins: true})
		own := int64(scale(t.s.count.text(c.args), a.model.Ratio))
		const fragment = 7 // bytes; whole runes, for arguments are ASCII
		pieces := (len(c.args) + fragment - 1) / fragment
		for k := range pieces {
			end := min((k+1)*fragment, len(c.args))
			out = append(out, stretch{upTo: at + own*int64(k+1)/int64(pieces), call: i, fragment: c.args[k*fragment : end]})
		}
		at += own
	}
	t.total = at
	return out
}

// group is how many tokens the n-th event carries.
func (t *turn) group(n uint64) int64 {
	most := t.a.model.MaxEvent
	if most <= 1 || t.a.b.ByteByByte && most <= 1 {
		return 1
	}
	switch r := mix(t.a.seed^n*0x9e37) % 10; {
	case r < 6:
		return 1
	case r < 8:
		return min(2, most)
	case r < 9:
		return min(3, most)
	}
	return most
}

func filler(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "lorem ipsum "[i%12]
	}
	return b
}

func (t *turn) tally(done int64) tally {
	n := sluice.Tokens(t.a.choices)
	return tally{
		input: t.a.input, cached: t.a.cached, written: t.a.written, output: sluice.Tokens(done) * n,
		reasoning: sluice.Tokens(min(done, t.a.b.Reasoning)) * n,
	}
}

func (t *turn) reason() string {
	switch {
	case len(t.a.calls) > 0:
		return "tool_calls"
	case t.cut:
		return "length"
	}
	return "stop"
}

// generate answers with text or tool calls.
func (t *turn) generate() error {
	plan := t.plan()
	if err := t.submit(); err != nil {
		return err
	}
	t.load()
	s := newSink(t.w, &t.a.b)
	var v voice = newOpenAI(s, t.a, t.id)
	switch {
	case t.surface == surfaceResponses:
		v = newResponses(s, t.a, t.id)
	case t.surface.anthropic():
		v = newAnthropic(s, t.a, t.id, t.requestID())
	case t.surface.gemini():
		v = newGemini(s, t.a, t.id)
	}
	if t.surface == surfaceConverse {
		v = newBedrock(t.r.Context(), s, t.a)
	}
	if !t.a.stream {
		return t.body(v, s, plan)
	}
	if t.surface == surfaceConverse {
		t.commit("application/vnd.amazon.eventstream")
		return t.stream(v, s, plan)
	}
	t.commit("text/event-stream; charset=utf-8")
	return t.stream(v, s, plan)
}

// commit sends the status and the headers of a 200.
func (t *turn) commit(contentType string) {
	h := t.w.Header()
	if t.a.b.WrongType {
		contentType = "text/html"
	}
	if t.a.b.Gzip {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", contentType)
	if t.a.stream {
		h.Set("Cache-Control", "no-cache")
	}
	t.s.book.update(t.entry, func(e *Served) { e.Status = http.StatusOK })
	t.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(t.w).Flush()
}

// reach waits until n tokens of one choice are there.
func (t *turn) reach(n int64) error {
	ctx := t.r.Context()
	if t.a.b.Gap > 0 {
		if err := pause(ctx, t.a.b.Gap); err != nil {
			return err
		}
	}
	if t.job == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.cum = n
		return nil
	}
	_, err := t.job.await(ctx, sluice.Tokens(n))
	return err
}

func (t *turn) stream(v voice, s *sink, plan []stretch) error {
	b, ctx := &t.a.b, t.r.Context()
	if b.HangFirst {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := pause(ctx, b.First); err != nil {
		return err
	}
	if b.ErrorFirst {
		v.fail(t.failKind(), "scripted error before anything")
		return errFault
	}
	if len(plan) > 0 && !t.surface.anthropic() { // the preamble comes with the first token
		if err := t.reachPrefill(); err != nil {
			return err
		}
	}
	v.open(t.tally(0))
	events := 0
	for i, p := range plan {
		if err := t.fault(v, s, events); err != nil {
			return err
		}
		if err := t.reach(p.upTo); err != nil {
			return err
		}
		t.say(v, p)
		t.wrote = p.upTo
		if i == 0 {
			now := time.Now()
			t.s.book.update(t.entry, func(e *Served) { e.First = &now })
		}
		events++
		if s.err != nil {
			return errGone
		}
	}
	if err := t.fault(v, s, events); err != nil {
		return err
	}
	if err := t.reach(t.total); err != nil {
		return err
	}
	t.wrote = t.total
	v.finish(t.reason(), t.tally(t.total))
	return t.afterEnd(s)
}

// reachPrefill waits for the first token without counting it as written.
func (t *turn) reachPrefill() error {
	if t.job == nil || t.total == 0 {
		return nil
	}
	_, err := t.job.await(t.r.Context(), 1)
	return err
}

func (t *turn) say(v voice, p stretch) {
	done := t.tally(p.upTo)
	text := p.text
	if t.a.b.BadUTF8 && t.wrote == 0 && text != "" {
		text += "\x00" // the sink puts the invalid byte in its place
	}
	switch {
	case p.thought:
		v.think(text, done)
	case p.call >= 0 && p.begins:
		v.call(0, p.call, t.a.calls[p.call], done)
	case p.call >= 0:
		v.args(0, p.call, p.fragment, done)
	default:
		for c := range t.a.choices {
			v.text(c, text, done)
		}
	}
}

// fault is what the behaviour has in store after a number of content events.
func (t *turn) fault(v voice, s *sink, events int) error {
	b, ctx := &t.a.b, t.r.Context()
	if b.Pause > 0 && b.PauseAfter == events {
		if err := pause(ctx, b.Pause); err != nil {
			return err
		}
	}
	switch events {
	case b.DieAfter:
		return errAbort
	case b.StallAfter:
		<-ctx.Done()
		return ctx.Err()
	case b.TruncAfter:
		return errFault
	case b.ErrorAfter:
		v.fail(t.failKind(), "scripted error in mid-stream")
		return errFault
	case b.CorruptAfter:
		s.corrupt = true
	case b.BadAfter:
		s.event("", []byte(`{"id": "broken`))
	}
	return nil
}

func (t *turn) failKind() string {
	if t.surface == surfaceConverse {
		return inStream(cmp.Or(exceptions[t.a.b.Exception], "InternalServerException"))
	}
	if t.surface.anthropic() {
		return "overloaded_error"
	}
	return "server_error"
}

// afterEnd is what follows a complete stream.
func (t *turn) afterEnd(s *sink) error {
	if t.a.b.Trailing {
		s.raw([]byte("data: {\"trailing\":true}\n\n"))
	}
	s.close()
	if s.err != nil {
		return errGone
	}
	t.ended = true
	if t.a.b.NeverClose {
		<-t.r.Context().Done()
	}
	return nil
}

// body answers in one piece.
func (t *turn) body(v voice, s *sink, plan []stretch) error {
	b, ctx := &t.a.b, t.r.Context()
	if err := pause(ctx, b.First); err != nil {
		return err
	}
	if b.ErrorFirst || b.ErrorAfter >= 0 {
		r := &refusal{status: http.StatusInternalServerError, msg: "scripted error"}
		t.write(r)
		return r
	}
	if b.HangFirst {
		t.commit("application/json")
		<-ctx.Done()
		return ctx.Err()
	}
	for _, p := range plan {
		if b.Gap > 0 {
			if err := t.reach(p.upTo); err != nil {
				return err
			}
		}
	}
	if t.job != nil || b.Gap == 0 {
		if err := t.reach(t.total); err != nil {
			return err
		}
	}
	out := marshal(v.whole(t.contents(plan), t.reason(), t.tally(t.total)))
	now := time.Now()
	t.s.book.update(t.entry, func(e *Served) { e.First = &now })
	return t.send(s, out)
}

func (t *turn) contents(plan []stretch) []content {
	out := make([]content, t.a.choices)
	for i := range out {
		c := &out[i]
		for _, p := range plan {
			switch {
			case p.thought:
				c.thought += p.text
			case p.call < 0:
				c.text += p.text
			}
		}
		if i == 0 {
			c.calls = t.a.calls
		}
	}
	return out
}

// send writes a whole body with the faults that touch it.
func (t *turn) send(s *sink, out []byte) error {
	b, ctx := &t.a.b, t.r.Context()
	half := out[:len(out)/2]
	switch {
	case b.BadAfter >= 0:
		out = half
	case b.TruncAfter >= 0:
		t.commit("application/json")
		s.raw(half)
		return errFault
	case b.DieAfter >= 0, b.StallAfter >= 0:
		t.w.Header().Set("Content-Length", strconv.Itoa(len(out)))
		t.commit("application/json")
		s.raw(half)
		if b.DieAfter >= 0 {
			return errAbort
		}
		<-ctx.Done()
		return ctx.Err()
	}
	if b.Blank {
		out = append([]byte("\n\n\n"), out...)
	}
	if !b.Gzip {
		t.w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	}
	t.commit("application/json")
	if b.Drip {
		for len(out) > 0 {
			n := min(64, len(out))
			s.raw(out[:n])
			out = out[n:]
			if err := pause(ctx, b.Gap); err != nil {
				return err
			}
		}
	}
	s.raw(out)
	s.close()
	if s.err != nil {
		return errGone
	}
	t.wrote = t.total
	t.ended = b.BadAfter < 0
	return nil
}
