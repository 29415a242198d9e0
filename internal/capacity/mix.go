package capacity

import (
	"fmt"

	"sluice"
)

// Row is one line of a mix: what a tenant sends.
type Row struct {
	Tenant   string  `json:"tenant,omitempty" jsonschema:"whose requests these are, or what they are for"`
	Share    *Share  `json:"share,omitempty" jsonschema:"part of rps that this row is: 50%; all of it if left out"`
	RPS      *Rate   `json:"rps,omitempty" jsonschema:"requests per second, or per another time: 30, 20/min; the file's rps if left out"`
	RPM      *Amount `json:"rpm,omitempty" jsonschema:"requests per minute, in place of rps"`
	Input    Lengths `json:"input" jsonschema:"tokens of the prompt: 1500, or 1500,2%:100k, or mean, p50, p90, p99, max and long"`
	Output   Lengths `json:"output" jsonschema:"tokens of the answer, in the same form"`
	CacheHit Share   `json:"cache_hit,omitzero" jsonschema:"part of the input that the prefix cache has: 60%"`
	Retries  Part    `json:"retries,omitzero" jsonschema:"attempts beyond the first, per request: 10%"`
}

// Fleet is what a file says of the machines.
type Fleet struct {
	Profile string `json:"profile,omitempty" jsonschema:"what one replica is: a name that sluice capacity profiles lists"`
	GPUs    int64  `json:"gpus,omitempty" jsonschema:"GPUs of the fleet; left out: as many as are needed"`
	Lose    Share  `json:"lose,omitzero" jsonschema:"part of the GPUs that may fail together: 25%"`
	Target  Share  `json:"target,omitzero" jsonschema:"part of the engines' time that may be planned for: 80%; left out: all of it"`
}

// MixFile is a workload of several rows before and after a change.
type MixFile struct {
	Fleet
	RPS    *Rate `json:"rps,omitempty" jsonschema:"requests per second of all rows together, which share is of"`
	Before []Row `json:"before" jsonschema:"the rows as they are"`
	After  []Row `json:"after,omitempty" jsonschema:"the rows after the change"`
}

// maxRows bounds the rows of each side.
const maxRows = 1000

// Check reports what is wrong beyond single values, by path. An empty fix is
// none.
func (m *MixFile) Check(report func(path, cause, fix string)) {
	m.Fleet.check(report)
	if len(m.Before) == 0 {
		report("before", "has no row", "write at least one: - {tenant: acme, rps: 10, input: 1k, output: 200}")
	}
	for _, side := range []struct {
		name string
		rows []Row
	}{{"before", m.Before}, {"after", m.After}} {
		if len(side.rows) > maxRows {
			report(side.name, fmt.Sprintf("has %d rows, the bound is %d", len(side.rows), maxRows), "sum rows that are alike")
			continue
		}
		for i := range side.rows {
			at := fmt.Sprintf("%s[%d]", side.name, i)
			if _, err := side.rows[i].Workload(m.RPS); err != nil {
				e := sluice.AsError(err)
				report(at+"."+e.Param, e.Msg, e.Hint)
			}
		}
		if err := overfull(side.rows); err != nil {
			report(side.name, err.Msg, err.Hint)
		}
	}
}

// overfull is what is wrong with rows that are more than all of the file's rps.
func overfull(rows []Row) *sluice.Error {
	var sum Amount
	for i := range rows {
		if r := &rows[i]; r.Share != nil && r.RPS == nil && r.RPM == nil {
			sum = sum.Plus(r.Share.Amount)
		}
	}
	if sum.Cmp(Int(1)) <= 0 {
		return nil
	}
	e := sluice.Invalid("", "has shares of %s%% of the file's rps", sum.Times(Int(100)).Text(1))
	e.Hint = "let them sum up to 100% at most, or write rps in each row"
	return e
}

func (f *Fleet) check(report func(path, cause, fix string)) {
	if f.GPUs < 0 || f.GPUs > MaxGPUs {
		report("gpus", fmt.Sprintf("is not between 1 and %d", MaxGPUs), "")
	}
	if f.Lose.Cmp(Int(1)) >= 0 {
		report("lose", "is the whole fleet", "write a share below 100%, such as 25%")
	}
}

