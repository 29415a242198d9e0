package admin

import (
	"math"

	"sluice/internal/capacity"
)

// CapacityPlan answers whether a fleet holds a demand.
type CapacityPlan struct {
	Profile        string  `json:"profile" doc:"What one replica is"`
	Illustrative   bool    `json:"illustrative" doc:"Whether the profile's figures are derived from publications, not measured on this fleet"`
	GPUsPerReplica int64   `json:"gpus_per_replica"`
	GPUsAssumed    bool    `json:"gpus_assumed" doc:"No fleet was given: gpus is as many as are needed"`
	Target         float64 `json:"target" doc:"Part of the engines' time that may be planned for"`
	CapacityState
	Lose float64        `json:"lose" doc:"Part of the GPUs that is lost in lost"`
	Lost *CapacityState `json:"lost,omitempty" doc:"The same without that part, and without the prefixes that it had cached"`
}

// CapacityDemand is what requests ask for.
type CapacityDemand struct {
	Requests float64 `json:"requests_per_second"`
	Attempts float64 `json:"attempts_per_second" doc:"Requests with their retries"`
	Input    float64 `json:"input_tokens_per_second" doc:"Cached input too"`
	Prefill  float64 `json:"prefill_tokens_per_second" doc:"Input that must be computed"`
	Output   float64 `json:"output_tokens_per_second"`
}

// CapacityState is a demand on a fleet.
type CapacityState struct {
	CapacityDemand
	KVTokens     int64                `json:"kv_tokens" doc:"Tokens in memory by Little's law, of engines that decode full batches"`
	KVHeldTokens int64                `json:"kv_held_tokens" doc:"The same with the room that is kept for answers under way: what utilisation.kv is of"`
	Utilisation  *CapacityUtilisation `json:"utilisation,omitempty" doc:"Left out where there is no replica"`
	Binding      string               `json:"binding" enum:"prefill,decode,kv" doc:"The dimension that is used most"`
	Over         bool                 `json:"over_capacity" doc:"More is asked for than the fleet holds: utilisation.engine is above target"`
	GPUsNeeded   int64                `json:"gpus_needed" doc:"To install, in whole replicas"`
	GPUs         int64                `json:"gpus" doc:"That serve"`
	Replicas     int64                `json:"replicas"`
	Supply       CapacitySupply       `json:"supply"`
	Batch        int64                `json:"batch_limit" doc:"Most requests in the batch of a replica"`
	MemoryBound  bool                 `json:"memory_bounds_batch" doc:"Whether the memory, not the slots, bounds the batch"`
	Factor       float64              `json:"fits_factor" doc:"How many times this demand the fleet holds"`
	Spare        float64              `json:"spare_requests_per_second" doc:"Further requests of this kind that would fit"`
	Expected     *CapacityExpected    `json:"expected,omitempty" doc:"What to see on a replica, unless over capacity"`
}

// CapacityUtilisation is parts of the supply: 1 is all of it.
type CapacityUtilisation struct {
	Prefill float64 `json:"prefill"`
	Decode  float64 `json:"decode"`
	KV      float64 `json:"kv"`
	Engine  float64 `json:"engine" doc:"Time of the engines: prefill and decode take turns, so that it is their sum; or kv, where memory is scarcer"`
}

// CapacitySupply is what the fleet has.
type CapacitySupply struct {
	Prefill float64 `json:"prefill_tokens_per_second"`
	Output  float64 `json:"output_tokens_per_second" doc:"Of full batches"`
	KV      int64   `json:"kv_tokens" doc:"0: not bounded"`
}

// CapacityExpected is the state of a replica, by the means of what arrives.
type CapacityExpected struct {
	Batch float64 `json:"batch" doc:"Requests in the engine at the same time"`
	Step  float64 `json:"seconds_per_output_token"`
	KV    int64   `json:"kv_tokens" doc:"Tokens in its memory"`
}

// rounded is an exact amount as JSON has it, to a millionth where that is seen.
func rounded(a capacity.Amount) float64 {
	f := a.Float()
	if math.Abs(f) < 1e9 {
		return math.Round(f*1e6) / 1e6
	}
	return f
}

// DemandOf shows a demand.
func DemandOf(d capacity.Demand) CapacityDemand {
	return CapacityDemand{
		Requests: rounded(d.Requests), Attempts: rounded(d.Attempts), Input: rounded(d.Input), Prefill: rounded(d.Prefill), Output: rounded(d.Output),
	}
}

// PlanOf shows a plan. Measured says that the profile is of this very fleet.
func PlanOf(p capacity.Plan, measured bool) CapacityPlan {
	out := CapacityPlan{
		Profile: p.Replica.Name, Illustrative: !measured, GPUsPerReplica: p.Replica.GPUs, GPUsAssumed: p.Assumed,
		Target: rounded(p.Target), CapacityState: capacityStateOf(p.State), Lose: rounded(p.Lose),
	}
	if p.Lost != nil {
		s := capacityStateOf(*p.Lost)
		out.Lost = &s
	}
	return out
}

