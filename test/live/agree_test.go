package live

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// stream is what one tenant asks for: requests of one length each, at moments of
// their own.
type stream struct {
	tenant  sluice.TenantID
	weight  int64
	class   sluice.Class
	in, out int
	at      []time.Duration
}

// seenAs is what one run shows of its requests: the grants of each flow in order,
// each request by its place among the flow's arrivals, and how long each waited for
// its first token.
type seenAs struct {
	grants map[sluice.TenantID][]int
	first  map[sluice.TenantID][]time.Duration // by arrival
	input  map[sluice.TenantID]sluice.Tokens   // settled
	output map[sluice.TenantID]sluice.Tokens
	cost   map[sluice.TenantID]sluice.Nano
	tied   bool // two grants or two ends came at one moment
}

func newSeen() seenAs {
	return seenAs{
		grants: map[sluice.TenantID][]int{}, first: map[sluice.TenantID][]time.Duration{},
		input: map[sluice.TenantID]sluice.Tokens{}, output: map[sluice.TenantID]sluice.Tokens{}, cost: map[sluice.TenantID]sluice.Nano{},
	}
}

// agreed is the load that both play: two engines, a flood of long prompts, and two
// tenants beside it, for a while in which more is asked for than there is.
const length = 20 * time.Second

func agreed(seed uint64) (plan, []stream) {
	streams := []stream{
		{tenant: "quiet", weight: 1, class: sluice.Interactive, in: 400, out: 60},
		{tenant: "steady", weight: 2, class: sluice.Interactive, in: 1500, out: 250},
		{tenant: "flood", weight: 1, class: sluice.Interactive, in: 6000, out: 120},
		{tenant: "night", weight: 1, class: sluice.Batch, in: 3000, out: 400},
	}
	rates := []float64{2, 2, 4.5, 1}
	for i := range streams {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		for at := time.Duration(0); ; {
			at += time.Duration(rnd.ExpFloat64() / rates[i] * float64(time.Second))
			if at > length {
				break
			}
			streams[i].at = append(streams[i].at, at)
		}
	}
	quick := fleet.Llama8BOnH100()
	quick.StepBase, quick.ChunkTokens = quick.StepBase/8, 128 // so that few of them end in the same step
	one := backend{quick, route.Capacity{Concurrency: 6, KVTokens: 60_000, PrefillTokens: 30_000}}
	p := plan{event: 1, speaks: "vllm", backends: []backend{one, one}, queue: route.QueueBounds{MaxWait: time.Hour}, tenants: map[sluice.TenantID]sluice.Policy{}}
	for _, x := range streams {
		p.tenants[x.tenant] = sluice.Policy{Class: x.class, Weight: x.weight}
	}
	return p, streams
}

// atTheGateway plays the load through the real gateway.
func atTheGateway(t *testing.T, p plan, streams []stream) (seen seenAs) {
	seen = newSeen()
	at(t, p, func(t *testing.T, s *site) {
		c := s.crowd()
		for _, x := range streams {
			c.wg.Go(func() {
				for _, at := range x.at {
					time.Sleep(time.Until(s.log.start.Add(at)))
					c.send(ask{tenant: x.tenant, in: x.in, out: x.out})
				}
			})
		}
		for id, gs := range c.all() {
			s.served(gs)
			slices.SortFunc(gs, func(a, b got) int { return cmp.Compare(a.at, b.at) })
			for _, g := range gs {
				seen.first[id] = append(seen.first[id], g.first)
			}
		}
		s.log.grants(seen.grants)
		for i := range s.log.entries {
			e := &s.log.entries[i]
			seen.input[e.Tenant] += e.Usage.InputTotal()
			seen.output[e.Tenant] += e.Usage.OutputTotal()
			seen.cost[e.Tenant] += e.Cost
		}
	})
	return seen
}

// grants is the order in which each flow's requests were served.
func (l *history) grants(of map[sluice.TenantID][]int) {
	type grant struct {
		at    time.Duration
		index int
	}
	arrived := map[sluice.TenantID]int{}
	all := map[sluice.TenantID][]grant{}
	for _, q := range l.order {
		id := q.call.Principal.Tenant
		all[id] = append(all[id], grant{q.granted, arrived[id]})
		arrived[id]++
	}
	for id, gs := range all {
		slices.SortStableFunc(gs, func(a, b grant) int { return cmp.Compare(a.at, b.at) })
		for _, g := range gs {
			of[id] = append(of[id], g.index)
		}
	}
}

