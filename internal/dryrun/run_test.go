package dryrun

import (
	"errors"
	"testing"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
)

// table has one model over pools of one backend each.
func table(version string, pools ...string) *route.Table {
	t := &route.Table{Version: version, Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}}
	m := &route.Model{ID: "m"}
	for i, p := range pools {
		row := &price.Row{Provider: "x", Model: "u", Version: version, Rates: price.Rates{Input: sluice.Price(1+i) * 1_000_000_000, Output: 2_000_000_000}}
		t.Pools[sluice.PoolID(p)] = &route.Pool{ID: sluice.PoolID(p), Backends: []*route.Backend{{
			ID: sluice.BackendID(p + "-1"), Provider: "x", Model: "u", Dialect: "openai", Region: p, Weight: 1, Price: row, Context: 1000, Capacity: route.Capacity{Concurrency: 1},
		}}}
		m.Pools = append(m.Pools, sluice.PoolID(p))
	}
	t.Models["m"] = m
	return t
}

func known(sluice.KeyID) (sluice.Principal, error) {
	return sluice.Principal{Tenant: "t", Project: "default", Key: "k", Policy: &sluice.Policy{Weight: 1}}, nil
}

func unknown(sluice.KeyID) (sluice.Principal, error) {
	return sluice.Principal{}, errors.New("gone")
}

func request(id, detail string) Asked {
	return Asked{
		Entry: ledger.Entry{Request: sluice.RequestID(id), Tenant: "t", Key: "k", Model: "m", Dialect: "openai", Operation: "chat", Detail: []byte(detail)},
		Took:  sluice.Usage{Input: 100, Output: 10, Source: sluice.UsageReported},
	}
}

const plain = `{"estimate":{"input":100,"input_bound":120,"output":10,"output_hold":20,"output_bound":50}`

func TestFates(t *testing.T) {
	both := table("v1", "a", "b")
	drained := table("v2", "a", "b")
	drained.Pools["a"].Backends[0].Weight = 0
	small := table("v3", "a")
	small.Pools["a"].Backends[0].Context = 50
	for name, c := range map[string]struct {
		before, after Side
		detail        string
		want          [5]int // same, moved, refused, admitted, unknown
	}{
		"the same":        {Side{both, known}, Side{both, known}, plain + `}`, [5]int{1, 0, 0, 0, 0}},
		"drained":         {Side{both, known}, Side{drained, known}, plain + `}`, [5]int{0, 1, 0, 0, 0}},
		"back again":      {Side{drained, known}, Side{both, known}, plain + `}`, [5]int{0, 1, 0, 0, 0}},
		"does not fit":    {Side{both, known}, Side{small, known}, plain + `}`, [5]int{0, 0, 1, 0, 0}},
		"fits now":        {Side{small, known}, Side{both, known}, plain + `}`, [5]int{0, 0, 0, 1, 0}},
		"refused by both": {Side{small, known}, Side{small, known}, plain + `}`, [5]int{1, 0, 0, 0, 0}},
		"not admitted":    {Side{both, known}, Side{both, unknown}, plain + `}`, [5]int{0, 0, 1, 0, 0}},
		"key is gone":     {Side{both, unknown}, Side{table("v4", "a"), unknown}, plain + `,"regions":["b"]}`, [5]int{0, 0, 1, 0, 0}},
		"no facts":        {Side{both, known}, Side{both, known}, `{}`, [5]int{0, 0, 0, 0, 1}},
		"unknown need":    {Side{both, known}, Side{both, known}, plain + `,"needs":"telepathy"}`, [5]int{0, 0, 0, 0, 1}},
	} {
		r := Run(c.before, c.after, []Asked{request("req_1", c.detail)})
		if got := [5]int{r.Same, r.Moved, r.Refused, r.Admitted, r.Unknown}; got != c.want {
			t.Errorf("%s: got %v, want %v: %+v", name, got, c.want, r)
		}
	}
	r := Run(Side{both, known}, Side{drained, known}, []Asked{request("req_1", plain+`}`), request("req_2", plain+`}`)})
	if len(r.Moves) != 1 || r.Moves[0].From != "a/a-1" || r.Moves[0].To != "b/b-1" || len(r.Moves[0].Examples) != 2 || r.CostThen <= r.CostNow {
		t.Errorf("got %+v", r)
	}
}