func capacityStateOf(s capacity.State) CapacityState {
	out := CapacityState{
		CapacityDemand: DemandOf(s.Demand), KVTokens: s.KVUsed.Ceil(), KVHeldTokens: s.KVHeld.Ceil(),
		Binding: string(s.Binding), Over: s.Over, GPUsNeeded: s.GPUsNeeded, GPUs: s.GPUs, Replicas: s.Replicas,
		Supply: CapacitySupply{Prefill: rounded(s.SupplyPrefill), Output: rounded(s.SupplyDecode), KV: s.SupplyKV.Floor()},
		Batch:  s.Batch, MemoryBound: s.Tight, Factor: rounded(s.Factor), Spare: rounded(s.Spare),
	}
	if s.Replicas > 0 {
		out.Utilisation = utilisationOf(s.Utilisation)
	}
	if s.Replicas > 0 && !s.Over {
		out.Expected = &CapacityExpected{Batch: rounded(s.Expected.Batch), Step: rounded(s.Expected.Step), KV: s.Expected.KVUsed.Ceil()}
	}
	return out
}

func utilisationOf(u capacity.Utilisation) *CapacityUtilisation {
	return &CapacityUtilisation{Prefill: rounded(u.Prefill), Decode: rounded(u.Decode), KV: rounded(u.KV), Engine: rounded(u.Engine)}
}

// CapacityMix is a workload before and after a change.
type CapacityMix struct {
	Before CapacityPlan        `json:"before"`
	After  *CapacityPlan       `json:"after,omitempty"`
	Ratios *CapacityRatios     `json:"ratio,omitempty" doc:"After ÷ before"`
	Rows   []CapacityRowDemand `json:"rows" doc:"What each row asks for"`
}

// CapacityRatios are after ÷ before.
type CapacityRatios struct {
	Requests float64 `json:"requests_per_second"`
	Input    float64 `json:"input_tokens_per_second"`
	Prefill  float64 `json:"prefill_tokens_per_second"`
	Output   float64 `json:"output_tokens_per_second"`
	KV       float64 `json:"kv_tokens"`
	Engine   float64 `json:"engine" doc:"Time of the engines"`
}

// CapacityRowDemand is what one row asks for.
type CapacityRowDemand struct {
	Side   string  `json:"side" enum:"before,after"`
	Tenant string  `json:"tenant,omitempty"`
	Share  float64 `json:"engine_share" doc:"Its part of the engines' time that its side takes"`
	CapacityDemand
}

// MixOf shows a comparison.
func MixOf(c capacity.Comparison, measured bool) CapacityMix {
	out := CapacityMix{Before: PlanOf(c.Before, measured), Rows: make([]CapacityRowDemand, 0, len(c.Rows))}
	for _, r := range c.Rows {
		side := "before"
		if r.After {
			side = "after"
		}
		out.Rows = append(out.Rows, CapacityRowDemand{Side: side, Tenant: r.Name, Share: rounded(r.Share), CapacityDemand: DemandOf(r.Demand)})
	}
	if c.After != nil {
		p, r := PlanOf(*c.After, measured), c.Ratios
		out.After = &p
		out.Ratios = &CapacityRatios{
			Requests: rounded(r.Requests), Input: rounded(r.Input), Prefill: rounded(r.Prefill), Output: rounded(r.Output), KV: rounded(r.KV), Engine: rounded(r.Engine),
		}
	}
	return out
}

// CapacityAllocation is GPUs shared between models.
type CapacityAllocation struct {
	GPUs      int64               `json:"gpus"`
	Spare     int64               `json:"spare_gpus" doc:"Too few for any further replica"`
	Satisfied float64             `json:"satisfied" doc:"Part of all demand that fits, by weight"`
	Models    []CapacityAllotment `json:"models"`
	Moves     *CapacityMoves      `json:"moves,omitempty" doc:"From what runs to this; left out where neither domains nor current are given"`
}

// CapacityMoves are the steps from what runs to an allocation.
type CapacityMoves struct {
	Steps  []CapacityMove   `json:"steps" doc:"One after the other"`
	Kept   []CapacityKept   `json:"kept,omitempty" doc:"What of the allocation is not moved to"`
	Spread []CapacitySpread `json:"spread" doc:"Where replicas are in the end"`
}

// CapacityMove drains backends and, when they are empty, starts a replica on their GPUs.
type CapacityMove struct {
	Drain       []CapacityStanding `json:"drain"`
	Model       string             `json:"model" doc:"Of the replica that starts"`
	Profile     string             `json:"profile"`
	GPUs        int64              `json:"gpus"`
	Domain      string             `json:"domain,omitempty"`
	DrainWithin float64            `json:"drain_within_seconds" doc:"At most, until what runs on them has ended"`
	Start       float64            `json:"start_seconds" doc:"Until the replica serves"`
	Before      float64            `json:"satisfied_before" doc:"Part of all demand that is served, by weight"`
	During      float64            `json:"satisfied_during"`
	After       float64            `json:"satisfied_after"`
	PaysIn      float64            `json:"pays_in_seconds" doc:"From then on, until what was lost meanwhile is made good"`
}

