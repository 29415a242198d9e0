package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/route"
)

// affinityDescs describe what is read of pools whose requests keep to the backends
// that hold their prefixes.
type affinityDescs struct{ choices, tokens, blocks, bytes *prometheus.Desc }

func newAffinityDescs(m *Metrics) affinityDescs {
	return affinityDescs{
		choices: m.desc("sluice_affinity_choices_total", "counter", "Attempts by where they went: warm (where their prefix is), saturated (elsewhere, since that was too busy), quantum (elsewhere, since their tenant had brought it too much more than others), cold (their prefix was nowhere).", "pool", "result"),
		tokens:  m.desc("sluice_affinity_tokens_total", "counter", "Input tokens: expected to be cached where their attempts went, read from caches as backends reported, and input, all that these reported.", "pool", "kind"),
		blocks:  m.desc("sluice_affinity_index_blocks", "gauge", "Blocks of prompts that are believed to be cached somewhere.", "pool"),
		bytes:   m.desc("sluice_affinity_index_bytes", "gauge", "Memory that remembering them takes, about.", "pool"),
	}
}

func (a *affinityDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{a.choices, a.tokens, a.blocks, a.bytes} {
		ch <- d
	}
}

// affinity tells of choices by prefix. Pools that share a label are one sum.
func (l *levels) affinity(all []PoolLevel, ch chan<- prometheus.Metric) {
	sum := make(map[string]route.ChoiceCounts)
	for i := range all {
		if a := all[i].Affinity; a != nil {
			name := l.m.pools.label(string(all[i].Pool))
			s := sum[name]
			s.Add(a)
			sum[name] = s
		}
	}
	for name, s := range sum {
		count := func(d *prometheus.Desc, n int64, word string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), name, word)
		}
		count(l.affine.choices, s.Warm, "warm")
		count(l.affine.choices, s.Saturated, "saturated")
		count(l.affine.choices, s.Quantum, "quantum")
		count(l.affine.choices, s.Cold, "cold")
		count(l.affine.tokens, int64(s.Expected), "expected")
		count(l.affine.tokens, int64(s.Read), "read")
		count(l.affine.tokens, int64(s.Told), "input")
		ch <- prometheus.MustNewConstMetric(l.affine.blocks, prometheus.GaugeValue, float64(s.Blocks), name)
		ch <- prometheus.MustNewConstMetric(l.affine.bytes, prometheus.GaugeValue, float64(s.Memory), name)
	}
}
