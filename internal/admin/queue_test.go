package admin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/quota"
	"sluice/internal/sched"
)

// flooded is a pool in which one tenant floods a class.
func flooded() engine.PoolView {
	p := engine.PoolView{ID: "chat", Waiting: 31, Unknown: true}
	p.Classes[sluice.Standard] = sched.ClassView{
		Class: sluice.Standard, Policy: sched.Class{Share: 300, Ceiling: 500}, Waiting: 31, Running: 4, Tenants: 3, Weights: 3, Queued: 3100, Competing: true, Gap: 40, PerMinute: 90,
		Service: sched.Service{Rate: 1000, Share: 1000, Fair: 1000},
	}
	p.Classes[sluice.Standard].Refused[sluice.QueueFull-sluice.RateLimited] = 7
	flow := func(t sluice.TenantID, waiting int, share, fair int64) sched.FlowView {
		return sched.FlowView{Class: sluice.Standard, Tenant: t, Weight: 1, Waiting: waiting, Queued: int64(waiting) * 100, Service: sched.Service{Rate: share, Share: share, Fair: fair}}
	}
	flood, quiet, parked := flow("flood", 30, 700, 333), flow("quiet", 1, 100, 333), flow("parked", 0, 200, 333)
	flood.Projects = []sched.ProjectView{{Project: "a", Waiting: 20}, {Project: "b", Waiting: 10, Lead: 5}}
	flood.Refused[sluice.QueueFull-sluice.RateLimited] = 7
	parked.Parked, parked.Contract = true, true
	p.Flows = []sched.FlowView{quiet, parked, flood}
	p.Contracts = []sched.ContractView{
		{Contract: sched.Contract{Tenant: "parked", Slots: 2, WorkPerSecond: 9}, Used: sched.Amounts{1, 50, 0}, Running: 1, Over: 2},
		{Contract: sched.Contract{Tenant: "t2", Slots: 2, Lend: sched.LendNone}, Paid: true},
		{Contract: sched.Contract{Tenant: "t3", Slots: 2}, Paid: true},
		{Contract: sched.Contract{Tenant: "t4", Slots: 2}, Paid: true, Wanted: true},
	}
	p.Gathering = &engine.GatherView{Request: "req_g", Tenant: "flood", Class: sluice.Standard, Backend: "gpu-a", Passed: 3, Most: 10}
	return p
}

func TestStatusShowsTheQueue(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.View = func(int) engine.View { return engine.View{Pools: []engine.PoolView{flooded()}} }
	})
	var s Status
	text := b.do("GET", "/admin/v1/status", "", 200, &s)
	p := s.Pools[0]
	if c := p.Classes[sluice.Standard]; c.Class != "standard" || c.Waiting != 31 || c.Refused["queue_full"] != 7 || c.RefusedPerMinute != 90 || c.Guaranteed != .3 || c.Ceiling != .5 || c.Gap != 40 || c.Share != 1 {
		t.Errorf("class: %+v", c)
	}
	var got []string
	for _, f := range p.Flows {
		got = append(got, f.Tenant+" "+strings.Join(f.Marks, "+"))
	}
	if want := []string{"flood noisy", "quiet ", "parked own_limit+contract"}; !slices.Equal(got, want) {
		t.Errorf("flows: got %q, want %q", got, want)
	}
	if f := p.Flows[0]; f.Share != .7 || f.FairShare != .333 || f.Refused["queue_full"] != 7 || len(f.Projects) != 2 || f.Projects[1].Lead != 5 {
		t.Errorf("the flood: %+v", f)
	}
	var states []string
	for _, k := range p.Contracts {
		states = append(states, k.State)
	}
	if want := []string{"used_up", "kept", "lent", "kept"}; !slices.Equal(states, want) {
		t.Errorf("contracts: got %q, want %q", states, want)
	}
	if k := p.Contracts[0]; k.Inside != 1 || k.Overflow != 2 || k.Used.KV != 50 || k.Reserve.Work != 9 {
		t.Errorf("contract: %+v", k)
	}
	if p.Gathering == nil || p.Gathering.Passed != 3 || p.Gathering.Allowance != 10 || p.Gathering.Backend != "gpu-a" {
		t.Errorf("gathering: %+v in %s", p.Gathering, text)
	}
}

