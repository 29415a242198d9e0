package exchange

import (
	"context"
	"sync"
	"time"

	"sluice"
	"sluice/internal/route"
)

// The bounds of the copies that run in one process, whatever their models allow.
const (
	MaxCopies    = 256      // at a time
	MaxCopyBytes = 64 << 20 // of bodies that copies keep alive, beyond what their requests need
)

// copies are the copies of requests that run: see route.Shadow. Each has a goroutine,
// which close ends and joins.
type copies struct {
	wg     sync.WaitGroup
	ctx    context.Context // of all of them
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running int   // guarded by mu
	bytes   int64 // guarded by mu; of their bodies
	closed  bool  // guarded by mu
}

// enter makes room for one more copy, whose body has so many bytes.
func (c *copies) enter(bytes int64) route.Skip {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return route.SkipShutdown
	case c.running >= MaxCopies:
		return route.SkipBusy
	case c.bytes+bytes > MaxCopyBytes:
		return route.SkipBytes
	}
	c.running++
	c.bytes += bytes
	c.wg.Add(1)
	return route.Sent
}

// leave takes back what enter gave.
func (c *copies) leave(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.bytes -= bytes
	c.wg.Done()
}

// close ends all copies at once, and waits until each is settled.
func (c *copies) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(&sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ShuttingDown, Msg: "the gateway is shutting down"})
	c.wg.Wait()
}

// Close ends the copies of requests that run, the reading of answers that nobody waits
// for, and the waiting for those that are made in the background, at once, and waits until they are settled. No more are made. Requests go on. It is idempotent.
func (x *Exchange) Close() {
	x.drains.close()
	x.copies.close()
	x.background.close()
}

// copied is one shadow whose turn the request was: that it was sent, or why not.
type copied struct {
	pool sluice.PoolID
	skip route.Skip
}

// copyID is the id of a request's copy in a pool.
func copyID(of sluice.RequestID, pool sluice.PoolID) sluice.RequestID {
	return of + "." + sluice.RequestID(pool)
}

// copy sends the request, which has its first place, to the shadows of its model
// whose turn it is. Nothing of it waits: what a copy needs is there now, or it is left
// out.
func (t *turn) copy() {
	if t.r.Free {
		return
	}
	m := t.x.o.Table().Models[t.asks()]
	if m == nil {
		return
	}
	for _, s := range m.Copies(&route.Asker{ID: t.r.ID, Principal: &t.r.Principal, Session: t.r.Session, Class: t.r.Class}) {
		c := copied{s.Pool, t.copyTo(s)}
		t.copied = append(t.copied, c)
		t.kept = t.kept || c.skip == route.Sent
		if h := t.x.o.Hooks.Skipped; h != nil && c.skip != route.Sent {
			h(m.ID, s.Pool, c.skip)
		}
	}
}

// copyTo sends the request to one shadow.
func (t *turn) copyTo(s *route.Shadow) (skip route.Skip) {
	switch {
	case t.grant.Grant().Pool == s.Pool:
		return route.SkipSame
	case t.r.Head.ServerTools > 0 || t.r.Head.Unbounded || t.r.Head.Store || t.r.Head.Background || len(t.r.Head.Refs) > 0: // as for a hedge: see engine.Call.Single
		return route.SkipEffects
	}
	x, bytes := t.x, int64(len(t.r.Body))
	if skip = x.copies.enter(bytes); skip != route.Sent {
		return skip
	}
	sent := false
	defer func() {
		if !sent { // by a panic too
			x.copies.leave(bytes)
		}
	}()
	c := &turn{x: x, r: t.r.copyFor(s), client: nobody{}, shadow: s}
	call, refusal := c.call(x.copies.ctx)
	if refusal != nil {
		return route.Skip(refusal.Reason.String())
	}
	call.Shadow = s
	ctx, cancel := context.WithCancelCause(x.copies.ctx)
	grant, skip := x.o.Gate.Copy(call, cancel)
	if skip != route.Sent {
		cancel(nil)
		return skip
	}
	c.grant, sent = grant, true
	go func() {
		defer x.copies.leave(bytes)
		defer cancel(nil)
		c.runCopy(ctx)
	}()
	return route.Sent
}

// copyFor is the request as the shadow's pool gets it: of the same caller, by a policy
// that says where it may go and how much may be asked for, and leaves out all limits.
func (r *Request) copyFor(s *route.Shadow) *Request {
	c := *r
	c.ID, c.ShadowOf, c.Arrived = copyID(r.ID, s.Pool), r.ID, time.Now()
	c.Class, c.RunLimits, c.MaxWait = sluice.Batch, nil, 0
	c.Principal.Policy = &sluice.Policy{HardSpend: true}
	if p := r.Principal.Policy; p != nil {
		c.Principal.Policy = &sluice.Policy{
			HardSpend: true, WarnDropped: p.WarnDropped, Regions: p.Regions, Providers: p.Providers, Risk: p.Risk,
			Mode: p.Mode, MaxOutput: p.MaxOutput, InputCeiling: p.InputCeiling, OutputCeiling: p.OutputCeiling,
		}
	}
	return &c
}

// runCopy is the one attempt of a copy: it is settled when it returns.
func (t *turn) runCopy(ctx context.Context) {
	var res Result
	defer t.recovered(&res)
	a := t.attempt(ctx)
	if a.failure == nil {
		return
	}
	if a.failure.Reason == sluice.HoldExpired { // its place is gone; why, is told at any moment
		<-ctx.Done()
		a.failure = t.why(ctx, a.failure)
	}
	t.failed(ctx, a)
}

// nobody is the client of a copy.
type nobody struct{}

func (nobody) Events(*Head, []byte) error { return nil }
func (nobody) Answer(*Head, []byte) error { return nil }
func (nobody) Committed() bool            { return false }

// beside tells what became of a request of which copies were sent.
func (t *turn) beside() {
	h := t.x.o.Hooks.Beside
	if h == nil {
		return
	}
	for _, c := range t.copied {
		if c.skip == route.Sent {
			h(c.pool, &t.result)
		}
	}
}

// appendCopied tells of the shadows whose turn the request was.
func (t *turn) appendCopied(b []byte) []byte {
	if len(t.copied) == 0 {
		return b
	}
	b = append(b, `,"shadows":[`...)
	for i, c := range t.copied {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendWord(append(b, `{"pool":`...), string(c.pool))
		if c.skip != route.Sent {
			b = appendWord(append(b, `,"skipped":`...), string(c.skip))
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