// Workload is what the row asks for. The error names the field.
func (r *Row) Workload(total *Rate) (Workload, error) {
	w := Workload{Name: r.Tenant, Input: r.Input, Output: r.Output, Hit: r.CacheHit, Retries: r.Retries}
	switch {
	case r.RPS != nil && r.RPM != nil:
		e := sluice.Invalid("rpm", "stands beside rps")
		e.Hint = "keep one of them"
		return w, e
	case r.RPM != nil:
		w.Rate.Amount = r.RPM.Over(Int(60))
	case r.RPS != nil:
		w.Rate = *r.RPS
	case total != nil && r.Share != nil:
		w.Rate = *total
	default:
		e := sluice.Invalid("rps", "is missing")
		e.Hint = "write rps: 10 or rpm: 600, or share: 50% with the file's rps"
		return w, e
	}
	if r.Share != nil {
		w.Rate.Amount = w.Rate.Times(r.Share.Amount)
	}
	if err := w.check(); err != nil {
		return w, err
	}
	_, err := w.Demand()
	return w, err
}

// Workloads are the rows of both sides. The error names the row and its field.
func (m *MixFile) Workloads() (before, after []Workload, err error) {
	for _, side := range []struct {
		name string
		rows []Row
		to   *[]Workload
	}{{"before", m.Before, &before}, {"after", m.After, &after}} {
		for i := range side.rows {
			w, err := side.rows[i].Workload(m.RPS)
			if err != nil {
				e := *sluice.AsError(err)
				e.Param = fmt.Sprintf("%s[%d].%s", side.name, i, e.Param)
				return nil, nil, &e
			}
			*side.to = append(*side.to, w)
		}
		if e := overfull(side.rows); e != nil {
			e.Param = side.name
			return nil, nil, e
		}
	}
	return before, after, nil
}

// Comparison is a mix before and after a change, on one fleet.
type Comparison struct {
	Before Plan
	After  *Plan // nil if there is no change
	Ratios Ratios
	Rows   []RowDemand
}

// Ratios are after ÷ before, 0 where there was nothing before.
type Ratios struct{ Requests, Input, Prefill, Output, KV, Engine Amount }

// RowDemand is what one row asks for.
type RowDemand struct {
	After  bool
	Name   string
	Demand Demand
	Share  Amount // of its side's time of the engine
}

// Compare answers a mix. Where the fleet is not given, it is the one that the
// mix before needs.
func Compare(q Question, before, after []Workload) (Comparison, error) {
	var c Comparison
	var err error
	q.Workloads = before
	if c.Before, err = Solve(q); err != nil {
		return c, onSide("before", err)
	}
	if c.Rows, err = q.rows(before, false); err != nil || len(after) == 0 {
		return c, err
	}
	q.Workloads, q.GPUs = after, c.Before.GPUs
	p, err := Solve(q)
	if err != nil {
		return c, onSide("after", err)
	}
	p.Assumed = c.Before.Assumed
	rows, err := q.rows(after, true)
	if err != nil {
		return c, err
	}
	c.After, c.Rows = &p, append(c.Rows, rows...)
	a, b := p.Demand, c.Before.Demand
	c.Ratios = Ratios{
		Requests: a.Requests.Over(b.Requests), Input: a.Input.Over(b.Input), Prefill: a.Prefill.Over(b.Prefill), Output: a.Output.Over(b.Output),
		KV: p.KVUsed.Over(c.Before.KVUsed), Engine: p.Utilisation.Engine.Over(c.Before.Utilisation.Engine),
	}
	return c, nil
}

// rows are the demands of single workloads, each on the engine that all of them
// make together.
func (q Question) rows(ws []Workload, after bool) ([]RowDemand, error) {
	all, err := Total(ws)
	if err != nil {
		return nil, err
	}
	e := q.Replica.engineFor(all)
	whole, _, _ := e.demandOn(all)
	out := make([]RowDemand, len(ws))
	for i, w := range ws {
		d, err := w.Demand()
		if err != nil {
			return nil, err
		}
		u, _, _ := e.demandOn(d)
		out[i] = RowDemand{After: after, Name: w.Name, Demand: d, Share: u.Prefill.Plus(u.Decode).Over(whole.Prefill.Plus(whole.Decode))}
	}
	return out, nil
}

// onSide puts the side before the place of an error within its rows.
func onSide(side string, err error) error {
	e := *sluice.AsError(err)
	if len(e.Param) > 0 && e.Param[0] == '[' {
		e.Param = side + e.Param
	}
	return &e
}
