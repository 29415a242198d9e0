package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/exchange"
)

// The defaults of Options.
const (
	DefaultMaxEntry int   = 1 << 20  // bytes
	DefaultBuffer   int64 = 64 << 20 // bytes
)

// Exchange is what the cache needs of an exchange beside running requests.
type Exchange interface {
	Inspect(ctx context.Context, r *exchange.Request) *exchange.Request
	Serve(ctx context.Context, r *exchange.Request, c exchange.Client, s *exchange.Served) exchange.Result
}

// Options is what a Cache works with. The first five are needed.
type Options struct {
	Next     exchange.Runner // what it stands in front of
	Exchange Exchange
	Store    Store
	Secret   []byte        // of the installation: keys and entries are authenticated with it; at least 16 bytes
	Policy   func() string // version of the routing table in force

	// Group is the name of the tenants that share their kept answers with this one, empty
	// if it shares them with none; nil has no groups.
	Group func(sluice.TenantID) string

	MaxEntry int         // bytes of the largest answer that is kept; 0 takes DefaultMaxEntry
	Buffer   int64       // bytes of answers on their way, over all requests; 0 takes DefaultBuffer
	Told     func(Event) // of each request that the cache has to do with; from any goroutine. nil is silent
}

// Cache keeps answers and gives them again. It is safe for concurrent use.
type Cache struct {
	o        Options
	buffered atomic.Int64
	counts   counts
	purges   atomic.Int64 // how often something was purged

	mu      sync.Mutex
	flights map[flightKey]*flight // guarded by mu
}

// New makes a Cache. Its store is closed by whoever made that.
func New(o Options) *Cache {
	o.MaxEntry, o.Buffer = cmp.Or(o.MaxEntry, DefaultMaxEntry), cmp.Or(o.Buffer, DefaultBuffer)
	if o.Group == nil {
		o.Group = func(sluice.TenantID) string { return "" }
	}
	if o.Told == nil {
		o.Told = func(Event) {}
	}
	return &Cache{o: o, flights: make(map[flightKey]*flight), counts: newCounts()}
}

// asked is one request that may be kept or answered with what was.
type asked struct {
	*exchange.Request
	client exchange.Client
	owner  Owner
	scope  string // the owner, as stores know it
	policy string // version of the routing table that the key is of
	key    Key
	purges int64 // as of when it was looked for
}

// Run is an exchange.Runner.
func (c *Cache) Run(ctx context.Context, r *exchange.Request, client exchange.Client) exchange.Result {
	p := r.Principal.Policy
	opted := p != nil && p.CacheTTL > 0
	why := ""
	switch {
	case !opted && (r.Cache == "" || r.Cache == exchange.WishBypass), opted && p.CacheAsked && r.Cache == "":
		return c.o.Next(ctx, r, client) // it is not spoken of
	case !opted:
		why = "plan"
	case r.Cache == exchange.WishBypass:
		why = "request"
	default:
		why = unfit(r)
	}
	if why != "" {
		return c.bypass(ctx, r, client, why)
	}
	if r = c.o.Exchange.Inspect(ctx, r); r.Refused() {
		return c.o.Next(ctx, r, client)
	}
	a := &asked{Request: r, client: client, owner: c.owner(r.Principal.Tenant), policy: c.o.Policy(), purges: c.purges.Load()}
	a.scope = a.owner.scope(c.o.Secret)
	var err error
	if a.key, err = keyOf(c.o.Secret, a.owner, r, a.policy); err != nil {
		return c.bypass(ctx, r, client, "too_large")
	}
	return c.answer(ctx, a)
}

func (c *Cache) owner(t sluice.TenantID) Owner {
	if g := c.o.Group(t); g != "" {
		return Owner{Group: g}
	}
	return Owner{ID: t}
}

// bypass runs a request beside the cache, and says why.
func (c *Cache) bypass(ctx context.Context, r *exchange.Request, client exchange.Client, why string) exchange.Result {
	c.tell(Event{Tenant: r.Principal.Tenant, Result: Bypass, Reason: why})
	return c.o.Next(ctx, r, &telling{client, "bypass; reason=" + why})
}

// telling is a client that is told what the cache has to do with its answer.
type telling struct {
	exchange.Client
	told string
}

func (t *telling) Events(h *exchange.Head, p []byte) error {
	h.Cache = t.told
	return t.Client.Events(h, p)
}

func (t *telling) Answer(h *exchange.Head, body []byte) error {
	h.Cache = t.told
	return t.Client.Answer(h, body)
}

