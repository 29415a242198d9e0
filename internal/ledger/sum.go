package ledger

import "sluice"

// Sum is what a request took over its attempts. The zero Sum is of none.
type Sum struct {
	Usage    sluice.Usage // Source is that of the least trusted part that took anything
	Cost     sluice.Nano
	CostHigh sluice.Nano
}

// Add adds one entry of the request.
func (s *Sum) Add(e *Entry) {
	t, u := &s.Usage, &e.Usage
	switch {
	case u.Source == sluice.UsageNone:
	case t.Source == sluice.UsageNone:
		t.Source = u.Source
	default:
		t.Source = min(t.Source, u.Source)
	}
	t.Input += u.Input
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.CacheWrite1h += u.CacheWrite1h
	t.AudioInput += u.AudioInput
	t.Output += u.Output
	t.Reasoning += u.Reasoning
	t.AudioOutput += u.AudioOutput
	t.ToolCalls += u.ToolCalls
	t.WebSearches += u.WebSearches
	t.Anomalous = t.Anomalous || u.Anomalous
	if u.ServiceTier != "" {
		t.ServiceTier = u.ServiceTier
	}
	s.Cost += e.Cost
	s.CostHigh += max(e.Cost, e.CostHigh)
}
