package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/capacity"
)

func (a *API) registerCapacity(api huma.API) {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: "/admin/v1/capacity" + path, Summary: summary, Tags: []string{"capacity"}}
	}
	register(a, api, op("capacity-plan", http.MethodPost, "", "Whether a fleet holds a demand; changes nothing"), a.capacityPlan)
	register(a, api, op("capacity-mix", http.MethodPost, "/mix", "A mix of workloads before and after a change; changes nothing"), a.capacityMix)
	register(a, api, op("capacity-allocate", http.MethodPost, "/allocate", "How GPUs are best shared between models; changes nothing"), a.capacityAllocate)
	register(a, api, op("capacity-forecast", http.MethodGet, "/forecast", "What the ledger's history leads to, and when the fleet runs out"), a.capacityForecast)
	register(a, api, op("capacity-profiles", http.MethodGet, "/profiles", "What replicas can do: illustrative figures"), a.capacityProfiles)
}

// CapacityFleet is the machines of a question.
type CapacityFleet struct {
	Profile string           `json:"profile,omitempty" maxLength:"64" doc:"A name of /admin/v1/capacity/profiles; empty: the first model on the first GPU"`
	Replica *CapacityReplica `json:"replica,omitempty" doc:"A replica's own figures, in place of profile"`
	GPUs    int64            `json:"gpus,omitempty" minimum:"0" maximum:"1000000" doc:"Of the fleet; 0: as many as are needed"`
	Lose    Quantity         `json:"lose,omitempty" doc:"Part of the GPUs that may fail together: 25%"`
	Target  Quantity         `json:"target,omitempty" doc:"Part of the engines' time that may be planned for; empty: all of it"`
}

// question reads the machines.
func (f *CapacityFleet) question() (q capacity.Question, measured bool, err error) {
	q.GPUs = f.GPUs
	if err := readFigures(figure{"lose", f.Lose, &q.Lose}, figure{"target", f.Target, &q.Target}); err != nil {
		return q, false, err
	}
	if f.Replica != nil {
		q.Replica, err = f.Replica.replica()
		return q, true, err
	}
	q.Replica, err = capacity.ReplicaNamed(f.Profile)
	return q, false, err
}

// CapacityRow is what a tenant sends.
type CapacityRow struct {
	Tenant   string   `json:"tenant,omitempty" maxLength:"128"`
	Share    Quantity `json:"share,omitempty" doc:"Part of rps that this row is: 50%"`
	RPS      Quantity `json:"rps,omitempty" doc:"Requests per second, or per another time: 30, 20/min"`
	RPM      Quantity `json:"rpm,omitempty" doc:"Requests per minute, in place of rps"`
	Input    Quantity `json:"input,omitempty" doc:"Tokens of the prompt: 1500, or 1500,2%:100k for two in a hundred very long ones, or p50=800,p90=3k,p99=12k"`
	Output   Quantity `json:"output,omitempty" doc:"Tokens of the answer, in the same form"`
	CacheHit Quantity `json:"cache_hit,omitempty" doc:"Part of the input that the prefix cache has: 60%"`
	Retries  Quantity `json:"retries,omitempty" doc:"Attempts beyond the first, per request: 10%"`
}

// row reads it; at is its place, such as "before[0].".
func (r *CapacityRow) row(at string) (capacity.Row, error) {
	out := capacity.Row{Tenant: r.Tenant}
	if r.RPS != "" {
		out.RPS = &capacity.Rate{}
	}
	if r.RPM != "" {
		out.RPM = &capacity.Amount{}
	}
	if r.Share != "" {
		out.Share = &capacity.Share{}
	}
	return out, readFigures(
		figure{at + "rps", r.RPS, out.RPS}, figure{at + "rpm", r.RPM, out.RPM}, figure{at + "share", r.Share, out.Share},
		figure{at + "input", r.Input, &out.Input}, figure{at + "output", r.Output, &out.Output},
		figure{at + "cache_hit", r.CacheHit, &out.CacheHit}, figure{at + "retries", r.Retries, &out.Retries},
	)
}