// atTheTabletop plays the same load in a rehearsal.
func atTheTabletop(t *testing.T, p plan, streams []stream) (seen seenAs) {
	seen = newSeen()
	table := newTable(&p)
	sc := &tabletop.Scenario{Name: "agreed", Seed: 1, Length: 2 * time.Minute, Drain: time.Hour, Options: engine.Options{}}
	v := tabletop.Variant{Name: "sluice", Table: table}
	for i, b := range p.backends {
		sc.Machines = append(sc.Machines, tabletop.Machine{Backend: sluice.BackendID(fmt.Sprintf("b%d", i)), Replica: &b.engine})
	}
	for _, x := range streams {
		src := tabletop.Source{
			Name: string(x.tenant), Tenant: x.tenant, Project: sluice.DefaultProject, Model: "m", Dialect: "openai", Class: x.class,
			Arrivals: tabletop.Arrivals{Process: tabletop.Trace, Rate: 1},
			Client:   tabletop.Client{Bound: sluice.Tokens(x.out)},
		}
		for _, at := range x.at {
			src.Arrivals.Rows = append(src.Arrivals.Rows, tabletop.Row{At: at, Input: sluice.Tokens(x.in), Output: endless})
		}
		sc.Sources = append(sc.Sources, src)
		policy := p.tenants[x.tenant]
		v.Principals = append(v.Principals, sluice.Principal{Tenant: x.tenant, Project: sluice.DefaultProject, Key: sluice.KeyID(x.tenant), Policy: &policy})
	}
	sc.Policies = []tabletop.Variant{v}
	owner := map[int64]sluice.TenantID{}
	index := map[int64]int{}
	from := map[int64]time.Duration{}
	count := map[sluice.TenantID]int{}
	granted, ended := -time.Second, -time.Second
	r, err := sc.Run(t.Context(), tabletop.Options{Watch: -1, Tell: func(e tabletop.Step) {
		switch {
		case strings.Contains(e.Text, " comes up: "):
			_, rest, _ := strings.Cut(e.Text, " tenant ")
			name, _, _ := strings.Cut(rest, ",")
			id := sluice.TenantID(name)
			owner[e.Request], index[e.Request], from[e.Request] = id, count[id], e.At
			count[id]++
			seen.first[id] = append(seen.first[id], 0)
		case strings.Contains(e.Text, " gets a place on "):
			id := owner[e.Request]
			seen.tied = seen.tied || e.At-granted < time.Microsecond
			granted = e.At
			seen.grants[id] = append(seen.grants[id], index[e.Request])
		case strings.HasPrefix(e.Text, "its first token comes"):
			seen.first[owner[e.Request]][index[e.Request]] = e.At - from[e.Request]
		case strings.HasPrefix(e.Text, "settled as "):
			seen.tied = seen.tied || e.At-ended < time.Microsecond
			ended = e.At
			var in, cached, out sluice.Tokens
			if _, err := fmt.Sscanf(e.Text, "settled as completed: %d input tokens, %d of them from a cache, %d of output", &in, &cached, &out); err != nil {
				t.Fatalf("request %d of the rehearsal: %s: %v", e.Request, e.Text, err)
			}
			seen.input[owner[e.Request]] += in
			seen.output[owner[e.Request]] += out
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Phases[0].Tenants {
		seen.cost[sluice.TenantID(n.Name)] = n.Cost
	}
	return seen
}

// The tabletop and the gateway tell the same of the same load: each flow is served
// in the same order, is charged the same to the token and the nano-dollar, and waits
// as long for its first tokens, to within one step of the engine.
func TestTabletopAgrees(t *testing.T) {
	long(t)
	played := 0
	for seed := uint64(1); played < 2; seed++ {
		if seed > 100 {
			t.Fatalf("of 100 loads only %d had no two events at one moment", played)
		}
		p, streams := agreed(seed)
		table := atTheTabletop(t, p, streams)
		if table.tied {
			continue // which goes first is not said, and the gateway's goroutines do it by chance
		}
		played++
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live := atTheGateway(t, p, streams)
			step := p.backends[0].engine.Step(1, 0)
			agree(t, streams, live, table, step)
			p.sharing.FIFO = true
			if other := atTheTabletop(t, p, streams); apart(live.first["quiet"], other.first["quiet"]) <= step {
				t.Error("a rehearsal in order of arrival agrees as well: nothing is judged here")
			}
		})
	}
}

// apart is the largest difference between two distributions of as many times.
func apart(a, b []time.Duration) (worst time.Duration) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	for i := range a {
		worst = max(worst, (a[i] - b[i]).Abs())
	}
	return worst
}

func agree(t *testing.T, streams []stream, live, table seenAs, step time.Duration) {
	for _, x := range streams {
		id := x.tenant
		if !slices.Equal(live.grants[id], table.grants[id]) {
			t.Errorf("%s is served in the order %v, at the tabletop %v", id, live.grants[id], table.grants[id])
		}
		if live.input[id] != table.input[id] || live.output[id] != table.output[id] || live.cost[id] != table.cost[id] {
			t.Errorf("%s is charged %d + %d tokens, %v; at the tabletop %d + %d, %v", id,
				live.input[id], live.output[id], live.cost[id], table.input[id], table.output[id], table.cost[id])
		}
		a, b := live.first[id], table.first[id]
		if len(a) != len(b) || len(a) != len(x.at) {
			t.Fatalf("%s: %d requests had a first token, at the tabletop %d, of %d", id, len(a), len(b), len(x.at))
		}
		worst := apart(a, b)
		t.Logf("%-7s %3d requests, %d + %d tokens; largest difference of the times to first token %v (one step: %v)",
			id, len(a), live.input[id], live.output[id], worst, step)
		if worst > step {
			t.Errorf("%s: times to first token differ by %v, more than a step of %v", id, worst, step)
		}
	}
}
