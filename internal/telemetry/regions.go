package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/engine"
	"sluice/internal/route"
)

// MaxRegions caps the label values of regions.
const MaxRegions = 64

// regionDescs describe what is read of regions, where a model has a locality.
type regionDescs struct{ attempts, lost, share, headroom, used, waiting *prometheus.Desc }

func newRegionDescs(m *Metrics) regionDescs {
	return regionDescs{
		attempts: m.desc("sluice_region_attempts_total", "counter", "Attempts that began in the region, of models with a locality: of requests at home there, and of those away from a home elsewhere.", "region", "origin"),
		lost:     m.desc("sluice_region_lost", "gauge", "1 while no backend of a pool in the region takes requests: those at home there go elsewhere.", "region"),
		share:    m.desc("sluice_region_share", "gauge", "Part of the requests at home in the region that it may have, from 0 to 1: less than 1 while it is lost, or comes back by its ramp.", "region"),
		headroom: m.desc("sluice_region_headroom", "gauge", "Part of the region's capacity that requests at home elsewhere may occupy, from 0 to 1.", "region"),
		used:     m.desc("sluice_region_headroom_used", "gauge", "Used part of that, from 0 to 1: in the pool and the dimension, slots, memory or prefill, where it is most.", "region"),
		waiting:  m.desc("sluice_region_away_waiting", "gauge", "Requests at home elsewhere that wait for room in the region's headroom.", "region"),
	}
}

func (d *regionDescs) describe(ch chan<- *prometheus.Desc) {
	for _, x := range []*prometheus.Desc{d.attempts, d.lost, d.share, d.headroom, d.used, d.waiting} {
		ch <- x
	}
}

// regions tells of them; those that share a label as one, the worst of them.
func (l *levels) regions(all []engine.RegionView, ch chan<- prometheus.Metric) {
	sum := make(map[string]engine.RegionView)
	for i := range all {
		r := &all[i]
		name := l.m.regions.label(r.Name)
		s, seen := sum[name]
		if !seen {
			s = engine.RegionView{State: r.State, Share: r.Share, Headroom: r.Headroom}
		}
		if r.State == route.SiteLost {
			s.State = r.State
		}
		s.Share, s.Headroom, s.Used = min(s.Share, r.Share), min(s.Headroom, r.Headroom), max(s.Used, r.Used)
		s.Home, s.Away, s.Waiting = s.Home+r.Home, s.Away+r.Away, s.Waiting+r.Waiting
		sum[name] = s
	}
	for name, s := range sum {
		tell := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{name}, labels...)...)
		}
		tell(l.region.attempts, prometheus.CounterValue, float64(s.Home), "home")
		tell(l.region.attempts, prometheus.CounterValue, float64(s.Away), "away")
		tell(l.region.lost, prometheus.GaugeValue, oneIf(s.State == route.SiteLost))
		tell(l.region.share, prometheus.GaugeValue, float64(s.Share)/1000)
		tell(l.region.headroom, prometheus.GaugeValue, float64(s.Headroom)/1000)
		tell(l.region.used, prometheus.GaugeValue, float64(s.Used)/1000)
		tell(l.region.waiting, prometheus.GaugeValue, float64(s.Waiting))
	}
}
