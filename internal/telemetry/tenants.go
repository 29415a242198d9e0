package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxTenants is how many tenants have series of their own.
const MaxTenants = 50

// scoreHalfLife is how fast past work fades from a tenant's rank.
const scoreHalfLife = 10 * time.Minute

// tally is what one tenant, or all others together, have done. Every field only
// grows while the series lives.
type tally struct {
	requests, rejected, tokens, cost int64
}

func (t *tally) add(o tally) {
	t.requests += o.requests
	t.rejected += o.rejected
	t.tokens += o.tokens
	t.cost += o.cost
}

// ranked is a tenant with series of its own.
type ranked struct {
	tally
	score int64
}

// candidate is a tenant that is counted under "other" and may rise. Its score
// is exact since it took the place; places are few, so a tenant that does
// little loses its place to the next one.
type candidate struct{ score int64 }

// tenants keeps one tally for each of the MaxTenants that do the most work and
// one for the rest. It is a collector: the series are read at scrape time.
type tenants struct {
	descs [4]*prometheus.Desc
	now   func() time.Time

	mu         sync.Mutex // guards what follows
	top        map[string]*ranked
	candidates map[string]*candidate
	other      tally
	floor      int64 // no score in top is less: scores only grow until they are halved
	decayed    time.Time
}

func newTenants(now func() time.Time, descs [4]*prometheus.Desc) *tenants {
	return &tenants{
		descs: descs, now: now, decayed: now(),
		top: make(map[string]*ranked), candidates: make(map[string]*candidate),
	}
}

// observe adds to a tenant's tally. Work, in tokens, is what ranks; a request
// counts as one token so that a tenant that is only rejected is seen too.
func (t *tenants) observe(tenant string, d tally) {
	if tenant == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decay()
	work := d.tokens + d.requests
	if r, ok := t.top[tenant]; ok {
		r.add(d)
		r.score += work
		return
	}
	if len(t.top) < MaxTenants {
		t.top[tenant] = &ranked{tally: d, score: work}
		return
	}
	t.other.add(d)
	t.contend(tenant, work)
}

// contend credits a tenant without series and promotes it when it has done more
// than the least of those that have them. The tenant's past stays in "other"
// and its own series start from zero, so that no sum ever falls.
func (t *tenants) contend(tenant string, work int64) {
	c, ok := t.candidates[tenant]
	if !ok {
		if len(t.candidates) >= MaxTenants {
			name, least := t.leastCandidate()
			if least.score > work {
				least.score -= work // it takes many small newcomers to displace one that works
				return
			}
			delete(t.candidates, name)
		}
		c = &candidate{}
		t.candidates[tenant] = c
	}
	c.score += work
	if c.score <= t.floor {
		return
	}
	name, least := t.leastTop()
	t.floor = least.score
	if c.score <= least.score {
		return
	}
	t.other.add(least.tally)
	delete(t.top, name)
	delete(t.candidates, tenant)
	t.candidates[name] = &candidate{score: least.score}
	t.top[tenant] = &ranked{score: c.score}
}

func (t *tenants) leastTop() (name string, r *ranked) {
	for k, v := range t.top {
		if r == nil || v.score < r.score || v.score == r.score && k < name {
			name, r = k, v
		}
	}
	return name, r
}

func (t *tenants) leastCandidate() (name string, c *candidate) {
	for k, v := range t.candidates {
		if c == nil || v.score < c.score || v.score == c.score && k < name {
			name, c = k, v
		}
	}
	return name, c
}

// decay halves every score once per half-life that has gone by.
func (t *tenants) decay() {
	now := t.now()
	for n := 0; now.Sub(t.decayed) >= scoreHalfLife; n++ {
		if n == 63 { // every score is zero by now
			t.decayed, t.floor = now, 0
			return
		}
		t.decayed = t.decayed.Add(scoreHalfLife)
		t.floor /= 2
		for _, r := range t.top {
			r.score /= 2
		}
		for _, c := range t.candidates {
			c.score /= 2
		}
	}
}

// Describe implements prometheus.Collector.
func (t *tenants) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range t.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (t *tenants) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	send := func(name string, v tally) {
		for i, n := range [4]int64{v.requests, v.rejected, v.tokens, v.cost} {
			ch <- prometheus.MustNewConstMetric(t.descs[i], prometheus.CounterValue, float64(n), name)
		}
	}
	for name, r := range t.top {
		if name == Other { // a tenant may be called so; one series, one sum
			continue
		}
		send(name, r.tally)
	}
	rest := t.other
	if r, ok := t.top[Other]; ok {
		rest.add(r.tally)
	}
	send(Other, rest)
}
