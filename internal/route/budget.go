package route

import (
	"hash/maphash"
	"time"

	"sluice"
	"sluice/internal/byname"
)

// RetryPolicy bounds the attempts that follow failed ones. Zero fields take the
// defaults; a negative share or minimum is none.
type RetryPolicy struct {
	Attempts int   // most attempts of one request, the first included
	Share    int64 // retries per thousand first attempts, over RetryWindow
	Minimum  int64 // retries per second that are admitted however few first attempts there are

	// Unbounded admits every retry up to Attempts: there is no budget, and neither
	// an open breaker nor a pool that sheds is looked at.
	Unbounded bool
}

// Defaults of RetryPolicy.
const (
	DefaultAttempts     = 4
	DefaultRetryShare   = 100 // 10 %
	DefaultRetryMinimum = 1
)

// Bounds of RetryPolicy.
const (
	MaxAttempts     = 10
	MaxRetryMinimum = 1000
)

// RetryWindow is over what time retries are held against first attempts.
const RetryWindow = 10 * time.Second

// ShedFor is how long a pool that had no room for a request counts as one that
// sheds: it gets no retries.
const ShedFor = time.Second

// NaiveRetries is what many gateways do: two retries, whatever else happens.
func NaiveRetries() RetryPolicy { return RetryPolicy{Attempts: 3, Unbounded: true} }

// WithDefaults fills zero fields.
func (p RetryPolicy) WithDefaults() RetryPolicy {
	if p.Attempts == 0 {
		p.Attempts = DefaultAttempts
	}
	if p.Share == 0 {
		p.Share = DefaultRetryShare
	}
	if p.Minimum == 0 {
		p.Minimum = DefaultRetryMinimum
	}
	return p
}

// allows is how many retries a window of so many first attempts may have.
func (p *RetryPolicy) allows(firsts int64) int64 {
	return max(max(p.Share, 0)*firsts/1000, max(p.Minimum, 0)*int64(RetryWindow/time.Second))
}

// Denied is why a failed attempt is not followed by another, or a late one has none
// beside it; empty if it is. The words are shown by `sluice explain`, the log and
// metrics.
type Denied string

// Why a further attempt was denied.
const (
	Allowed        Denied = ""
	DeniedBackend  Denied = "retry_budget_backend" // of the backend that would be tried
	DeniedTenant   Denied = "retry_budget_tenant"
	DeniedFleet    Denied = "retry_budget_fleet" // of all backends and tenants together
	DeniedBreaker  Denied = "breaker_open"       // of the backends that are left
	DeniedShedding Denied = "shedding"           // the pool that would be tried has no room for first attempts
	DeniedAttempts Denied = "attempts"           // it had as many as it may
	DeniedNowhere  Denied = "no_backend"         // none is left
	DeniedCause    Denied = "not_retryable"      // it failed for what would fail elsewhere too

	// Of a hedge alone.
	DeniedPlace Denied = "no_place" // no other backend has a place to spare now
	DeniedOver  Denied = "over"     // the request's content has come, it has been hedged, or hedges nothing any more
)

// Budgeted reports whether a retry budget is what denied it.
func (d Denied) Budgeted() bool {
	return d == DeniedBackend || d == DeniedTenant || d == DeniedFleet
}

// MaxRetryTenants is how many tenants have a budget of their own at a time. Those
// beyond share one.
const MaxRetryTenants = 4096

// Retries is the retry budgets of one engine: of all attempts, of each tenant, and
// of each place, which keeps its own. The zero value has the default policy.
type Retries struct {
	policy RetryPolicy
	base   time.Time // of sub-buckets
	at     int64     // the latest sub-bucket seen
	fleet  window

	tenants        byname.Index[sluice.TenantID, retrier, retriers]
	newest, oldest *retrier // by their last attempt
	others         window   // of tenants for which there is no room
}

// retrier is one tenant's budget.
type retrier struct {
	id           sluice.TenantID
	window       window
	newer, older *retrier
}

// retriers is how the budgets of tenants are found.
type retriers struct{}

func (retriers) Name(t *retrier) sluice.TenantID { return t.id }

func (retriers) Hash(seed maphash.Seed, id sluice.TenantID) uint64 {
	return maphash.String(seed, string(id))
}

// Configure puts a policy into force. What was counted stays.
func (r *Retries) Configure(p RetryPolicy) { r.policy = p.WithDefaults() }

// Policy is the one in force.
func (r *Retries) Policy() RetryPolicy { return r.policy.WithDefaults() }

// tick takes the time; an older moment counts as the latest one seen.
func (r *Retries) tick(now time.Time) int64 {
	if r.base.IsZero() {
		r.base = now
		r.Configure(r.policy)
	}
	r.at = max(r.at, int64(now.Sub(r.base)/bucketSpan))
	return r.at
}

