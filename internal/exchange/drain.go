package exchange

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
)

// MaxDrains is how many answers are read at a time, over all providers, whose clients
// have left.
const MaxDrains = 256

// How the reading of an answer that nobody waits for came out, or why there was none.
const (
	DrainWhole = "whole"    // its end came
	DrainTime  = "time"     // the bounds of one answer were reached
	DrainBytes = "bytes"    //
	DrainCut   = "cut"      // the backend ended it before
	DrainFull  = "full"     // as many were being read as are read at a time
	DrainStop  = "shutdown" // the gateway stops
)

// call is an attempt's call of a backend that goes on when the client leaves. Its
// context is not the client's: what ends that is asked for by leaves. All methods may be
// called on nil, which is a call that ends with its client.
type call struct {
	t    *turn
	a    *attempt
	ctx  context.Context // of the call
	end  context.CancelCauseFunc
	stop func() bool // the watch on the client
	sent atomic.Bool

	mu     sync.Mutex
	racing bool          // beside another: it ends with its client
	over   bool          // the attempt has ended, or its call has been cut
	why    *sluice.Error // why nobody waits for it; nil while somebody does
	since  time.Time     // when that began
	bytes  int64         // read since
	result string        // how it came out, as far as that is known
	timer  *time.Timer
	gone   atomic.Pointer[sluice.Error] // why, for who reads
}

// newCall decides whether an attempt's call ends with its client: nil if so.
func (t *turn) newCall(ctx context.Context, a *attempt, req *outgoing) *call {
	if a.place.Backend.StopsOnCancel || t.behind() || a.target.Drain.AtOnce <= 0 || a.target.Drain.For <= 0 || t.r.Free || t.shadow != nil || !t.r.Head.Op.Generates() {
		return nil
	}
	c := &call{t: t, a: a, racing: a.place.HedgeAfter > 0 && t.r.Head.Stream}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	c.stop = context.AfterFunc(ctx, func() { c.leaves(t.why(ctx, nil)) })
	req.Sent = &c.sent
	return c
}

// alone says that the call races with no other any more.
func (c *call) alone() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.racing = false
}

// left is why nobody waits for the answer; nil while somebody does.
func (c *call) left() *sluice.Error {
	if c == nil {
		return nil
	}
	return c.gone.Load()
}

// leaves takes that nobody waits any more: the answer is read on, and it is true, or
// the call is cut.
func (c *call) leaves(why *sluice.Error) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.why != nil:
		return true
	case c.over:
		return false
	}
	t, limits := c.t, c.a.target.Drain
	mayBe := (why.Reason == sluice.ClientGone || why.Reason == sluice.ClientStalled) && !c.racing && c.sent.Load()
	if !mayBe || !c.enter(limits.AtOnce) {
		c.over = true
		c.end(why)
		return false
	}
	c.since = time.Now()
	if !c.a.grant.Leave(sluice.Usage{Input: c.a.input, Output: t.plan.work.Output, Source: sluice.UsageEstimated}, limits.For) {
		c.over = true
		c.end(why)
		return false
	}
	c.why = why
	c.gone.Store(why)
	c.timer = time.AfterFunc(limits.For, func() { c.cut(DrainTime) })
	return true
}

// enter takes one of the places that there are for answers that nobody waits for.
func (c *call) enter(atOnce int) bool {
	if c.result = c.t.x.drains.enter(c, atOnce); c.result == "" {
		return true
	}
	c.t.told(c.a, c.result, 0)
	return false
}

// read counts what is read of an answer that nobody waits for.
func (c *call) read(n int) {
	if c.left() == nil {
		return
	}
	c.mu.Lock()
	c.bytes += int64(n)
	over := c.bytes > c.a.target.Drain.Bytes
	c.mu.Unlock()
	if over {
		c.cut(DrainBytes)
	}
}

// cut ends the reading of an answer that nobody waits for.
func (c *call) cut(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.result = true, result
	c.end(c.why)
}

// hangUp ends the watch on the client. It reports whether somebody still waits for the
// answer.
func (c *call) hangUp() bool {
	if c == nil {
		return true
	}
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.over = true
	return c.why == nil
}

// nobodyWaits sets the failure of an attempt whose answer was read on after the client
// had left: that it did.
func (t *turn) nobodyWaits(a *attempt) {
	c := a.call
	if c == nil {
		return
	}
	defer c.end(nil)
	if c.hangUp() {
		return
	}
	a.failure, a.again, a.told = c.why, false, false
	switch {
	case a.drained:
		c.result = DrainWhole
	case c.result == "":
		c.result = DrainCut
	}
	t.told(a, c.result, time.Since(c.since))
}

// told tells how the reading of an answer that nobody waited for came out.
func (t *turn) told(a *attempt, result string, after time.Duration) {
	if h := t.x.o.Hooks.Drained; h != nil {
		h(a.place.Backend.Provider, result, after)
	}
}

// appendDrained tells explain that nobody waited for an answer and what became of it.
func (a *attempt) appendDrained(b []byte) []byte {
	c := a.call
	if c == nil || c.result == "" {
		return b
	}
	b = append(b, `,"drained":{"result":`...)
	b = appendWord(b, c.result)
	if !c.since.IsZero() {
		b = append(b, `,"ms":`...)
		b = strconv.AppendInt(b, time.Since(c.since).Milliseconds(), 10)
		b = appendField(b, "bytes", c.bytes)
	}
	return append(b, '}')
}

// drains counts the answers that are read though nobody waits for them.
type drains struct {
	mu      sync.Mutex
	running map[sluice.ProviderID]int // guarded by mu
	calls   map[*turn]*call           // likewise
	closed  bool                      // likewise: no more begin
	wg      sync.WaitGroup
}

// enter takes a place for an answer of its provider; it says why there is none.
func (d *drains) enter(c *call, atOnce int) (why string) {
	p := c.a.place.Backend.Provider
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return DrainStop
	case d.running[p] >= atOnce, len(d.calls) >= MaxDrains:
		return DrainFull
	}
	if d.calls == nil {
		d.calls = make(map[*turn]*call)
	}
	d.running[p]++
	d.calls[c.t] = c
	d.wg.Add(1)
	return ""
}

// leave gives a request's place back once it has been settled.
func (d *drains) leave(t *turn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[t]
	if c == nil {
		return
	}
	p := c.a.place.Backend.Provider
	if d.running[p]--; d.running[p] == 0 {
		delete(d.running, p)
	}
	delete(d.calls, t)
	d.wg.Done()
}

// close ends all reading at once, and waits until each request is settled.
func (d *drains) close() {
	d.mu.Lock()
	d.closed = true
	calls := make([]*call, 0, len(d.calls))
	for _, c := range d.calls {
		calls = append(calls, c)
	}
	d.mu.Unlock()
	for _, c := range calls {
		c.cut(DrainStop)
	}
	d.wg.Wait()
}

// Drains is how many answers of each provider are read though nobody waits for them.
func (x *Exchange) Drains() map[sluice.ProviderID]int {
	x.drains.mu.Lock()
	defer x.drains.mu.Unlock()
	out := make(map[sluice.ProviderID]int, len(x.drains.running))
	maps.Copy(out, x.drains.running)
	return out
}