func readRows(name string, in []CapacityRow) ([]capacity.Row, error) {
	out := make([]capacity.Row, len(in))
	for i := range in {
		var err error
		if out[i], err = in[i].row(fmt.Sprintf("%s[%d].", name, i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readTotal reads a rate that shares are of.
func readTotal(param string, q Quantity) (*capacity.Rate, error) {
	if q == "" {
		return nil, nil
	}
	r := &capacity.Rate{}
	return r, readFigures(figure{param, q, r})
}

type capacityPlanIn struct {
	Body struct {
		CapacityFleet
		CapacityRow
	}
}

type capacityPlanOut struct{ Body CapacityPlan }

func (a *API) capacityPlan(_ context.Context, in *capacityPlanIn) (*capacityPlanOut, error) {
	q, measured, err := in.Body.question()
	if err != nil {
		return nil, err
	}
	row, err := in.Body.row("")
	if err != nil {
		return nil, err
	}
	w, err := row.Workload(nil)
	if err != nil {
		return nil, err
	}
	q.Workloads = []capacity.Workload{w}
	p, err := capacity.Solve(q)
	if err != nil {
		return nil, err
	}
	return &capacityPlanOut{PlanOf(p, measured)}, nil
}

type capacityMixIn struct {
	Body struct {
		CapacityFleet
		RPS    Quantity      `json:"rps,omitempty" doc:"Requests per second of all rows together, which share is of"`
		Before []CapacityRow `json:"before" minItems:"1" maxItems:"1000"`
		After  []CapacityRow `json:"after,omitempty" maxItems:"1000"`
	}
}

type capacityMixOut struct{ Body CapacityMix }

func (a *API) capacityMix(_ context.Context, in *capacityMixIn) (*capacityMixOut, error) {
	q, measured, err := in.Body.question()
	if err != nil {
		return nil, err
	}
	var m capacity.MixFile
	if m.RPS, err = readTotal("rps", in.Body.RPS); err != nil {
		return nil, err
	}
	if m.Before, err = readRows("before", in.Body.Before); err != nil {
		return nil, err
	}
	if m.After, err = readRows("after", in.Body.After); err != nil {
		return nil, err
	}
	before, after, err := m.Workloads()
	if err != nil {
		return nil, err
	}
	c, err := capacity.Compare(q, before, after)
	if err != nil {
		return nil, err
	}
	return &capacityMixOut{MixOf(c, measured)}, nil
}

// CapacityModel is a model that shares a fleet.
type CapacityModel struct {
	Name     string           `json:"name" minLength:"1" maxLength:"128"`
	Profile  string           `json:"profile,omitempty" maxLength:"64" doc:"A name of /admin/v1/capacity/profiles"`
	Profiles []string         `json:"profiles,omitempty" maxItems:"8" doc:"What one replica may be, such as groups of 4 and of 8 GPUs, of which one is taken; in place of profile"`
	Replica  *CapacityReplica `json:"replica,omitempty" doc:"A replica's own figures, in place of profile"`
	Weight   int64            `json:"weight,omitempty" minimum:"0" maximum:"1000000" doc:"How much its demand counts beside others'; 0 is 1"`
	Min      int64            `json:"min,omitempty" minimum:"0" maximum:"2048" doc:"Replicas that it has in any case"`
	Headroom Quantity         `json:"headroom,omitempty" doc:"Part of its engines' time to keep free: 20%"`
	TTFT     string           `json:"ttft,omitempty" maxLength:"32" doc:"Promised until the first token, of nine requests in ten, as 2s"`
	TPOT     string           `json:"tpot,omitempty" maxLength:"32" doc:"Promised for each further token, as 40ms"`
	Start    string           `json:"start,omitempty" maxLength:"32" doc:"Until a new replica serves, as 90s; 2m if left out"`
	RPS      Quantity         `json:"rps,omitempty" doc:"Requests per second of all rows together, which share is of"`
	Demand   []CapacityRow    `json:"demand" maxItems:"100"`
}

// CapacityDomain is GPUs that fail together.
type CapacityDomain struct {
	Name string `json:"name" minLength:"1" maxLength:"128"`
	GPUs int64  `json:"gpus" minimum:"1" maximum:"2048"`
}

type capacityAllocateIn struct {
	Body struct {
		GPUs    int64              `json:"gpus,omitempty" minimum:"1" maximum:"2048" doc:"Those of domains if left out"`
		Domains []CapacityDomain   `json:"domains,omitempty" maxItems:"256" doc:"What fails together, and holds whole replicas"`
		Models  []CapacityModel    `json:"models" minItems:"1" maxItems:"32"`
		Current []CapacityStanding `json:"current,omitempty" maxItems:"2048" doc:"Replicas that run"`
		Most    int64              `json:"most_moves,omitempty" minimum:"0" maximum:"256" doc:"Backends that are drained at most; 8 if left out"`
		Horizon string             `json:"horizon,omitempty" maxLength:"32" doc:"Within which a move has to pay for itself; 1h if left out"`
	}
}

type capacityAllocateOut struct{ Body CapacityAllocation }

func (a *API) capacityAllocate(_ context.Context, in *capacityAllocateIn) (*capacityAllocateOut, error) {
	f := capacity.AllocationFile{GPUs: in.Body.GPUs}
	if in.Body.Most != 0 {
		f.Moves.Most = &in.Body.Most
	}
	for _, d := range in.Body.Domains {
		f.Domains = append(f.Domains, capacity.Domain(d))
	}
	for _, s := range in.Body.Current {
		f.Current = append(f.Current, capacity.Standing(s))
	}
	if in.Body.Horizon != "" {
		f.Moves.Horizon = new(capacity.Span)
		if err := readSpans(span{"horizon", in.Body.Horizon, f.Moves.Horizon}); err != nil {
			return nil, err
		}
	}
	replicas := make(map[string]capacity.Replica)
	for i := range in.Body.Models {
		m := &in.Body.Models[i]
		at := fmt.Sprintf("models[%d].", i)
		out := capacity.Model{Name: m.Name, Profile: m.Profile, Profiles: m.Profiles, Weight: m.Weight, Min: m.Min}
		if err := readSpans(span{at + "ttft", m.TTFT, &out.SLO.TTFT}, span{at + "tpot", m.TPOT, &out.SLO.TPOT}, span{at + "start", m.Start, &out.Start}); err != nil {
			return nil, err
		}
		if m.Replica != nil {
			r, err := m.Replica.replica()
			if err != nil {
				return nil, err
			}
			out.Profile = at // a name that no profile has
			replicas[at] = r
		}
		err := readFigures(figure{at + "headroom", m.Headroom, &out.Headroom})
		if err != nil {
			return nil, err
		}
		if out.RPS, err = readTotal(at+"rps", m.RPS); err != nil {
			return nil, err
		}
		if out.Demand, err = readRows(at+"demand", m.Demand); err != nil {
			return nil, err
		}
		f.Models = append(f.Models, out)
	}
	claims, err := f.Claims(func(profile string) (capacity.Replica, error) {
		if r, ok := replicas[profile]; ok {
			return r, nil
		}
		return capacity.ReplicaNamed(profile)
	})
	if err != nil {
		return nil, err
	}
	answer, err := AllocationFor(&f, claims)
	if err != nil {
		return nil, err
	}
	return &capacityAllocateOut{answer}, nil
}

// AllocationFor is the allocation that a file asks for, with the moves to it.
func AllocationFor(f *capacity.AllocationFile, claims []capacity.Claim) (CapacityAllocation, error) {
	var fault error
	f.Check(func(path, cause, fix string) {
		if fault == nil {
			fault = hinted(sluice.Invalid(path, "%s", cause), fix)
		}
	})
	if fault != nil {
		return CapacityAllocation{}, fault
	}
	got, err := capacity.Allocate(f.GPUs, claims)
	if err != nil {
		return CapacityAllocation{}, err
	}
	answer := AllocationOf(got)
	if w, ok := f.Ways(); ok {
		moves, err := capacity.PlanMoves(claims, &got, w)
		if err != nil {
			return CapacityAllocation{}, err
		}
		answer.Moves = MovesOf(moves)
	}
	return answer, nil
}

// span is a time of a request and where it is read to.
type span struct {
	param, text string
	to          *capacity.Span
}

func readSpans(all ...span) error {
	for _, s := range all {
		if s.text == "" {
			continue
		}
		if err := s.to.UnmarshalText([]byte(s.text)); err != nil {
			e := *sluice.AsError(err)
			e.Param = s.param
			return &e
		}
	}
	return nil
}

// CapacityReplica is what one replica can do.
type CapacityReplica struct {
	Name           string  `json:"name,omitempty" maxLength:"64"`
	GPUs           int64   `json:"gpus" minimum:"1" maximum:"1024" doc:"Of one replica"`
	PrefillRate    int64   `json:"prefill_tokens_per_second" minimum:"1" maximum:"100000000"`
	PrefillPerPair float64 `json:"prefill_seconds_per_pair,omitempty" minimum:"0" maximum:"0.001" doc:"For each pair of a token of the prompt with one before it: the part that grows with the square"`
	StepBase       float64 `json:"step_base_seconds" minimum:"0" maximum:"60" doc:"A decode step, whatever is in it"`
	StepPerJob     float64 `json:"step_per_request_seconds,omitempty" minimum:"0" maximum:"1"`
	StepPerToken   float64 `json:"step_per_token_seconds,omitempty" minimum:"0" maximum:"0.001" doc:"For each token of context"`
	KVTokens       int64   `json:"kv_tokens,omitempty" minimum:"0" maximum:"1000000000" doc:"Memory; 0: not bounded"`
	Slots          int     `json:"slots,omitempty" minimum:"0" maximum:"100000" doc:"Most requests in its batch; 0: 256"`
	Model          string  `json:"model,omitempty" maxLength:"64"`
	GPU            string  `json:"gpu,omitempty" maxLength:"64"`
	Precision      string  `json:"precision,omitempty" maxLength:"16"`
	Basis          string  `json:"basis,omitempty" maxLength:"16" doc:"Where the figures come from: seed, derived, measured, published"`
}

func (r *CapacityReplica) replica() (capacity.Replica, error) {
	out := capacity.Replica{Name: r.Name, GPUs: r.GPUs}
	if out.Name == "" {
		out.Name = "custom"
	}
	p := &out.Profile
	p.PrefillRate, p.KVCapacity, p.Slots = r.PrefillRate, sluice.Tokens(r.KVTokens), r.Slots
	p.PrefillPerPair, p.StepPerToken = int64(r.PrefillPerPair*1e12+0.5), int64(r.StepPerToken*1e12+0.5)
	p.StepBase, p.StepPerJob = time.Duration(r.StepBase*1e9+0.5), time.Duration(r.StepPerJob*1e9+0.5)
	if p.StepBase+p.StepPerJob == 0 {
		return out, hinted(sluice.Invalid("replica.step_base_seconds", "is 0, and so is what a request adds"), "a decode step takes some time: 0.008")
	}
	return out, nil
}

// ReplicaOf shows a replica.
func ReplicaOf(r capacity.Replica) CapacityReplica {
	p := r.Profile
	return CapacityReplica{
		Name: r.Name, GPUs: r.GPUs, PrefillRate: p.PrefillRate, PrefillPerPair: float64(p.PrefillPerPair) / 1e12,
		StepBase: p.StepBase.Seconds(), StepPerJob: p.StepPerJob.Seconds(), StepPerToken: float64(p.StepPerToken) / 1e12,
		KVTokens: int64(p.KVCapacity), Slots: p.Slots,
	}
}

// KnownOf shows a profile that has a name.
func KnownOf(k capacity.Known) CapacityReplica {
	r := ReplicaOf(k.Replica)
	r.Model, r.GPU, r.Precision, r.Basis = k.Model, k.GPU, k.Precision, k.Basis
	return r
}

// CapacityProfiles are what replicas can do.
type CapacityProfiles struct {
	Note     string            `json:"note"`
	Profiles []CapacityReplica `json:"profiles"`
}

// IllustrativeNote is said wherever profiles are.
const IllustrativeNote = "Profiles are illustrative, derived from published measurements: fit your own with sluice capacity calibrate."

type capacityProfilesOut struct{ Body CapacityProfiles }

func (a *API) capacityProfiles(context.Context, *struct{}) (*capacityProfilesOut, error) {
	out := &capacityProfilesOut{CapacityProfiles{Note: IllustrativeNote, Profiles: []CapacityReplica{}}}
	for _, k := range capacity.Profiles() {
		out.Body.Profiles = append(out.Body.Profiles, KnownOf(k))
	}
	return out, nil
}
