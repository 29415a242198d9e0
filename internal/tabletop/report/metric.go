package report

import (
	"slices"

	"sluice"
	"sluice/internal/tabletop"
)

// metric is one column of figures.
type metric struct {
	head  string // short, of a column
	about string // a sentence
	show  func(f *tabletop.Figures) quantity
	part  bool // says nothing of everyone together
}

// metrics are in the order in which people need them.
var metrics = []metric{
	{"good/s", "requests completed within every target, per second", func(f *tabletop.Figures) quantity { return amount(f.Goodput) }, false},
	{"SLO", "share of requests that met every target, of those that did not leave by their own will", func(f *tabletop.Figures) quantity {
		if f.Requests == f.Left {
			return quantity{}
		}
		return percent(f.SLO)
	}, false},
	{"TTFT p50", "time from first submission to the first token, waits and resubmissions included: median", timing(func(f *tabletop.Figures) (tabletop.Percentiles, int) { return f.TTFT, 50 }), false},
	{"TTFT p99", "time from first submission to the first token: 99th percentile", timing(func(f *tabletop.Figures) (tabletop.Percentiles, int) { return f.TTFT, 99 }), false},
	{"TPOT p50", "time per output token after the first: median", timing(func(f *tabletop.Figures) (tabletop.Percentiles, int) { return f.TPOT, 50 }), false},
	{"TPOT p99", "time per output token after the first: 99th percentile", timing(func(f *tabletop.Figures) (tabletop.Percentiles, int) { return f.TPOT, 99 }), false},
	{"queue p99", "time in the gateway's queues of those dispatched: 99th percentile", timing(func(f *tabletop.Figures) (tabletop.Percentiles, int) { return f.Queue, 99 }), false},
	{"refused", "refusals that the gateway made, those of resubmissions included", func(f *tabletop.Figures) quantity { return count(refusals(f)) }, false},
	{"share/fair", "share of the work of all, beside the share that max-min fairness by weight and demand would give", share, true},
	{"$/good", "cost of all requests by useful completion", func(f *tabletop.Figures) quantity {
		if f.Good == 0 {
			return quantity{}
		}
		return dollars(f.PerGood)
	}, false},
}

func timing(of func(f *tabletop.Figures) (tabletop.Percentiles, int)) func(f *tabletop.Figures) quantity {
	return func(f *tabletop.Figures) quantity {
		p, at := of(f)
		switch {
		case p.Count == 0:
			return quantity{}
		case at == 50:
			return duration(p.P50)
		}
		return duration(p.P99)
	}
}

func share(f *tabletop.Figures) quantity {
	if f.Share < 0 || f.FairShare < 0 {
		return quantity{}
	}
	s, fair := percent(f.Share), percent(f.FairShare)
	return quantity{s.Num + "/" + fair.Num, "%"}
}

// reasonsOf lists the reasons for which groups were refused, in the order of the
// vocabulary.
func reasonsOf(groups []group) (out []sluice.Reason) {
	for _, g := range groups {
		for _, f := range g.of {
			if f == nil {
				continue
			}
			for _, r := range f.Reasons {
				if r.Count > 0 && !slices.Contains(out, r.Reason) {
					out = append(out, r.Reason)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// refusedFor is the metric of refusals for one reason.
func refusedFor(reason sluice.Reason) metric {
	show := func(f *tabletop.Figures) quantity {
		n := int64(0)
		for _, r := range f.Reasons {
			if r.Reason == reason {
				n += r.Count
			}
		}
		return count(n)
	}
	return metric{reason.String(), "refusals for this reason", show, false}
}
