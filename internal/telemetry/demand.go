package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/demand"
)

// demandDescs describe what pools are asked for.
type demandDescs struct{ ratio, replicas, desired *prometheus.Desc }

func newDemandDescs(m *Metrics) demandDescs {
	return demandDescs{
		ratio:    m.desc("sluice_pool_demand_ratio", "gauge", "What is asked for of a pool, of what its serving backends supply, over the last ten seconds: arrivals, with those refused for want of room, and what waited before. Dimensions of which the supply is known: slots, kv_tokens, prefill, decode, engine (both of these together), and the providers' rates per minute.", "pool", "dimension"),
		replicas: m.desc("sluice_pool_replicas", "gauge", "Replicas that serve, of engines that you run.", "pool"),
		desired:  m.desc("sluice_pool_desired_replicas", "gauge", "Replicas that the pool should have, by the demand of a minute and its target: see docs/operations/autoscaling.md.", "pool"),
	}
}

func (d *demandDescs) describe(ch chan<- *prometheus.Desc) {
	for _, x := range []*prometheus.Desc{d.ratio, d.replicas, d.desired} {
		ch <- x
	}
}

// demands tells of them; of pools that share a label the largest ratios, and the sums of
// replicas.
func (l *levels) demands(all []PoolLevel, gauge func(*prometheus.Desc, float64, ...string)) {
	type sum struct {
		ratios            demand.Ratios
		scaled            bool
		replicas, desired int64
	}
	pools := make(map[string]*sum)
	for i := range all {
		d := &all[i].Demand
		name := l.m.pools.label(string(all[i].Pool))
		s := pools[name]
		if s == nil {
			s = &sum{ratios: d.Ratios}
			pools[name] = s
		}
		for k, n := range d.Ratios {
			s.ratios[k] = max(s.ratios[k], n)
		}
		if d.Scaled {
			s.scaled, s.replicas, s.desired = true, s.replicas+d.Replicas.Serving, s.desired+d.Desired
		}
	}
	for name, s := range pools {
		for k, n := range s.ratios {
			if n >= 0 {
				gauge(l.demand.ratio, float64(n)/1e6, name, demand.Dimension(k).String())
			}
		}
		if s.scaled {
			gauge(l.demand.replicas, float64(s.replicas), name)
			gauge(l.demand.desired, float64(s.desired), name)
		}
	}
}