// waiting is a request with everything in its way.
func waiting() engine.RequestView {
	r := engine.RequestView{
		ID: "req_1", Phase: engine.Waiting, Owner: sluice.Principal{Tenant: "quiet", Project: "web", Key: "k1"}, Model: "m", Class: sluice.Standard, Pool: "chat",
		Age: 3 * time.Second, Waited: 2 * time.Second, MaxWait: 30 * time.Second, Position: 12, Wait: 4 * time.Second, Predicted: 5 * time.Second,
		Passed: 60, Most: 90, Cost: 90, Needs: sched.Amounts{1, 600, 300}, Holds: quota.Amounts{sluice.Requests: 1, sluice.Spend: 2_000_000_000},
	}
	lack := func(what string, l sched.Lack) engine.LackView { return engine.LackView{Lack: l, What: what} }
	limit := engine.LackView{What: engine.LackLimit, Refusal: &quota.Refusal{
		Owner: quota.Owner{Scope: sluice.ScopeKey, ID: "k1"}, Limit: sluice.Limit{Dimension: sluice.Concurrency, Amount: 8}, Requested: 1, Held: 8,
	}}
	gathered := engine.LackView{What: engine.LackGathering, Request: "req_g"}
	r.Lacks = []engine.LackView{
		limit,
		{What: engine.LackBackend},
		lack(engine.LackFlow, sched.Lack{N: 1}), lack(engine.LackFlow, sched.Lack{N: 9}),
		{What: engine.LackTurn},
		lack(engine.LackRoom, sched.Lack{Dimension: sched.KV, Need: 600, Free: 500}),
		{What: engine.LackSplit},
		lack(engine.LackPool, sched.Lack{Dimension: sched.Slots, Need: 1}),
		lack(engine.LackCeiling, sched.Lack{Dimension: sched.KV, Need: 600, Free: 5, Class: sluice.Batch}),
		lack(engine.LackHeadroom, sched.Lack{Dimension: sched.Slots, Need: 1, Kept: 6, Class: sluice.Interactive}),
		lack(engine.LackReserve, sched.Lack{Dimension: sched.Prefill, Need: 300, Free: 20, Kept: 40, Tenant: "big"}), gathered,
	}
	return r
}

func TestRequestWait(t *testing.T) {
	var zoom engine.Zoom
	b := newBench(t, func(o *Options) {
		o.Look = func(z engine.Zoom, _ int) (v engine.View) {
			if zoom = z; z.Request == "req_1" {
				v.Requests = []engine.RequestView{waiting()}
			}
			return v
		}
	})
	var r RequestWait
	b.do("GET", "/admin/v1/requests/req_1/wait", "", 200, &r)
	if zoom != (engine.Zoom{Request: "req_1"}) {
		t.Errorf("zoomed at %+v", zoom)
	}
	if r.Phase != "waiting" || r.Position != 12 || r.WaitSeconds != 4 || r.PredictedSeconds != 5 || r.MaxWaitSeconds != 30 || r.Needs.KV != 600 {
		t.Errorf("got %+v", r)
	}
	if hold := r.Holds["spend"]; len(r.Holds) != 2 || hold.String() != "$2.00" {
		t.Errorf("holds: %+v", r.Holds)
	}
	var why []string
	for _, l := range r.Lacks {
		why = append(why, l.Why)
	}
	want := []string{
		"concurrency of its key is full: 8 of 8 held",
		"none of its backends is fit to be used",
		"one request of its tenant and class came before it",
		"9 requests of its tenant and class came before it",
		"nothing but that others are due first",
		"no backend has kv tokens for it: it needs 600, 500 are free where most is",
		"no one backend has all that it needs free, though others have a part each",
		"the pool has no slots for it: it needs 1, 0 are free",
		"class batch is at its ceiling of kv tokens: it needs 600, 5 are left",
		"6 slots are kept free for class interactive: it needs 1, 0 are left",
		"40 prefill tokens are kept for the contract of big: it needs 300, 20 are left",
		"what becomes free is gathered for request req_g",
	}
	if !slices.Equal(why, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(why, "\n"), strings.Join(want, "\n"))
	}
	b.do("GET", "/admin/v1/requests/req_1/wait?tenant=quiet", "", 200, nil)
	for _, target := range []string{"req_1/wait?tenant=other", "req_2/wait"} {
		if text := b.do("GET", "/admin/v1/requests/"+target, "", 404, nil); !strings.Contains(text, "explain") {
			t.Errorf("%s: no hint in %s", target, text)
		}
	}
	newBench(t).do("GET", "/admin/v1/requests/req_1/wait", "", 404, nil)
}

