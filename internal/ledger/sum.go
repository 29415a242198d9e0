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
	s.Usage.Add(e.Usage)
	s.Cost += e.Cost
	s.CostHigh += max(e.Cost, e.CostHigh)
}