// CapacityStanding is a replica that runs.
type CapacityStanding struct {
	Backend string `json:"backend" minLength:"1" maxLength:"128"`
	Model   string `json:"model" minLength:"1" maxLength:"128"`
	Domain  string `json:"domain,omitempty" maxLength:"128"`
}

// CapacityKept is replicas that are not moved to.
type CapacityKept struct {
	Model    string `json:"model"`
	Replicas int64  `json:"replicas"`
	Why      string `json:"why"`
}

// CapacitySpread is a model's replicas in one failure domain.
type CapacitySpread struct {
	Model    string  `json:"model"`
	Domain   string  `json:"domain,omitempty"`
	Replicas int64   `json:"replicas"`
	Share    float64 `json:"share" doc:"Part of the model's replicas, which is lost with the domain"`
}

// MovesOf shows moves.
func MovesOf(m capacity.Moves) *CapacityMoves {
	out := &CapacityMoves{Steps: make([]CapacityMove, 0, len(m.Steps)), Spread: make([]CapacitySpread, 0, len(m.Spread))}
	for i := range m.Steps {
		s := &m.Steps[i]
		x := CapacityMove{
			Drain: make([]CapacityStanding, 0, len(s.Drain)), Model: s.Model, Profile: s.Profile, GPUs: s.GPUs, Domain: s.Domain,
			DrainWithin: rounded(s.DrainWithin), Start: rounded(s.Start), Before: rounded(s.Before), During: rounded(s.During), After: rounded(s.After), PaysIn: rounded(s.PaysIn),
		}
		for _, d := range s.Drain {
			x.Drain = append(x.Drain, CapacityStanding(d))
		}
		out.Steps = append(out.Steps, x)
	}
	for _, k := range m.Kept {
		out.Kept = append(out.Kept, CapacityKept(k))
	}
	all := make(map[string]int64)
	for _, s := range m.Spread {
		all[s.Model] += s.Replicas
	}
	for _, s := range m.Spread {
		out.Spread = append(out.Spread, CapacitySpread{s.Model, s.Domain, s.Replicas, float64(s.Replicas) / float64(all[s.Model])})
	}
	return out
}

// CapacityAllotment is what one model gets.
type CapacityAllotment struct {
	Name      string  `json:"name"`
	Profile   string  `json:"profile,omitempty" doc:"Of its replicas"`
	Replicas  int64   `json:"replicas"`
	GPUs      int64   `json:"gpus"`
	Needed    int64   `json:"replicas_needed" doc:"For all of its demand, its headroom kept free"`
	Satisfied float64 `json:"satisfied" doc:"Part of its demand that fits"`
	Factor    float64 `json:"fits_factor" doc:"How many times its demand fits; 0 where it has none"`
	CapacityDemand
	Utilisation *CapacityUtilisation `json:"utilisation,omitempty" doc:"By all of its demand; left out where it has no replica"`
	Binding     string               `json:"binding" enum:"prefill,decode,kv"`
	Target      float64              `json:"target" doc:"Part of its engines' time that headroom and SLO leave"`
	Latency     *CapacityLatency     `json:"latency,omitempty" doc:"To be expected; left out where more is asked for than it has"`
}

// CapacityLatency is what the users of a model are to expect.
type CapacityLatency struct {
	TTFT float64 `json:"ttft_seconds" doc:"Until the first token, of nine requests in ten"`
	TPOT float64 `json:"tpot_seconds" doc:"For each further token"`
}

// AllocationOf shows an allocation.
func AllocationOf(a capacity.Allocation) CapacityAllocation {
	out := CapacityAllocation{GPUs: a.GPUs, Spare: a.Spare, Satisfied: rounded(a.Satisfied), Models: make([]CapacityAllotment, 0, len(a.Models))}
	for _, m := range a.Models {
		x := CapacityAllotment{
			Name: m.Name, Replicas: m.Replicas, GPUs: m.GPUs, Needed: m.Needed, Satisfied: rounded(m.Satisfied), Factor: rounded(m.Headroom),
			CapacityDemand: DemandOf(m.Demand), Binding: string(m.Binding), Profile: m.Profile, Target: rounded(m.Target),
		}
		if m.Latency != nil {
			x.Latency = &CapacityLatency{rounded(m.Latency.TTFT), rounded(m.Latency.TPOT)}
		}
		if m.Replicas > 0 {
			x.Utilisation = utilisationOf(m.Utilisation)
		}
		out.Models = append(out.Models, x)
	}
	return out
}
