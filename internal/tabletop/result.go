package tabletop

import (
	"time"

	"sluice"
)

// Result is what one run showed. Its JSON is the machine-readable report:
// durations are nanoseconds, shares permille, money dollars as text.
type Result struct {
	Scenario string        `json:"scenario"`
	About    string        `json:"about,omitempty"`
	Policy   string        `json:"policy"`
	Acts     []string      `json:"acts,omitempty"`
	Seed     uint64        `json:"seed"`
	Warmup   time.Duration `json:"warmup_ns"`
	Length   time.Duration `json:"length_ns"`
	Ended    time.Duration `json:"ended_ns"` // the moment at which the last thing happened
	Partial  bool          `json:"partial"`  // interrupted: all figures are those up to Ended

	Phases   []Phase   `json:"phases"`          // in order; the first begins at Warmup
	Marks    []Mark    `json:"marks,omitempty"` // what happened, by time
	Series   Series    `json:"series"`          // over time
	Verdicts []Verdict `json:"verdicts"`        // of every expectation
	Passed   bool      `json:"passed"`          // every verdict did

	Ladders []LadderUse `json:"ladders,omitempty"` // of pools whose ladder did anything
}

// LadderUse is what a pool's ladder did in a run.
type LadderUse struct {
	Pool          sluice.PoolID    `json:"pool"`
	Done          map[string]int64 `json:"done"` // to requests: clamp, context, smaller, offer, shed
	ClampedTokens sluice.Tokens    `json:"clamped_tokens"`
}

// Mark is an event on the timeline.
type Mark struct {
	At    time.Duration `json:"at_ns"`
	Label string        `json:"label"`
}

// Phase is a part of the run that is judged by itself. A request belongs to the
// phase in which it was first submitted.
type Phase struct {
	Name     string        `json:"name"`
	From     time.Duration `json:"from_ns"`
	To       time.Duration `json:"to_ns"`
	All      Figures       `json:"all"`
	Classes  []Named       `json:"classes"` // that occur, interactive first
	Tenants  []Named       `json:"tenants"` // by name
	Sources  []Named       `json:"sources"` // in the scenario's order
	Backends []BackendUse  `json:"backends"`
	Retries  Retries       `json:"retries"`
	Fairness []FairnessGap `json:"fairness,omitempty"` // per pool and class with two tenants or more
	Books    Books         `json:"books"`
}

// Named is the figures of one class, tenant or source.
type Named struct {
	Name string `json:"name"`
	Figures
}

// Figures are those of a group of requests. A request is what a person waits
// for: its resubmissions are the same request.
type Figures struct {
	Requests   int64 `json:"requests"` // first submitted
	Good       int64 `json:"good"`     // completed within every target
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
	Cancelled  int64 `json:"cancelled"`      // the client left, by its own will or for want of patience
	Rejected   int64 `json:"rejected"`       // and the client gave up
	Unfinished int64 `json:"unfinished"`     // when the run ended
	Impatient  int64 `json:"impatient"`      // of Cancelled, those that left for want of a first token
	Away       int64 `json:"away,omitempty"` // that were given a place in another region than their home
	Left       int64 `json:"left"`           // of Cancelled, those that left by their own will

	Reasons []ReasonCount `json:"reasons,omitempty"` // of every refusal the gateway made, resubmissions included, by reason

	SLO     int64   `json:"slo_permille"`       // Good ÷ Requests that did not leave by their own will
	Goodput float64 `json:"goodput_per_second"` // Good ÷ the phase's length

	InputTokens  float64 `json:"input_tokens_per_second"`  // asked for by first submissions
	OutputTokens float64 `json:"output_tokens_per_second"` // likewise, true lengths
	Served       float64 `json:"served_tokens_per_second"` // output delivered in the phase

	TTFT  Percentiles `json:"ttft"`  // of those that had a first token
	TPOT  Percentiles `json:"tpot"`  // of those with two tokens or more
	E2E   Percentiles `json:"e2e"`   // of the completed
	Queue Percentiles `json:"queue"` // time in queues, of those dispatched

	Work      int64       `json:"work"`                // delivered in the phase, in the pool's units of work
	Share     int64       `json:"share_permille"`      // of the work of all
	FairShare int64       `json:"fair_share_permille"` // what max-min fairness by weight and demand would give
	Cost      sluice.Nano `json:"cost_nano"`
	PerGood   sluice.Nano `json:"cost_per_good_nano"` // cost of all ÷ Good; cost per useful completion
}

// Percentiles are read off a histogram of every sample: never averaged. A value
// is within 1/64 of the sample's.
type Percentiles struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
}

// ReasonCount is how often.
type ReasonCount struct {
	Reason sluice.Reason `json:"reason"`
	Count  int64         `json:"count"`
}

