package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice"
	"sluice/internal/sched"
)

// MaxContracts is how many contracts have series of their own, in the order of
// pools and tenants; the others are one sum.
const MaxContracts = 200

// queueDescs describe what is read of the pools' queues.
type queueDescs struct {
	depth, oldest, rate, gap, refused, gathering *prometheus.Desc // by class but for the last
	reserve, used, overflow                      *prometheus.Desc // of contracts
}

func newQueueDescs(m *Metrics) queueDescs {
	return queueDescs{
		depth:     m.desc("sluice_queue_depth", "gauge", "Requests waiting.", "pool", "class"),
		oldest:    m.desc("sluice_queue_oldest_seconds", "gauge", "How long the oldest request has waited.", "pool", "class"),
		rate:      m.desc("sluice_queue_service_rate", "gauge", "Work served per second over the last ten to twenty seconds: input and output tokens as the pool weighs them.", "pool", "class"),
		gap:       m.desc("sluice_queue_fairness_gap", "gauge", "Largest less least virtual time of the tenants that compete now, in work per unit of weight.", "pool", "class"),
		refused:   m.desc("sluice_queue_refused_total", "counter", "Requests that got no place, on arrival or after a wait, by reason: limits and scarce capacity.", "pool", "class", "reason"),
		gathering: m.desc("sluice_queue_gathering", "gauge", "1 while what becomes free is kept for a request that lacks it.", "pool"),
		reserve:   m.desc("sluice_contract_reserve", "gauge", "Capacity that contracts reserve: slots, kv_tokens, work_per_second.", "pool", "tenant", "dimension"),
		used:      m.desc("sluice_contract_used", "gauge", "What of it runs inside: slots, kv_tokens.", "pool", "tenant", "dimension"),
		overflow:  m.desc("sluice_contract_overflow", "gauge", "Requests of a tenant with a contract that run outside of it.", "pool", "tenant"),
	}
}

func (q *queueDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{q.depth, q.oldest, q.rate, q.gap, q.refused, q.gathering, q.reserve, q.used, q.overflow} {
		ch <- d
	}
}

// queueSum is a class of the pools that share a label: sums, and of ages and gaps
// the largest.
type queueSum struct {
	depth   int
	oldest  time.Duration
	rate    int64
	gap     int64
	refused sched.Refusals
}

func (s *queueSum) add(c *sched.ClassView) {
	s.depth += c.Waiting
	s.oldest = max(s.oldest, c.Oldest)
	s.rate += c.Rate
	s.gap = max(s.gap, c.Gap)
	for i, n := range c.Refused {
		s.refused[i] += n
	}
}

// queues tells of the queues.
func (l *levels) queues(all []PoolLevel, ch chan<- prometheus.Metric) {
	type key struct {
		pool  string
		class sluice.Class
	}
	sum, gathering := make(map[key]*queueSum), make(map[string]bool)
	for i := range all {
		p := &all[i]
		name := l.m.pools.label(string(p.Pool))
		gathering[name] = gathering[name] || p.Gathering
		for c := range p.Classes {
			k := key{name, sluice.Class(c)}
			if sum[k] == nil {
				sum[k] = &queueSum{}
			}
			sum[k].add(&p.Classes[c])
		}
	}
	send := func(d *prometheus.Desc, n float64, label ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, label...)
	}
	for k, s := range sum {
		class := k.class.String()
		send(l.queue.depth, float64(s.depth), k.pool, class)
		send(l.queue.oldest, s.oldest.Seconds(), k.pool, class)
		send(l.queue.rate, float64(s.rate), k.pool, class)
		send(l.queue.gap, float64(s.gap), k.pool, class)
		s.refused.Each(func(why sluice.Reason, n int64) {
			ch <- prometheus.MustNewConstMetric(l.queue.refused, prometheus.CounterValue, float64(n), k.pool, class, why.String())
		})
	}
	for name, on := range gathering {
		send(l.queue.gathering, oneIf(on), name)
	}
	l.contracts(all, send)
}

// contractSum is one contract, or several that share a label.
type contractSum struct {
	pool, tenant  string
	reserve, used [3]int64 // slots, KV, work per second
	overflow      int
}

// contracts tells of the first MaxContracts contracts, and of the others as one. A
// tenant becomes a label because the configuration gives it a contract.
func (l *levels) contracts(all []PoolLevel, send func(*prometheus.Desc, float64, ...string)) {
	var rows []contractSum
	for i := range all {
		name := l.m.pools.label(string(all[i].Pool))
		for _, k := range all[i].Contracts {
			row := contractSum{pool: name, tenant: string(k.Tenant), reserve: [3]int64{k.Slots, int64(k.KV), k.WorkPerSecond}, used: [3]int64{k.Used[sched.Slots], k.Used[sched.KV]}, overflow: k.Over}
			if name == Other {
				row.tenant = Other
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b contractSum) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.tenant, b.tenant))
	})
	for i := range rows {
		if i >= MaxContracts {
			rows[i].pool, rows[i].tenant = Other, Other
		}
	}
	merged := make(map[[2]string]*contractSum)
	for i := range rows {
		r := &rows[i]
		m := merged[[2]string{r.pool, r.tenant}]
		if m == nil {
			merged[[2]string{r.pool, r.tenant}] = r
			continue
		}
		for d := range m.reserve {
			m.reserve[d] += r.reserve[d]
			m.used[d] += r.used[d]
		}
		m.overflow += r.overflow
	}
	for _, r := range merged {
		for d, name := range [...]string{"slots", "kv_tokens", "work_per_second"} {
			if r.reserve[d] == 0 {
				continue
			}
			send(l.queue.reserve, float64(r.reserve[d]), r.pool, r.tenant, name)
			if d < 2 {
				send(l.queue.used, float64(r.used[d]), r.pool, r.tenant, name)
			}
		}
		send(l.queue.overflow, float64(r.overflow), r.pool, r.tenant)
	}
}