func TestFlows(t *testing.T) {
	var zoom engine.Zoom
	limit := 0
	b := newBench(t, func(o *Options) {
		o.Look = func(z engine.Zoom, n int) (v engine.View) {
			zoom, limit = z, n
			if z.Pool == "chat" || z.Tenant == "quiet" {
				v.Pools, v.Requests = []engine.PoolView{flooded()}, []engine.RequestView{waiting()}
			}
			return v
		}
	})
	var f Flows
	b.do("GET", "/admin/v1/flows?pool=chat", "", 200, &f)
	if zoom != (engine.Zoom{Pool: "chat"}) || limit != defaultRows || len(f.Pools) != 1 || f.Requests[0].Position != 12 {
		t.Errorf("zoom %+v, limit %d: %+v", zoom, limit, f)
	}
	if p := f.Pools[0]; p.WaitSeconds != 0 || !p.WaitUnknown {
		t.Errorf("an arrival waits %v s, unknown %v", p.WaitSeconds, p.WaitUnknown)
	}
	b.do("GET", "/admin/v1/flows?pool=chat&tenant=quiet&limit=7", "", 200, nil)
	if zoom != (engine.Zoom{Pool: "chat", Tenant: "quiet"}) || limit != 7 {
		t.Errorf("zoom %+v, limit %d", zoom, limit)
	}
	b.do("GET", "/admin/v1/flows?tenant=nobody", "", 200, &f)
	if len(f.Pools)+len(f.Requests) != 0 {
		t.Errorf("nobody has %+v", f)
	}
	b.do("GET", "/admin/v1/flows?pool=nosuch", "", 404, nil)
	b.do("GET", "/admin/v1/flows", "", 422, nil)
	b.do("GET", "/admin/v1/flows?pool=chat&limit=1001", "", 422, nil)
}

// What is looked at closely tells the gateway's state, which the command exits with,
// and how many tenants it leaves out.
func TestFlowsTellState(t *testing.T) {
	var asked engine.Zoom
	b := newBench(t, func(o *Options) {
		o.View = func(int) engine.View { return engine.View{} }
		o.Look = func(z engine.Zoom, _ int) engine.View {
			asked = z
			p := flooded()
			p.Classes[sluice.Standard].Tenants = len(p.Flows) + 4
			return engine.View{Pools: []engine.PoolView{p}}
		}
		o.Runtime = func() Runtime { return Runtime{Ready: true, Draining: true} }
	})
	var f Flows
	b.do("GET", "/admin/v1/flows?pool=chat", "", 200, &f)
	if f.State != "draining" || f.Pools[0].MoreFlows != 4 {
		t.Errorf("state %q, %d more", f.State, f.Pools[0].MoreFlows)
	}
	var of Flows
	b.do("GET", "/admin/v1/flows?tenant=flood", "", 200, &of)
	if of.Pools[0].MoreFlows != 0 {
		t.Errorf("%d more of one tenant", f.Pools[0].MoreFlows)
	}
	var s Status
	b.do("GET", "/admin/v1/status?limit=33", "", 200, &s)
	if asked.Flows != 33 || s.Pools[0].MoreFlows != 4 {
		t.Errorf("asked for %+v, %d more", asked, s.Pools[0].MoreFlows)
	}
}