// First counts the first attempt of a request of a tenant, on p.
func (r *Retries) First(now time.Time, tenant sluice.TenantID, p *Place) {
	at := r.tick(now)
	r.fleet.add(at, 1, 0)
	p.retries.add(at, 1, 0)
	r.of(tenant).add(at, 1, 0)
}

// Allows tells whether the budgets of all and of a tenant have room for a retry.
func (r *Retries) Allows(now time.Time, tenant sluice.TenantID) Denied {
	at := r.tick(now)
	switch {
	case r.policy.Unbounded:
		return Allowed
	case r.fleet.left(at, &r.policy) <= 0:
		return DeniedFleet
	case r.of(tenant).left(at, &r.policy) <= 0:
		return DeniedTenant
	}
	return Allowed
}

// Admit counts a retry against the budgets of all and of a tenant: it is given a
// place in a queue. REQUIRES: Allows.
func (r *Retries) Admit(now time.Time, tenant sluice.TenantID) {
	at := r.tick(now)
	r.fleet.add(at, 0, 1)
	r.of(tenant).add(at, 0, 1)
}

// AllowsOn tells whether p may be given a retry: its breaker is closed and its
// budget has room.
func (r *Retries) AllowsOn(now time.Time, p *Place) Denied {
	at := r.tick(now)
	switch {
	case r.policy.Unbounded:
		return Allowed
	case p.Health.Open():
		return DeniedBreaker
	case p.retries.left(at, &r.policy) <= 0:
		return DeniedBackend
	}
	return Allowed
}

// Retried counts a retry against the budget of p, which it is dispatched to.
// REQUIRES: AllowsOn.
func (r *Retries) Retried(now time.Time, p *Place) { p.retries.add(r.tick(now), 0, 1) }

// Left is how many retries there is room for in all; false if there is no bound.
func (r *Retries) Left(now time.Time) (int64, bool) {
	return r.fleet.left(r.tick(now), &r.policy), !r.policy.Unbounded
}

// LeftOn is how many retries p may be given, other bounds aside; false if there is
// no bound.
func (r *Retries) LeftOn(now time.Time, p *Place) (int64, bool) {
	at := r.tick(now)
	if p.Health.Open() {
		return 0, !r.policy.Unbounded
	}
	return p.retries.left(at, &r.policy), !r.policy.Unbounded
}

// of finds or makes a tenant's window, as the newest. Where there is no room for
// it, and none is idle, it is the one that the others share.
func (r *Retries) of(id sluice.TenantID) *window {
	if r.newest != nil && r.newest.id == id {
		return &r.newest.window
	}
	t := r.tenants.Find(id)
	switch {
	case t != nil:
		r.unlink(t)
	case r.tenants.Len() < MaxRetryTenants:
		t = &retrier{id: id}
		r.tenants.Add(t)
	case r.oldest.window.idle(r.at):
		t = r.oldest
		r.unlink(t)
		r.tenants.Remove(t)
		*t = retrier{id: id}
		r.tenants.Add(t)
	default:
		return &r.others
	}
	t.older, r.newest = r.newest, t
	if t.older == nil {
		r.oldest = t
	} else {
		t.older.newer = t
	}
	return &t.window
}

func (r *Retries) unlink(t *retrier) {
	if t.newer == nil {
		r.newest = t.older
	} else {
		t.newer.older = t.older
	}
	if t.older == nil {
		r.oldest = t.newer
	} else {
		t.older.newer = t.newer
	}
	t.newer, t.older = nil, nil
}

// A window is counted in sub-buckets.
const (
	numBuckets = 40
	bucketSpan = RetryWindow / numBuckets
)

// window counts attempts over the last RetryWindow. Both of its sums err on the
// safe side: of first attempts it is over the newest 40 sub-buckets, which reach
// back less than 10 s, of retries over one more, which reach back further.
type window struct {
	buckets         [numBuckets + 1]struct{ firsts, retries uint32 }
	at              int64 // the newest sub-bucket
	firsts, retries int64
}

// roll makes at the newest sub-bucket.
func (w *window) roll(at int64) {
	if at-w.at > numBuckets {
		*w = window{at: at}
		return
	}
	for w.at < at {
		w.at++
		b := &w.buckets[w.at%(numBuckets+1)] // was the oldest
		w.retries -= int64(b.retries)
		b.firsts, b.retries = 0, 0
		w.firsts -= int64(w.buckets[(w.at+1)%(numBuckets+1)].firsts) // is the oldest
	}
}

func (w *window) add(at int64, firsts, retries uint32) {
	w.roll(at)
	b := &w.buckets[at%(numBuckets+1)]
	b.firsts += firsts
	b.retries += retries
	w.firsts += int64(firsts)
	w.retries += int64(retries)
}

// left is how many retries there is room for.
func (w *window) left(at int64, p *RetryPolicy) int64 {
	w.roll(at)
	return max(0, p.allows(w.firsts)-w.retries)
}

// idle reports whether nothing that was counted still counts.
func (w *window) idle(at int64) bool { return at-w.at > numBuckets }
