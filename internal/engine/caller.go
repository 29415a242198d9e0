package engine

import (
	"hash/maphash"
	"time"

	"sluice"
	"sluice/internal/byname"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// caller is what is remembered of a key from its last request: whom that was charged to
// and where it stood. Most requests of a key find the same again, so that one name is
// looked up, and not one for each. Nothing that is decided depends on it: a caller may be
// forgotten at any time, and is as good as new.
type caller struct {
	id   callerID
	used int64 // when it came last, in nanoseconds from the engine's base

	origin origin
	visit  quota.Visit // what origin claims; of no use if that is not known
	seen   sched.Seen
}

// callerID names a caller: what stands for a token's key may be of several tenants.
type callerID struct {
	tenant sluice.TenantID
	key    sluice.KeyID
}

// caller names who asks.
func (c *Call) caller() callerID { return callerID{c.Principal.Tenant, c.Principal.Key} }

// prefetch asks the processor for what an arrival of the caller will work on.
func (c *caller) prefetch() {
	c.visit.Prefetch()
	c.seen.Prefetch()
}

// origin is what the claims of a request follow from, beside its key.
type origin struct {
	user    sluice.UserID
	project sluice.ProjectID
	model   sluice.ModelID
	policy  *sluice.Policy
	edition uint32 // of the table: of the limits of models and the fleet
}

// callers are those that are remembered.
type callers struct {
	index byname.Index[callerID, caller, callerNames]
	order []*caller // in no order that matters; what the hand goes over
	hand  int       // the next to be looked at
}

// callerNames is how callers are found.
type callerNames struct{}

func (callerNames) Name(c *caller) callerID { return c.id }

func (callerNames) Hash(seed maphash.Seed, id callerID) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(seed, string(id.key)) + maphash.String(seed, string(id.tenant))*odd
}

// callerIdle is for how long a caller without requests is remembered at least: as long
// as a bucket may take to refill, after which its accounts may be forgotten too.
const callerIdle = int64(time.Minute)

// of finds or makes the caller of an id, whose hash is known, at a moment. A new one pays
// for looking at two others, and those that are idle are forgotten: there are at most about
// twice as many as are not, and those that were there when the last one was made.
func (cs *callers) of(id callerID, hash uint64, ns int64) *caller {
	c := cs.index.FindHashed(id, hash)
	if c == nil {
		cs.forget(2, ns)
		c = &caller{id: id}
		cs.index.AddHashed(c, hash)
		cs.order = append(cs.order, c)
	}
	c.used = ns
	return c
}

// forget looks at the next n callers and forgets those that are idle.
func (cs *callers) forget(n int, ns int64) {
	for range min(n, len(cs.order)) {
		if cs.hand >= len(cs.order) {
			cs.hand = 0
		}
		at, last := cs.hand, len(cs.order)-1
		c := cs.order[at]
		if ns-c.used < callerIdle {
			cs.hand++
			continue
		}
		cs.order[at], cs.order[last] = cs.order[last], nil
		cs.order = cs.order[:last]
		cs.index.Remove(c)
	}
}

// open finds the request's accounts, most often those of its caller's last one. Where a
// limit has changed, requests that a full gauge kept back may have room now.
func (e *Engine) open(now time.Time, r *request, c *Call, m *route.Model, k *caller) {
	if c.Shadow != nil { // a copy has an account of its own alone, and never waits
		e.book.Open(now, &r.res, e.claimsOf(c, m))
		return
	}
	p := &c.Principal
	r.item.Seen = &k.seen
	k.seen.Recall()
	from := origin{user: p.User, project: p.Project, model: c.Model, policy: p.Policy, edition: e.edition}
	usual := !c.Owed && p.Run == ""
	if usual && k.origin == from && e.book.Reopen(now, &r.res, &k.visit) {
		return
	}
	claims := e.claimsOf(c, m)
	if e.book.Open(now, &r.res, claims) {
		e.unpark()
	}
	if usual {
		k.origin = from
		e.book.Remember(&r.res, len(claims), &k.visit)
	}
}
