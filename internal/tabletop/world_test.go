package tabletop

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// anyWorld draws a small scenario in which much goes wrong.
func anyWorld(t *rapid.T) *Scenario {
	pick := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	engine := fleet.Profile{
		PrefillRate: int64(pick("prefill", 2_000, 40_000)), StepBase: time.Duration(pick("step", 2, 30)) * time.Millisecond,
		StepPerJob: 20 * time.Microsecond, StepPerToken: 50_000, KVCapacity: sluice.Tokens(pick("kv", 6_000, 60_000)),
		Slots: pick("slots", 1, 16), Queue: pick("queue", 0, 8), StartUp: time.Duration(pick("start", 0, 3)) * time.Second,
	}
	if rapid.Bool().Draw(t, "paged") {
		engine.Paged, engine.BlockTokens = true, 16
	}
	var sources []Source
	for i := range pick("sources", 1, 4) {
		sources = append(sources, anySource(t, i))
	}
	s := world(pick("replicas", 1, 3), engine, sources...)
	s.Seed, s.InputError = uint64(pick("seed", 1, 1000)), int64(pick("error", 0, 50))
	s.Warmup, s.Length, s.Drain = time.Duration(pick("warmup", 0, 3))*time.Second, 15*time.Second, time.Duration(pick("drain", 0, 60))*time.Second
	for i := range s.Machines {
		s.Machines[i].Scrape = time.Duration(pick("scrape", 0, 2)) * time.Second
	}
	s.Machines = append(s.Machines, Machine{Backend: "hosted", Hosted: &fleet.Service{
		Latency: 300 * time.Millisecond, LatencyTail: 200 * time.Millisecond, PrefillRate: 20_000, TokenTime: 15 * time.Millisecond,
		Concurrency: pick("hosted", 0, 20), RequestsPerMinute: int64(pick("perminute", 0, 200)), TokensPerMinute: sluice.Tokens(pick("tokens", 0, 100_000)),
		StartUp: time.Second, Faults: fleet.Faults{OverloadPermille: int64(pick("overload", 0, 200)), ErrorPermille: int64(pick("errors", 0, 200)), BreakPermille: int64(pick("breaks", 0, 200))},
	}})
	for i := range s.Policies {
		anyTable(t, s, &s.Policies[i], i)
	}
	for range pick("events", 0, 5) {
		s.Events = append(s.Events, anyEvent(t, s))
	}
	return s
}

func anySource(t *rapid.T, i int) Source {
	pick := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	x := tenant(fmt.Sprintf("t%d", i%3), float64(pick("rate", 1, 20)), 0, 0)
	x.Name = fmt.Sprintf("s%d", i)
	x.Class = sluice.Class(pick("class", 0, 2))
	x.Input = Lengths{Shape: Uniform, Min: 1, Max: sluice.Tokens(pick("input", 10, 4000))}
	x.Output = Lengths{Shape: LogNormal, P50: 40, P99: sluice.Tokens(pick("output", 60, 900)), Max: 2000}
	x.Arrivals.Process = Process(pick("process", 0, 3))
	x.Arrivals.CV = 2
	if pick("trace", 0, 3) == 0 {
		x.Arrivals = Arrivals{Process: Trace, Loop: true}
		for k := range pick("rows", 1, 30) {
			x.Arrivals.Rows = append(x.Arrivals.Rows, Row{At: time.Duration(k) * 200 * time.Millisecond, Input: 300, Output: sluice.Tokens(k * 20), Blocks: []uint64{1, 2, uint64(k)}})
		}
		x.Output = Lengths{}
	}
	x.Prefix = Prefix{Tokens: sluice.Tokens(pick("prefix", 0, 800)), Groups: pick("groups", 1, 4)}
	x.Client = Client{
		Bound: sluice.Tokens(pick("bound", 0, 400)), Patience: time.Duration(pick("patience", 0, 8)) * time.Second,
		Leave: Leave{Permille: int64(pick("leave", 0, 300)), After: 6 * time.Second}, Streams: pick("streams", 0, 6),
		Retry:   Retry{Max: pick("retries", 0, 3), Backoff: 300 * time.Millisecond, Cap: 3 * time.Second, Jitter: 0.5, Honour: true},
		MaxWait: time.Duration(pick("wait", -1, 5)) * time.Second,
	}
	return x
}

