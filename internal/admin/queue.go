package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/sched"
)

// Served is what a class or flow was served over the last ten to twenty seconds,
// beside what it is due.
type Served struct {
	Rate      int64   `json:"service_rate" doc:"Work per second, over the last 10 to 20 seconds"`
	Share     float64 `json:"share" doc:"Its part of the pool's service, from 0 to 1"`
	FairShare float64 `json:"fair_share" doc:"The part that it is due while those compete that do now, itself included"`
}

// ClassStatus is one class of a pool's queue.
type ClassStatus struct {
	Class         string  `json:"class"`
	Waiting       int     `json:"waiting"`
	Running       int     `json:"running"`
	OldestSeconds float64 `json:"oldest_seconds" doc:"How long its oldest request has waited"`
	QueuedWork    int64   `json:"queued_work" doc:"Work of what waits: input and expected output tokens by their cost"`
	Tenants       int     `json:"tenants" doc:"That wait, run, or are ahead of the others"`
	Served
	Gap              int64            `json:"fairness_gap" doc:"Largest less least virtual time of tenants that compete, in work per unit of weight"`
	Refused          map[string]int64 `json:"refused,omitempty" doc:"Requests that got no place since the pool was made, by reason"`
	RefusedPerMinute int64            `json:"refused_per_minute" doc:"Over the last 10 to 20 seconds"`
	Guaranteed       float64          `json:"guaranteed_share" doc:"Of the policy"`
	Ceiling          float64          `json:"ceiling,omitempty" doc:"Most of the pool that it may occupy; absent: all"`
	Headroom         float64          `json:"headroom,omitempty" doc:"Part of the pool that is kept free for it"`
}

// FlowStatus is one tenant's requests of one class in a pool.
type FlowStatus struct {
	Tenant        string   `json:"tenant"`
	Class         string   `json:"class"`
	Marks         []string `json:"marks,omitempty" enum:"noisy,own_limit,contract" doc:"noisy: it has at least twice its part of what waits; own_limit: limits of its own keep all of it back"`
	Weight        int64    `json:"weight,omitempty"`
	Waiting       int      `json:"waiting"`
	Running       int      `json:"running"`
	OldestSeconds float64  `json:"oldest_seconds"`
	QueuedWork    int64    `json:"queued_work"`
	Served
	Lead             int64            `json:"lead" doc:"Work per unit of weight by which it is ahead of the flow of its class that is due next, whose lead is 0"`
	Refused          map[string]int64 `json:"refused,omitempty" doc:"Requests that got no place, by reason; of the 1024 flows of a pool that were refused last"`
	RefusedPerMinute int64            `json:"refused_per_minute"`
	Projects         []ProjectFlow    `json:"projects,omitempty" doc:"At most 20, of one pool or tenant"`
}

// ProjectFlow is one project of a flow.
type ProjectFlow struct {
	Project string `json:"project"`
	Waiting int    `json:"waiting"`
	Running int    `json:"running"`
	Lead    int64  `json:"lead"`
}

// Capacity is an amount of what a pool has. 0 is none.
type Capacity struct {
	Slots   int64 `json:"slots"`
	KV      int64 `json:"kv_tokens"`
	Prefill int64 `json:"prefill_tokens,omitempty"`
	Work    int64 `json:"work_per_second,omitempty"`
}

// ContractStatus is capacity that is reserved for a tenant, and what uses it.
type ContractStatus struct {
	Tenant   string   `json:"tenant"`
	Reserve  Capacity `json:"reserve"`
	Used     Capacity `json:"used" doc:"By requests inside of it"`
	Inside   int      `json:"inside" doc:"Requests that run inside"`
	Overflow int      `json:"overflow" doc:"Requests of the tenant that run outside, at its fair share"`
	Waiting  int      `json:"waiting"`
	State    string   `json:"state" enum:"kept,lent,used_up" doc:"What of it is idle is kept for the tenant, lent, or everybody's as its work per second is used up"`
}

