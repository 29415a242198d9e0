package fakellm

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"sluice"
)

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