// anyTable gives a variant limits, and backends that run on without their readers.
func anyTable(t *rapid.T, s *Scenario, v *Variant, i int) {
	pick := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, fmt.Sprint(name, i)) }
	for _, p := range v.Table.Pools {
		p.Queue.MaxWait = time.Duration(pick("maxwait", 1, 20)) * time.Second
		p.Queue.Requests = int64(pick("bound", 2, 100))
		for _, b := range p.Backends {
			b.StopsOnCancel = pick("stops", 0, 2) > 0
			b.Capacity.Concurrency = int64(pick("slots", 1, 20))
			b.Capacity.Adaptive = pick("adaptive", 0, 2) == 0
		}
		if !p.Sharing.FIFO && pick("contract", 0, 1) == 1 {
			p.Sharing.Contracts = []sched.Contract{{Tenant: s.Sources[0].Tenant, Slots: 1, KV: 1000}}
		}
	}
	main := v.Table.Pools["main"].Backends[0]
	hosted := *main
	hosted.ID, hosted.Capacity, hosted.StopsOnCancel = "hosted", route.Capacity{Concurrency: 16}, false
	v.Table.Pools["far"] = &route.Pool{ID: "far", Backends: []*route.Backend{&hosted}, Sharing: v.Table.Pools["main"].Sharing}
	v.Table.Models["m"].Fallback = []sluice.PoolID{"far"}
	if pick("hedge", 0, 1) == 1 {
		v.Table.Models["m"].Hedge = &route.Hedging{After: time.Duration(pick("late", 10, 2000)) * time.Millisecond, Classes: [sluice.NumClasses]bool{true, true, true}}
	}
	for k := range v.Principals {
		p := v.Principals[k].Policy
		p.Weight = int64(pick("weight", 1, 4))
		p.HardSpend = pick("hard", 0, 3) == 0
		if n := pick("limit", 0, 2); n > 0 {
			p.Limits[sluice.ScopeTenant] = []sluice.Limit{
				{Dimension: sluice.Concurrency, Amount: int64(n * 3)},
				{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: int64(pick("rpm", 20, 600))},
				{Dimension: sluice.Spend, Window: sluice.PerHour, Amount: int64(sluice.Dollar)},
			}
		}
	}
}

func anyEvent(t *rapid.T, s *Scenario) Event {
	pick := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	e := Event{At: time.Duration(pick("at", 0, 15_000)) * time.Millisecond}
	id := s.Machines[pick("machine", 0, len(s.Machines)-1)].Backend
	switch pick("event", 0, 5) {
	case 0:
		rate := float64(pick("factor", 0, 4))
		e.Traffic = &Traffic{Sources: []int{pick("of", 0, len(s.Sources)-1)}, Rate: &rate}
	case 1:
		e.Backends = &Backends{IDs: []sluice.BackendID{id}, Down: true}
	case 2:
		e.Backends = &Backends{IDs: []sluice.BackendID{id}, Up: true}
	case 3:
		e.Backends = &Backends{IDs: []sluice.BackendID{id}, Speed: int64(pick("speed", 100, 2000))}
	case 4:
		reasons := []sluice.Reason{sluice.UpstreamError, sluice.UpstreamLimited, sluice.UpstreamTruncated, sluice.UpstreamConnect, sluice.UpstreamTimeout, sluice.UpstreamStalled}
		e.Backends = &Backends{IDs: []sluice.BackendID{id}, Fail: &Fail{
			Permille: int64(pick("permille", 0, 1000)), Reason: reasons[pick("reason", 0, len(reasons)-1)], After: time.Duration(pick("after", 0, 2000)) * time.Millisecond,
		}}
	case 5:
		e.Apply = append([]Variant(nil), s.Policies...)
	}
	return e
}