// Gathering is the request for which what becomes free is kept.
type Gathering struct {
	Request   string `json:"request"`
	Tenant    string `json:"tenant"`
	Class     string `json:"class"`
	Backend   string `json:"backend,omitempty" doc:"That is kept for it; absent: a part of the pool"`
	Passed    int64  `json:"passed_work" doc:"Work of later requests that were served before it"`
	Allowance int64  `json:"allowance_work" doc:"As much may be: its own"`
}

// Flows is a closer picture: of one pool, or of one tenant.
type Flows struct {
	State    string        `json:"state" enum:"ready,degraded,starting,draining" doc:"Of the gateway"`
	At       time.Time     `json:"at"`
	Pools    []PoolStatus  `json:"pools"`
	Requests []RequestWait `json:"requests" doc:"Those that wait, the oldest of each pool and class first"`
}

// RequestWait is one open request.
type RequestWait struct {
	Request          string  `json:"request"`
	Phase            string  `json:"phase" enum:"waiting,running,ending,expired" doc:"ending: its wait or attempt is over and it is being settled; expired: its hold has run out"`
	Tenant           string  `json:"tenant"`
	Project          string  `json:"project"`
	Key              string  `json:"key"`
	Model            string  `json:"model"`
	Class            string  `json:"class"`
	Pool             string  `json:"pool"`
	AgeSeconds       float64 `json:"age_seconds" doc:"Since it arrived"`
	Attempt          int     `json:"attempt" doc:"Attempts so far, the one that runs included"`
	Position         int     `json:"position" doc:"Requests that are served before it, about"`
	WaitSeconds      float64 `json:"expected_wait_seconds" doc:"From now on; 0: not known yet, or none"`
	WaitedSeconds    float64 `json:"waited_seconds"`
	MaxWaitSeconds   float64 `json:"max_wait_seconds,omitempty" doc:"It leaves the queue by then"`
	PredictedSeconds float64 `json:"predicted_wait_seconds" doc:"What was predicted when it arrived; 0: none, or not known then"`

	Lacks     []Lack            `json:"lacks,omitempty" doc:"Everything that is in its way"`
	Passed    int64             `json:"passed_work" doc:"Work of later requests that were served before it"`
	Allowance int64             `json:"allowance_work" doc:"When as much has passed, what becomes free is gathered for it"`
	Gathering bool              `json:"gathering,omitempty" doc:"That is so now"`
	Backend   string            `json:"backend,omitempty"`
	Seconds   float64           `json:"running_seconds,omitempty"`
	Inside    bool              `json:"inside_contract,omitempty"`
	Expires   float64           `json:"expires_seconds,omitempty" doc:"Until its hold does, if it shows no activity"`
	Work      int64             `json:"work" doc:"What its tenant is charged for it, as estimated"`
	Needs     Capacity          `json:"needs" doc:"Of one backend"`
	Holds     map[string]Amount `json:"holds" doc:"Of its caller's limits, by what they count"`
}

// Lack is one thing in the way of a request that waits.
type Lack struct {
	What      string         `json:"what" enum:"limit,backend,flow,turn,room,rate,room_together,pool,class_ceiling,class_headroom,contract,gathered"`
	Why       string         `json:"why" doc:"In a sentence"`
	Dimension string         `json:"dimension,omitempty" enum:"slots,kv_tokens,prefill_tokens"`
	Need      int64          `json:"need,omitempty"`
	Free      int64          `json:"free,omitempty" doc:"For this request"`
	Kept      int64          `json:"kept,omitempty" doc:"For others"`
	Limit     *RefusalFigure `json:"limit,omitempty"`
	Class     string         `json:"class,omitempty" doc:"Whose ceiling or headroom"`
	Tenant    string         `json:"tenant,omitempty" doc:"Whose contract"`
	Request   string         `json:"request,omitempty" doc:"For which capacity is gathered"`
	Requests  int            `json:"requests,omitempty" doc:"Of its own flow that came before"`
}

