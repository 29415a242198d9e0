package exchange

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"sluice"
	"sluice/internal/hook"
	"sluice/internal/wire"
)

// inspect asks the hooks of the request's stage, before anything is reserved or sent. What
// they redact goes on as if the client had written it so, and what they label is as if the
// client had. The time that they took is not there for the queue any more. The error
// refuses the request.
func (t *turn) inspect(ctx context.Context) *sluice.Error {
	if t.x.o.Inspect == nil {
		return nil
	}
	if l := t.r.looked; l != nil {
		t.hooks, t.policy = l.hooks, l.policy
		return l.refusal
	}
	r, p := t.r, t.r.Principal.Policy
	table := t.x.o.Table()
	var own, model []string
	if p != nil {
		own = p.Hooks
	}
	if m := table.Models[sluice.ModelID(r.Head.Model)]; m != nil {
		model = m.Hooks
	}
	if p != nil && p.Degrade != "" { // a ladder may have it serve
		if m := table.Models[p.Degrade]; m != nil {
			model = append(slices.Clip(model), m.Hooks...)
		}
	}
	t.hooks = t.x.o.Inspect.Begin(hook.Subject{
		ID: r.ID, Tenant: r.Principal.Tenant, Project: r.Principal.Project, Model: sluice.ModelID(r.Head.Model),
		Op: r.Head.Op, Stream: r.Head.Stream, Task: r.Task, Risk: t.risk(),
	}, own, model)
	if t.hooks == nil {
		return nil
	}
	t.policy = table.Version
	if t.stored() { // it says nothing
		return nil
	}
	begun := time.Now()
	body, err := t.hooks.Request(ctx, r.Body)
	if err != nil {
		return t.why(ctx, err)
	}
	changed := *r // the caller's stays as it is
	t.r, r.Body = &changed, nil
	t.waited(time.Since(begun))
	changed.Risk = max(changed.Risk, t.hooks.Risk)
	if len(body) == len(changed.Body) && (len(body) == 0 || &body[0] == &changed.Body[0]) {
		return nil
	}
	changed.Body = body
	changed.Head, err = wire.ScanIn(changed.Head.Op, body, wire.InPath{Model: changed.Head.Model, Stream: changed.Head.Stream})
	if err != nil { // no edit of a text makes one that is not taken, but it must not be sent unread
		return &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.HookFailed, Msg: "the redacted request cannot be read", Err: fmt.Errorf("scan what hooks have redacted: %w", err)}
	}
	return nil
}

// waited takes the time that hooks took off how long the request may queue, where that is
// known by now.
func (t *turn) waited(d time.Duration) {
	r := t.r
	if p := r.Principal.Policy; r.MaxWait < 0 && p != nil && p.MaxWait > 0 {
		r.MaxWait = time.Duration(p.MaxWait)
	}
	if r.MaxWait > 0 {
		r.MaxWait = max(r.MaxWait-d, 0)
	}
}

// about is what hooks are told of an answer.
func (a *attempt) about() hook.Reply {
	return hook.Reply{Status: a.head.Status, Backend: a.place.Backend.ID}
}

// refusedAnswer ends an attempt whose answer may not be delivered. It was generated and is
// settled as what it took; another would be no better.
func (t *turn) refusedAnswer(ctx context.Context, a *attempt, err error) {
	a.failure, a.again = t.why(ctx, err), false
}

// inspectAnswer is what hooks leave of an answer in one piece; the attempt's failure is
// set where they refuse it.
func (t *turn) inspectAnswer(ctx context.Context, a *attempt, body []byte) []byte {
	out, err := t.hooks.Answer(ctx, a.about(), body)
	if err != nil {
		t.refusedAnswer(ctx, a, err)
	}
	return out
}

// look asks the hooks whether a stream may be delivered, once, before its first content
// is, and begins to look into it. It reports whether the stream goes on.
func (s *stream) look(last bool) bool {
	t := s.t
	s.looked = true
	if s.a.call.left() != nil { // nobody waits for it
		return true
	}
	if t.hooks.Commits() {
		if err := t.hooks.Commit(s.ctx, s.a.about(), s.out); err != nil {
			return s.refused(err)
		}
	}
	if s.hooks = t.hooks.Events(s.a.about()); s.hooks == nil {
		return true
	}
	if t.stored() {
		s.hooks.After(t.r.Head.After)
	}
	out, ok := s.inspected(s.out, last)
	s.out = append(s.out[:0], out...)
	return ok
}

// inspected is what may be delivered by now of events and of what was held before. Where
// hooks refuse it, the attempt's failure is set, and what they have let go is delivered.
func (s *stream) inspected(events []byte, last bool) (out []byte, ok bool) {
	out, err := s.hooks.Events(s.ctx, events)
	if err == nil && last {
		out, err = s.hooks.End(s.ctx)
	}
	s.a.added = s.hooks.Added()
	if err != nil {
		return nil, s.refused(err)
	}
	return out, true
}

// refused ends a stream that hooks refuse. Where the client has left meanwhile, and the
// answer is read on without it, they look no further and it goes on: true.
func (s *stream) refused(err error) bool {
	if s.ctx.Err() != nil && s.a.call.leaves(s.t.why(s.ctx, err)) {
		s.hooks, s.looked = nil, true
		return true
	}
	if s.flush() { // else the client has left
		s.t.refusedAnswer(s.ctx, s.a, err)
	}
	return false
}

// read reads from the backend. Where hooks hold text back that may not wait for more, it
// is shown or let go when its time comes, while the backend is read on a goroutine that
// ends with this call.
func (s *stream) read(p []byte) (int, error) {
	if s.hooks == nil {
		return s.ans.Read(p)
	}
	if _, waits := s.hooks.Due(); !waits {
		return s.ans.Read(p)
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil {
				r = result{err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
			}
			done <- r
		}()
		r.n, r.err = s.ans.Read(p)
	}()
	for {
		var due time.Time
		waits := false
		if s.hooks != nil {
			due, waits = s.hooks.Due()
		}
		if !waits {
			r := <-done
			return r.n, r.err
		}
		late := time.NewTimer(time.Until(due))
		select {
		case r := <-done:
			late.Stop()
			return r.n, r.err
		case <-late.C:
		}
		if !s.tick() {
			s.ans.Interrupt()
			<-done
			return 0, errUndelivered
		}
	}
}

// tick delivers what hooks let go because its time has come.
func (s *stream) tick() bool {
	out, err := s.hooks.Tick(s.ctx, time.Now())
	s.a.added = s.hooks.Added()
	if err != nil {
		return s.refused(err)
	}
	s.out = append(s.out, out...)
	return s.flush()
}
