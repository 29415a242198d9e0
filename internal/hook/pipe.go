package hook

import (
	"context"
	"time"
	"unicode/utf8"
)

// pipe is one hook's way through one text of a stream. What push, tick and end return
// may be delivered. They append to dst. An error ends the request.
type pipe interface {
	push(ctx context.Context, dst, part []byte) ([]byte, error)
	// tick lets out what has waited as long as it may at due.
	tick(ctx context.Context, dst []byte) ([]byte, error)
	due() (at time.Time, ok bool)
	end(ctx context.Context, dst []byte) ([]byte, error)
}

// redacting is the built-in redaction of a text.
type redacting struct {
	run  *Run
	hook *entry
	r    interface {
		Push(dst, part []byte) []byte
		End(dst []byte) []byte
	}
	counts *Counts
	told   Counts
}

func newRedacting(run *Run, h *entry, json bool) *redacting {
	if json {
		a := &ArgumentsRedactor{text: Redactor{f: h.finder}}
		return &redacting{run: run, hook: h, r: a, counts: a.Counts()}
	}
	r := &Redactor{f: h.finder}
	return &redacting{run: run, hook: h, r: r, counts: &r.Counts}
}

func (p *redacting) push(_ context.Context, dst, part []byte) ([]byte, error) {
	dst = p.r.Push(dst, part)
	p.tell()
	return dst, nil
}

func (p *redacting) end(_ context.Context, dst []byte) ([]byte, error) {
	dst = p.r.End(dst)
	p.tell()
	return dst, nil
}

// tell notes what has been redacted since it was last told.
func (p *redacting) tell() {
	if *p.counts == p.told {
		return
	}
	more := *p.counts
	for i := range more {
		more[i] -= p.told[i]
	}
	p.told = *p.counts
	p.run.redacted(p.hook, AtEvent, &more)
}

func (*redacting) tick(_ context.Context, dst []byte) ([]byte, error) { return dst, nil }
func (*redacting) due() (time.Time, bool)                             { return time.Time{}, false }

// window shows a text to a service as it comes: when there is enough new text, when
// some has waited long enough, and at the end. The last bytes of what was shown are held
// back and shown again with what follows, so that nothing as long as the overlap gets
// past by being cut. Silence lets them go.
type window struct {
	run   *Run
	hook  *entry
	path  string
	held  []byte
	seen  int       // of held, what was shown before
	waits time.Time // since when the rest of it does, or all
}

func (w *window) push(ctx context.Context, dst, part []byte) ([]byte, error) {
	if len(part) == 0 {
		return dst, nil
	}
	if len(w.held) == w.seen {
		w.waits = time.Now()
	}
	w.held = append(w.held, part...)
	if len(w.held)-w.seen < w.hook.spec.Window.Bytes {
		return dst, nil
	}
	return w.show(ctx, dst, false)
}

func (w *window) due() (time.Time, bool) {
	return w.waits.Add(w.hook.spec.Window.Time), len(w.held) > 0
}

func (w *window) tick(ctx context.Context, dst []byte) ([]byte, error) {
	if len(w.held) > w.seen {
		return w.show(ctx, dst, false)
	}
	return w.let(dst, len(w.held)), nil
}

func (w *window) end(ctx context.Context, dst []byte) ([]byte, error) {
	if len(w.held) > w.seen {
		return w.show(ctx, dst, true)
	}
	return w.let(dst, len(w.held)), nil
}

// let lets the first n bytes go.
func (w *window) let(dst []byte, n int) []byte {
	dst = append(dst, w.held[:n]...)
	w.held = w.held[:copy(w.held, w.held[n:])]
	w.seen = len(w.held)
	w.waits = time.Now()
	return dst
}

// show asks the hook about all that is held.
func (w *window) show(ctx context.Context, dst []byte, final bool) ([]byte, error) {
	edits, err := w.run.askText(ctx, w.hook, Text{Path: w.path, Text: string(w.held), Seen: w.seen}, final)
	if err != nil {
		return dst, err
	}
	last := 0 // where the last edit ends, once it is made
	if len(edits) > 0 {
		e := edits[len(edits)-1]
		behind := len(w.held) - e.End
		w.held = spliced(w.held, edits)
		last = len(w.held) - behind
	}
	keep := min(w.hook.spec.Window.Overlap, len(w.held)-last)
	if final {
		keep = 0
	}
	for keep > 0 && !utf8.RuneStart(w.held[len(w.held)-keep]) {
		keep--
	}
	return w.let(dst, len(w.held)-keep), nil
}

// holding keeps a text that is JSON until it is whole: in parts no edit of it could be
// told to leave it JSON, and nobody can use it before.
type holding struct {
	run  *Run
	hook *entry
	path string
	held []byte
	open bool // it is too long to be shown, and the hook fails open
}

func (h *holding) push(_ context.Context, dst, part []byte) ([]byte, error) {
	if h.open {
		return append(dst, part...), nil
	}
	h.held = append(h.held, part...)
	if int64(len(h.held)) <= h.hook.spec.MaxBody {
		return dst, nil
	}
	if err := h.run.failedCall(h.hook, AtEvent, CauseTooLarge, 0, errTooLong); err != nil {
		return dst, err
	}
	h.open = true
	return append(dst, h.held...), nil
}

func (*holding) tick(_ context.Context, dst []byte) ([]byte, error) { return dst, nil }
func (*holding) due() (time.Time, bool)                             { return time.Time{}, false }

func (h *holding) end(ctx context.Context, dst []byte) ([]byte, error) {
	if h.open || len(h.held) == 0 {
		return dst, nil
	}
	edits, err := h.run.askText(ctx, h.hook, Text{Path: h.path, Text: string(h.held), JSON: isJSON(h.held)}, true)
	if err != nil {
		return dst, err
	}
	dst = append(dst, spliced(h.held, edits)...)
	h.held = nil
	return dst, nil
}

// pipes are the ways of one text through several hooks, in order.
type pipes []pipe

// push and end and tick run part through all of them.
func (p pipes) push(ctx context.Context, part []byte) ([]byte, error) {
	var err error
	for _, one := range p {
		if part, err = one.push(ctx, nil, part); err != nil {
			return nil, err
		}
	}
	return part, nil
}

func (p pipes) end(ctx context.Context) (out []byte, err error) {
	for _, one := range p {
		if out, err = one.push(ctx, nil, out); err != nil {
			return nil, err
		}
		if out, err = one.end(ctx, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p pipes) tick(ctx context.Context, now time.Time) (out []byte, err error) {
	for _, one := range p {
		if out, err = one.push(ctx, nil, out); err != nil {
			return nil, err
		}
		if at, ok := one.due(); ok && !now.Before(at) {
			if out, err = one.tick(ctx, out); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (p pipes) due() (at time.Time, ok bool) {
	for _, one := range p {
		if t, is := one.due(); is && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}