type (
	flowsIn struct {
		Pool   string `query:"pool" maxLength:"64" doc:"One pool"`
		Tenant string `query:"tenant" maxLength:"64" doc:"One tenant, in the pool or in all"`
		Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"Most flows and requests of each pool and class; 0: 20"`
	}
	flowsOut struct{ Body Flows }
	waitIn   struct {
		ID     string `path:"request" maxLength:"64"`
		Tenant string `query:"tenant" maxLength:"64" doc:"Restrict to one tenant: another's id is a 404"`
	}
	waitOut struct{ Body RequestWait }
)

func (a *API) registerQueue(api huma.API) {
	tags := []string{"operate"}
	register(a, api, huma.Operation{OperationID: "list-flows", Method: http.MethodGet, Path: "/admin/v1/flows", Summary: "One pool, or one tenant, closely: who waits, who is served, who is refused", Tags: tags, Errors: []int{404}}, a.flows)
	register(a, api, huma.Operation{OperationID: "request-wait", Method: http.MethodGet, Path: "/admin/v1/requests/{request}/wait", Summary: "Where an open request stands and what is in its way", Tags: tags, Errors: []int{404}}, a.wait)
}

func (a *API) look(z engine.Zoom, limit int) engine.View {
	if a.o.Look == nil {
		return engine.View{}
	}
	return a.o.Look(z, limit)
}

func (a *API) flows(_ context.Context, in *flowsIn) (*flowsOut, error) {
	if in.Pool == "" && in.Tenant == "" {
		return nil, hinted(sluice.Invalid("pool", "is missing, and so is tenant"), "name one of them; GET /admin/v1/status shows all pools")
	}
	limit := cmp.Or(in.Limit, defaultRows)
	v := a.look(engine.Zoom{Pool: sluice.PoolID(in.Pool), Tenant: sluice.TenantID(in.Tenant)}, limit)
	if in.Pool != "" && in.Tenant == "" && len(v.Pools) == 0 {
		return nil, noPool(in.Pool)
	}
	run := a.runtime()
	out := &flowsOut{Body: Flows{State: stateOf(&run), At: v.At.UTC(), Pools: []PoolStatus{}, Requests: []RequestWait{}}}
	for i := range v.Pools {
		p := poolView(&v.Pools[i], limit)
		if in.Tenant != "" {
			p.MoreFlows = 0 // others were not asked for
		}
		out.Body.Pools = append(out.Body.Pools, p)
	}
	for i := range v.Requests {
		out.Body.Requests = append(out.Body.Requests, waitView(&v.Requests[i]))
	}
	return out, nil
}

func (a *API) wait(_ context.Context, in *waitIn) (*waitOut, error) {
	v := a.look(engine.Zoom{Request: sluice.RequestID(in.ID)}, 1)
	if len(v.Requests) == 0 || in.Tenant != "" && v.Requests[0].Owner.Tenant != sluice.TenantID(in.Tenant) {
		return nil, &sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no open request %q", in.ID),
			Hint: "one that has ended is at /admin/v1/requests/{request}: sluice explain",
		}
	}
	return &waitOut{Body: waitView(&v.Requests[0])}, nil
}

// queueView adds the queue's classes, flows and contracts to a pool.
func (s *PoolStatus) queueView(p *engine.PoolView) {
	s.Classes = make([]ClassStatus, 0, len(p.Classes))
	for i := range p.Classes {
		s.Classes = append(s.Classes, classView(&p.Classes[i]))
	}
	s.Flows = make([]FlowStatus, 0, len(p.Flows))
	s.MoreFlows = moreFlows(p)
	for i := range p.Flows {
		f := &p.Flows[i]
		s.Flows = append(s.Flows, flowView(f, &p.Classes[f.Class]))
	}
	slices.SortStableFunc(s.Flows, func(f, g FlowStatus) int {
		return cmp.Or(cmp.Compare(g.QueuedWork, f.QueuedWork), cmp.Compare(g.RefusedPerMinute, f.RefusedPerMinute), cmp.Compare(g.Rate, f.Rate))
	})
	for i := range p.Contracts {
		s.Contracts = append(s.Contracts, contractView(&p.Contracts[i]))
	}
	if g := p.Gathering; g != nil {
		s.Gathering = &Gathering{
			Request: string(g.Request), Tenant: string(g.Tenant), Class: g.Class.String(), Backend: string(g.Backend), Passed: g.Passed, Allowance: g.Most,
		}
	}
}

// moreFlows is how many flows a picture of a pool leaves out. Those of which nothing
// waits or runs are shown only where there is room, and not counted.
func moreFlows(p *engine.PoolView) (more int) {
	var shown [sluice.NumClasses]int
	for i := range p.Flows {
		shown[p.Flows[i].Class]++
	}
	for c := range p.Classes {
		more += max(0, p.Classes[c].Tenants-shown[c])
	}
	return more
}

func fraction(thousandths int64) float64 { return float64(thousandths) / 1000 }

func served(s *sched.Service) Served {
	return Served{Rate: s.Rate, Share: fraction(s.Share), FairShare: fraction(s.Fair)}
}

func refusedView(r *sched.Refusals) (out map[string]int64) {
	r.Each(func(why sluice.Reason, n int64) {
		if out == nil {
			out = make(map[string]int64)
		}
		out[why.String()] = n
	})
	return out
}

func classView(c *sched.ClassView) ClassStatus {
	return ClassStatus{
		Class: c.Class.String(), Waiting: c.Waiting, Running: c.Running, OldestSeconds: c.Oldest.Seconds(), QueuedWork: c.Queued, Tenants: c.Tenants,
		Served: served(&c.Service), Gap: c.Gap, Refused: refusedView(&c.Refused), RefusedPerMinute: c.PerMinute,
		Guaranteed: fraction(c.Policy.Share), Ceiling: fraction(c.Policy.Ceiling), Headroom: fraction(c.Policy.Headroom),
	}
}

// What marks a flow.
const (
	Noisy      = "noisy"
	OwnLimit   = "own_limit"
	Contracted = "contract"
)

func flowView(f *sched.FlowView, c *sched.ClassView) FlowStatus {
	out := FlowStatus{
		Tenant: string(f.Tenant), Class: f.Class.String(), Weight: f.Weight, Waiting: f.Waiting, Running: f.Running, OldestSeconds: f.Oldest.Seconds(), QueuedWork: f.Queued,
		Served: served(&f.Service), Lead: f.Lead, Refused: refusedView(&f.Refused), RefusedPerMinute: f.PerMinute,
	}
	for _, p := range f.Projects {
		out.Projects = append(out.Projects, ProjectFlow{Project: string(p.Project), Waiting: p.Waiting, Running: p.Running, Lead: p.Lead})
	}
	if noisy(f, c) {
		out.Marks = append(out.Marks, Noisy)
	}
	if f.Parked {
		out.Marks = append(out.Marks, OwnLimit)
	}
	if f.Contract {
		out.Marks = append(out.Marks, Contracted)
	}
	return out
}

// noisy reports whether a flow has at least twice its part, by weight among the
// tenants that are there, of what waits in its class, or of what is refused there.
// Others need not wait: where the queue shares, a flood mostly waits alone.
func noisy(f *sched.FlowView, c *sched.ClassView) bool {
	weight := max(f.Weight, 1)
	twice := func(n, all int64) bool {
		return n > 1 && float64(n)*float64(max(c.Weights, weight)) >= 2*float64(all)*float64(weight)
	}
	return c.Tenants > 1 && (twice(f.Queued, c.Queued) || twice(f.PerMinute, c.PerMinute))
}

func capacityOf(a sched.Amounts) Capacity {
	return Capacity{Slots: a[sched.Slots], KV: a[sched.KV], Prefill: a[sched.Prefill]}
}

func contractView(k *sched.ContractView) ContractStatus {
	out := ContractStatus{
		Tenant: string(k.Tenant), Reserve: Capacity{Slots: k.Slots, KV: int64(k.KV), Work: k.WorkPerSecond}, Used: capacityOf(k.Used),
		Inside: k.Running, Overflow: k.Over, Waiting: k.Waiting, State: "lent",
	}
	switch {
	case !k.Paid:
		out.State = "used_up"
	case k.Wanted || k.Lend == sched.LendNone:
		out.State = "kept"
	}
	return out
}
