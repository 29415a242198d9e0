package live

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice"
	"sluice/internal/admit"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/upstream"
)

// history is what happened, by the hooks and by the ledger.
type history struct {
	start  time.Time
	target func(sluice.BackendID) (*upstream.Target, bool)

	mu       sync.Mutex
	requests map[sluice.RequestID]*life
	order    []*life // by arrival
	entries  []ledger.Entry
	begun    int // waits that began
	granted  int
	left     int // waits that ended without a place
	attempts []dispatch
	denied   map[string]int // decisions on retries, by why there was none; empty: there was one
}

// life is one request's. Times are since the start of the run; 0 is never.
type life struct {
	call     engine.Call
	arrived  time.Duration
	granted  time.Duration
	first    time.Duration // its prefill is free
	ended    time.Duration
	backend  sluice.BackendID
	begun    bool // it has waited
	settled  int
	refusals int
}

func (l *history) now() time.Duration { return max(time.Since(l.start), 1) }

// of runs f on a request's life.
func (l *history) of(id sluice.RequestID, f func(*life)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == nil {
		l.requests = map[sluice.RequestID]*life{}
	}
	q := l.requests[id]
	if q == nil {
		q = &life{arrived: l.now()}
		l.requests[id] = q
		l.order = append(l.order, q)
	}
	f(q)
}

func (l *history) admission() admit.Hooks {
	return admit.Hooks{
		Queued: func(c engine.Call, _ engine.Verdict) {
			l.of(c.ID, func(q *life) { q.call, q.begun = c, true; l.begun++ })
		},
		Refused: func(c engine.Call, _ *sluice.Error) {
			l.of(c.ID, func(q *life) {
				q.call = c
				q.refusals++
				if q.begun {
					l.left++
				}
			})
		},
		Granted: func(c engine.Call, g engine.Grant) {
			l.of(c.ID, func(q *life) {
				q.granted, q.backend = l.now(), g.Backend.ID
				l.granted++
				l.attempts = append(l.attempts, dispatch{q.granted, c.Principal.Tenant, g.Backend.ID, g.Attempt > 1})
			})
		},
		Settled: func(c engine.Call, _ engine.Actual, err error) {
			l.of(c.ID, func(q *life) {
				q.ended = l.now()
				if q.settled++; err != nil {
					q.settled = -1
				}
			})
		},
	}
}

func (l *history) exchange() exchange.Hooks {
	return exchange.Hooks{
		Retry: func(_ sluice.BackendID, denied string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.denied == nil {
				l.denied = map[string]int{}
			}
			l.denied[denied]++
		},
		FirstToken: func(g engine.Grant, _ time.Duration) {
			l.of(g.ID, func(q *life) { q.first = l.now() })
		},
	}
}

// gone is how many left while they waited, by the ledger.
func (l *history) gone() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.entries {
		if e := &l.entries[i]; e.Attempt == 0 && e.Outcome == sluice.Cancelled {
			n++
		}
	}
	return n
}

// audit judges that each request ended once.
func (l *history) audit(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	finals := map[sluice.RequestID]int{}
	for i := range l.entries {
		if l.entries[i].Final {
			finals[l.entries[i].Request]++
		}
	}
	for id, q := range l.requests {
		if q.settled+q.refusals != 1 || finals[id] != 1 {
			t.Errorf("%s of %s was settled %d times, refused %d times, and has %d final entries", id, q.call.Principal.Tenant, q.settled, q.refusals, finals[id])
		}
	}
}

// turn is, at most, how long a tenant's requests had to wait for what runs to end:
// from the arrival of a request until what ran then and has ended by then, with what
// was free, was as much as it needs in every dimension; alone, or with those of its
// own that came before and one of each other tenant that waited then, as those that
// stand equal to it may go first. What started later does not count.
func (l *history) turn(tenant sluice.TenantID, pool *route.Pool, from, to time.Duration, alone bool) (worst time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	granted := slices.DeleteFunc(slices.Clone(l.order), func(q *life) bool { return q.granted == 0 })
	slices.SortStableFunc(granted, func(a, b *life) int { return cmp.Compare(a.granted, b.granted) })
	for _, q := range granted {
		if q.call.Principal.Tenant != tenant || q.arrived < from || q.arrived >= to || q.granted == q.arrived {
			continue
		}
		need := []*life{q}
		seen := map[sluice.TenantID]bool{}
		for _, o := range granted {
			id := o.call.Principal.Tenant
			if alone || o == q || o.arrived > q.arrived || o.granted <= q.arrived || seen[id] || id == tenant && o.granted > q.granted {
				continue
			}
			seen[id] = id != tenant
			need = append(need, o)
		}
		worst = max(worst, until(granted, need, pool, q.arrived))
	}
	return worst
}

// amounts is one figure for each of slots, memory and prefill.
type amounts [3]int64

func (a *amounts) add(b amounts, sign int64) {
	for d := range a {
		a[d] += sign * b[d]
	}
}

func needOf(q *life) amounts {
	w := q.call.Work
	return amounts{1, int64(w.KV()), int64(w.Input - w.CachedInput)}
}

// until is how long a pool takes from a moment on to have room for some requests.
func until(all, some []*life, pool *route.Pool, from time.Duration) time.Duration {
	var most, one, need, used amounts
	for _, b := range pool.Backends {
		c := amounts{b.Capacity.Concurrency, int64(b.Capacity.KVTokens), int64(b.Capacity.PrefillTokens)}
		most.add(c, 1)
		one = c
	}
	least := func(n amounts) amounts { // what is larger than a backend takes all of it
		for d := range n {
			if one[d] > 0 {
				n[d] = min(n[d], one[d])
			}
		}
		return n
	}
	for _, q := range some {
		need.add(least(needOf(q)), 1)
	}
	type change struct {
		at   time.Duration
		what amounts
	}
	var changes []change
	for _, o := range all {
		if o.granted > from {
			break
		}
		if o.ended != 0 && o.ended <= from {
			continue
		}
		n := least(needOf(o))
		prefill := amounts{0, 0, n[2]}
		n[2] = 0
		used.add(n, 1)
		changes = append(changes, change{o.ended, n})
		if first := cmp.Or(o.first, o.ended); first > from {
			used.add(prefill, 1)
			changes = append(changes, change{first, prefill})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	at := from
	for _, c := range changes {
		fits := true
		for d := range need {
			fits = fits && (most[d] == 0 || used[d] == 0 || used[d]+need[d] <= most[d])
		}
		if fits {
			break
		}
		used.add(c.what, -1)
		at = c.at
	}
	return at - from
}