// joins bounds how often a request waits for another one that then fails for reasons of
// its own, before it runs by itself.
const joins = 2

// answer answers with what is kept, or what is on its way, or has it made.
func (c *Cache) answer(ctx context.Context, a *asked) exchange.Result {
	if a.Cache == exchange.WishRefresh {
		return c.lead(ctx, a, nil, "miss; reason=refresh")
	}
	alone := a.Principal.Policy.CacheApart || a.MaxWait >= 0
	for n := 0; ; n++ {
		if e := c.lookup(ctx, a); e != nil {
			return c.hit(ctx, a, e, Hit)
		}
		if alone || n == joins {
			return c.lead(ctx, a, nil, "miss")
		}
		id := flightKey{a.key, a.Principal.Tenant, a.Class}
		f, mine, leads := c.board(id, a.client)
		switch {
		case mine == nil: // there is one that nobody joins any more
			return c.lead(ctx, a, nil, "miss")
		case leads:
			return c.fly(ctx, a, &led{f, mine, id}, "miss")
		}
		if res, done := c.wait(ctx, a, f, mine); done {
			return res
		}
	}
}

// lookup is what is kept, nil if that is nothing.
func (c *Cache) lookup(ctx context.Context, a *asked) *Entry {
	sealed, ok := c.o.Store.Get(ctx, a.scope, a.key)
	if !ok {
		return nil
	}
	e, err := open(c.o.Secret, a.key, sealed)
	if err != nil {
		c.tell(Event{Tenant: a.Principal.Tenant, Result: Corrupt})
		c.o.Store.Drop(ctx, a.scope, a.key)
		return nil
	}
	if !time.Now().Before(e.Expires) {
		return nil
	}
	return e
}

// hit answers with an entry.
func (c *Cache) hit(ctx context.Context, a *asked, e *Entry, as Result) exchange.Result {
	age := max(time.Since(e.Stored), 0)
	h := e.Answer.Head()
	h.Cache = as.String() + "; age=" + strconv.FormatInt(int64(age/time.Second), 10)
	s := &exchange.Served{
		Head: h, Cost: share(e.Cost, a.Principal.Policy.CachePercent), Detail: e.detail(as, age), Stream: e.Answer.Stream, Answer: e.Answer.Body,
		Deliver: func(h *exchange.Head, client exchange.Client, body []byte) error {
			out := *e.Answer
			out.Body = body
			return out.Replay(h, client)
		},
	}
	res := c.o.Exchange.Serve(ctx, a.Request, a.client, s)
	if res.Final.Outcome == sluice.Completed {
		c.tell(Event{Tenant: a.Principal.Tenant, Result: as, Age: age, Took: res.Final.FirstToken, Tokens: e.Input + e.Output, Saved: max(e.Cost-s.Cost, 0)})
	}
	return res
}

// detail is what explain is told of an answer that was not made for this request.
func (e *Entry) detail(as Result, age time.Duration) []byte {
	return fmt.Appendf(nil, `,"cache":{"state":%q,"request":%q,"age_ms":%d,"backend":%q,"input":%d,"output":%d,"cost":%d}`,
		as.String(), e.Request, age.Milliseconds(), e.Answer.Backend, e.Input, e.Output, e.Cost)
}

// failWith fails a request as the one that it waited for.
func (c *Cache) failWith(ctx context.Context, a *asked, of *exchange.Result) exchange.Result {
	c.tell(Event{Tenant: a.Principal.Tenant, Result: Coalesced, Reason: of.Err.Reason.String()})
	res := c.o.Exchange.Serve(ctx, a.Request, a.client, &exchange.Served{Failed: of.Err, Detail: []byte(`,"cache":{"state":"coalesced"}`)})
	res.Pass, res.Head = of.Pass, of.Head
	return res
}

// shared reports whether the failure of a request is that of all that are the same: the
// backends failed it, or refused what it says. What was refused for the caller's own
// limits, its wait, or since its client left, says nothing of the others.
func shared(res *exchange.Result) bool {
	if res.Pass != nil {
		return true
	}
	switch r := res.Err.Reason; r {
	case sluice.NoBackend, sluice.CapabilityMissing, sluice.Untranslatable, sluice.HookRefused:
		return true
	default:
		return r >= sluice.UpstreamConnect && r <= sluice.UpstreamRedirect
	}
}

// undelivered is why a client could not be given an answer that there is.
func undelivered(err error) *sluice.Error {
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		return e
	}
	return &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left", Err: err}
}
