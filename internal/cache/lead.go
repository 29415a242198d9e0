package cache

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"sluice"
	"sluice/internal/answer"
	"sluice/internal/exchange"
)

// led is a flight whose request runs here.
type led struct {
	*flight
	mine *reader
	id   flightKey
}

// board is the flight of a request with a place in it: one that is on its way, or a new
// one. There is no place in one that nobody joins any more.
func (c *Cache) board(id flightKey, client exchange.Client) (f *flight, mine *reader, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[id]; f != nil {
		return f, f.join(), false
	}
	f, mine = newFlight(c.o.MaxEntry, &c.buffered, c.o.Buffer, client)
	c.flights[id] = f
	return f, mine, true
}

// lead runs a request that others do not join, where l is nil.
func (c *Cache) lead(ctx context.Context, a *asked, l *led, told string) exchange.Result {
	if l == nil {
		f, mine := newFlight(c.o.MaxEntry, &c.buffered, c.o.Buffer, a.client)
		f.closed = true
		l = &led{flight: f, mine: mine}
	}
	return c.fly(ctx, a, l, told)
}

// fly runs a request for all who wait for its answer, as long as somebody does, and keeps
// what is worth it. The run has a goroutine of its own, which is joined here.
func (c *Cache) fly(ctx context.Context, a *asked, l *led, told string) exchange.Result {
	c.tell(Event{Tenant: a.Principal.Tenant, Result: Miss})
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	l.mu.Lock()
	l.cancel = cancel
	l.mu.Unlock()
	go func() { l.finish(c.run(run, a.Request, l.flight)) }()
	err := l.follow(ctx, l.mine, a.client, func() *exchange.Head { return l.headFor(told) })
	if err != nil {
		l.leave(l.mine, err)
	}
	<-l.done
	c.keep(ctx, a, l.flight)
	if l.id != (flightKey{}) {
		c.mu.Lock()
		delete(c.flights, l.id)
		c.mu.Unlock()
	}
	l.drop()
	res := l.res
	if err != nil && res.Err == nil { // others have the answer
		res.Err = undelivered(err)
	}
	return res
}

// run runs a request; a panic of what stands behind ends no process.
func (c *Cache) run(ctx context.Context, r *exchange.Request, f *flight) (res exchange.Result) {
	defer func() {
		if v := recover(); v != nil {
			res.Err = &sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "internal error", Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
			res.BodyKept = true
		}
	}()
	return c.o.Next(ctx, r, f)
}

// keep puts an answer into the store, if it is worth it.
func (c *Cache) keep(ctx context.Context, a *asked, f *flight) {
	head, stream, body, ok := f.whole()
	why := ""
	switch {
	case !ok && f.res.Err != nil:
		why = "failed"
	case !ok:
		why = "too_large"
	case head.Grant.Policy != a.policy:
		why = "policy" // it was put in force meanwhile
	case c.purges.Load() != a.purges:
		why = "purged"
	default:
		why = worthless(&f.res, body)
	}
	if why != "" {
		c.tell(Event{Tenant: a.Principal.Tenant, Result: Unkept, Reason: why})
		return
	}
	e := c.entry(a, f, answer.Of(head, stream, body))
	sealed := e.seal(c.o.Secret, a.key)
	if c.o.Store.Put(context.WithoutCancel(ctx), Item{Owner: a.owner, Scope: a.scope, Key: a.key, Value: sealed, Expires: e.Expires}) {
		c.tell(Event{Tenant: a.Principal.Tenant, Result: Stored, Bytes: int64(len(sealed))})
	} else {
		c.tell(Event{Tenant: a.Principal.Tenant, Result: Unkept, Reason: "store"})
	}
}

func (c *Cache) entry(a *asked, f *flight, ans *answer.Answer) *Entry {
	now := time.Now()
	return &Entry{
		Answer: ans, Request: f.res.Final.Request, Stored: now, Expires: now.Add(time.Duration(a.Principal.Policy.CacheTTL)),
		Input: f.res.Usage.InputTotal(), Output: f.res.Usage.OutputTotal(), Cost: f.res.Cost,
	}
}

// wait answers a request with the answer that another one is getting. It is false where
// the other one failed, before any content, for a reason of its own.
func (c *Cache) wait(ctx context.Context, a *asked, f *flight, mine *reader) (res exchange.Result, done bool) {
	defer func() { f.leave(mine, context.Canceled) }()
	priced := a.Principal.Policy.CachePercent > 0 // what it costs is known at the end
	s := f.await(ctx, mine, priced)
	switch {
	case s.left != nil:
		f.leave(mine, s.left)
		return c.o.Next(ctx, a.Request, a.client), true // which records that it has ended
	case s.ended && s.res.Err != nil && (!s.content || priced):
		if !shared(s.res) {
			return res, false
		}
		return c.failWith(ctx, a, s.res), true
	case priced:
		head, stream, body, ok := f.whole()
		if !ok {
			return res, false
		}
		return c.hit(ctx, a, c.entry(a, f, answer.Of(head, stream, body)), Coalesced), true
	}
	out := &exchange.Served{
		Head: f.headFor(Coalesced.String()), Detail: []byte(`,"cache":{"state":"coalesced"}`),
		Follow: func(h *exchange.Head, client exchange.Client) (*sluice.Error, error) {
			if err := f.follow(ctx, mine, client, func() *exchange.Head { return h }); err != nil {
				return nil, err
			}
			return f.failed(), nil
		},
	}
	res = c.o.Exchange.Serve(ctx, a.Request, a.client, out)
	if res.Head != nil && f.state().ended && f.res.Head != nil {
		res.Head.Sequence = f.res.Head.Sequence
	}
	c.tell(Event{Tenant: a.Principal.Tenant, Result: Coalesced, Took: res.Final.FirstToken})
	return res, true
}

// failed is why a flight whose end was read failed, nil if it did not.
func (f *flight) failed() *sluice.Error {
	if f.state().ended {
		return f.res.Err
	}
	return nil
}

func (f *flight) state() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return state{content: f.head != nil, ended: f.ended}
}