// BackendUse is what one backend did in a phase.
type BackendUse struct {
	Backend  sluice.BackendID `json:"backend"`
	Attempts int64            `json:"attempts"`
	Failed   int64            `json:"failed"`
	Busy     int64            `json:"busy_permille"` // of the time: something ran
	KVMean   int64            `json:"kv_permille"`   // mean occupancy of its memory
	KVMax    int64            `json:"kv_max_permille"`
	Prefill  int64            `json:"prefill_permille"` // of what it could prefill
	Hits     int64            `json:"prefix_hit_permille"`

	Prefilled sluice.Tokens `json:"prefilled_tokens"`  // input that was computed
	HitTokens sluice.Tokens `json:"prefix_hit_tokens"` // input that was found in the cache
}

// Retries tells the gateway's own attempts from the clients' resubmissions.
type Retries struct {
	Admitted      int64 `json:"admitted"`               // requests that the gateway took, resubmissions included
	Attempts      int64 `json:"attempts"`               // upstream
	Dispatched    int64 `json:"dispatched"`             // of Admitted, those that had a place
	Amplification int64 `json:"amplification_permille"` // Attempts ÷ Dispatched
	Refused       int64 `json:"refused_by_budget"`
	Resubmitted   int64 `json:"resubmitted"` // by clients
	Hedged        int64 `json:"hedged"`      // of Attempts, those that began beside another
	Won           int64 `json:"hedges_won"`  // of Hedged, those that had the first token
}

// FairnessGap is the largest difference of service by weight between two tenants
// of a pool and class over any interval in which both were continuously
// eligible, beside its bound (DESIGN's fairness bound).
type FairnessGap struct {
	Pool  sluice.PoolID `json:"pool"`
	Class string        `json:"class"`
	Gap   int64         `json:"gap"`
	Bound int64         `json:"bound"`
	A     string        `json:"a"`
	B     string        `json:"b"`
}

// Books is the conservation of the phase's requests: Lost, Twice and Open must be 0.
type Books struct {
	Admitted int64       `json:"admitted"`
	Settled  int64       `json:"settled"`
	Lost     int64       `json:"lost"`  // ended without a settlement
	Twice    int64       `json:"twice"` // settled more than once
	Open     int64       `json:"open"`  // holds that outlived their request, after the drain
	Cost     sluice.Nano `json:"cost_nano"`
}

// Series is figures over time, in buckets of equal length from 0.
type Series struct {
	Bucket time.Duration `json:"bucket_ns"`
	Count  int           `json:"count"`
	Groups []Line        `json:"groups"` // classes, then tenants (largest first, at most 20, then "others")
	Pools  []PoolLine    `json:"pools"`
}

// Line is one class or tenant over time: one value per bucket.
type Line struct {
	Kind      string          `json:"kind"` // class or tenant
	Name      string          `json:"name"`
	Requests  []int64         `json:"requests"`
	Good      []int64         `json:"good"` // by the time of submission
	Input     []int64         `json:"input_tokens"`
	TTFT50    []time.Duration `json:"ttft_p50_ns"` // by the time of submission; -1 where there is no sample
	TTFT99    []time.Duration `json:"ttft_p99_ns"`
	TPOT50    []time.Duration `json:"tpot_p50_ns"`
	TPOT99    []time.Duration `json:"tpot_p99_ns"`
	QueueAge  []time.Duration `json:"queue_age_ns"` // oldest waiting, at the bucket's end
	KV        []int64         `json:"kv_tokens"`    // of context in the machines' memory at the bucket's end
	Rejected  []ReasonLine    `json:"rejected"`
	Share     []int64         `json:"share_permille"`
	FairShare []int64         `json:"fair_share_permille"`
	PerGood   []sluice.Nano   `json:"cost_per_good_nano"`
}

// ReasonLine is refusals for one reason over time.
type ReasonLine struct {
	Reason sluice.Reason `json:"reason"`
	Counts []int64       `json:"counts"`
}

// PoolLine is one pool over time.
type PoolLine struct {
	Pool    sluice.PoolID `json:"pool"`
	Waiting []int64       `json:"waiting"`
	Running []int64       `json:"running"`
	KVUsed  []int64       `json:"kv_permille"`
	Up      []int64       `json:"backends_up"`
	Demand  []int64       `json:"demand_permille"` // asked for, of what serves, in the scarcest dimension whose supply is known
}

// Verdict is one expectation, judged in one phase.
type Verdict struct {
	Text   string `json:"text"`
	Phase  string `json:"phase"`
	Got    string `json:"got"` // in the expectation's unit
	Want   string `json:"want"`
	Passed bool   `json:"passed"`
	Line   int    `json:"line,omitempty"` // in the scenario's file
}
