package admin

import (
	"encoding/json"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/quota"
	"sluice/internal/route"
)

// Explanation is why a request went as it did, from its ledger entries.
type Explanation struct {
	Request
	Labels   map[string]string `json:"labels,omitempty"`
	Dialect  string            `json:"dialect"`
	Stream   bool              `json:"stream"`
	Policy   string            `json:"policy,omitempty" doc:"Version of the routing table"`
	Ended    time.Time         `json:"ended"`
	Late     bool              `json:"late,omitempty" doc:"Settled after its hold had expired"`
	Estimate Estimate          `json:"estimate" doc:"What was held, before it ran"`
	Steps    []Attempt         `json:"steps" doc:"One per attempt; a single one numbered 0 if no backend was reached"`
	Total    Charge            `json:"total" doc:"Over all attempts"`
	Tier     int               `json:"tier,omitempty" doc:"Tier on which the degradation ladder of its pool stood, as the request felt it"`
	Ladder   *LadderFelt       `json:"ladder,omitempty" doc:"What it felt of that ladder, and why that stood there"`
	Limits   []LimitFigure     `json:"limits,omitempty" doc:"The caller's limits as they stood at dispatch or at the refusal"`
	Refusal  *RefusalFigure    `json:"refusal,omitempty" doc:"The limit that did not fit"`
	Shadow   *RefusalFigure    `json:"shadow,omitempty" doc:"The limit that would not have fitted, were it not in shadow"`
	ShadowOf string            `json:"shadow_of,omitempty" doc:"The request that this is a copy of, whose answer nobody saw"`
	Copies   []ShadowCopy      `json:"shadows,omitempty" doc:"The model's shadows whose turn it was: copies that were sent there, or why not"`
}

// Estimate is what was known before the request ran.
type Estimate struct {
	Input       sluice.Tokens `json:"input_tokens"`
	OutputBound sluice.Tokens `json:"output_bound_tokens"`
	Held        string        `json:"held_spend"`
}

// Charge is usage and what it cost.
type Charge struct {
	Tokens          map[string]sluice.Tokens `json:"tokens" doc:"By disjoint class; classes of zero are left out"`
	ToolCalls       int64                    `json:"tool_calls,omitempty"`
	WebSearches     int64                    `json:"web_searches,omitempty"`
	Units           int64                    `json:"units,omitempty" doc:"What the operation is billed by beside tokens: images, seconds of audio, characters or searches"`
	Source          string                   `json:"usage_source" enum:"none,estimated,estimated_time,counted,drained,reported,cached"`
	Anomalous       bool                     `json:"anomalous,omitempty"`
	ServiceTier     string                   `json:"service_tier,omitempty"`
	Cost            string                   `json:"cost"`
	CostNanodollars int64                    `json:"cost_nanodollars"`
	BudgetCost      string                   `json:"budget_cost,omitempty" doc:"What a hard budget was charged, where it is more"`
	PriceVersion    string                   `json:"price_version,omitempty"`
	Rates           map[string]string        `json:"rates,omitempty" doc:"Of an attempt: what a million of each class that was used is charged, as it was settled; web_search, request, image, second, character and search count those"`
}

// Attempt is one call to one backend.
type Attempt struct {
	Attempt           int         `json:"attempt" doc:"From 1"`
	Pool              string      `json:"pool,omitempty"`
	Backend           string      `json:"backend,omitempty"`
	Provider          string      `json:"provider,omitempty"`
	UpstreamModel     string      `json:"upstream_model,omitempty" doc:"What was asked for"`
	ServedModel       string      `json:"served_model,omitempty" doc:"What the provider said it served"`
	UpstreamRequestID string      `json:"upstream_request_id,omitempty"`
	Outcome           string      `json:"outcome"`
	Reason            string      `json:"reason,omitempty"`
	Finish            string      `json:"finish_reason,omitempty" doc:"The provider's word for why its answer ended"`
	Message           string      `json:"message,omitempty" doc:"What the client was told, of a request that was refused; or which batch of a provider gave the line back, and how that came out"`
	Hint              string      `json:"hint,omitempty" doc:"What the client was told to do about it"`
	RetryAfterMS      int64       `json:"retry_after_ms,omitempty" doc:"When the client was told to come back, in milliseconds from then"`
	RetryDenied       string      `json:"retry_denied,omitempty" doc:"Why a failed attempt was not followed by another: retry_budget_backend, retry_budget_tenant, retry_budget_fleet, breaker_open, shedding, attempts, no_backend, not_retryable, or the reason for which no further one was admitted"`
	QueuedSeconds     float64     `json:"queued_seconds"`
	FirstSeconds      float64     `json:"first_token_seconds,omitempty"`
	Seconds           float64     `json:"duration_seconds"`
	Charge            Charge      `json:"charge"`
	Hedge             bool        `json:"hedge,omitempty" doc:"Begun beside the attempt before it, whose first content was late; the one that lost ended with lost_race"`
	HedgedAfterMS     int64       `json:"hedged_after_ms,omitempty" doc:"When its first content was late, in milliseconds from its begin"`
	HedgeDenied       string      `json:"hedge_denied,omitempty" doc:"Why it got no hedge then: as retry_denied, or no_place, where no other backend had a place to spare"`
	Degraded          string      `json:"degraded,omitempty" doc:"What a pool's ladder took from it: clamp, of its answer"`
	AskedModel        string      `json:"asked_model,omitempty" doc:"What was asked for, where a smaller model served in its place with the caller's consent"`
	Fallback          bool        `json:"fallback,omitempty" doc:"Not one of the model's first pools"`
	Needs             string      `json:"needs,omitempty" doc:"What the request needs of a backend"`
	Risk              string      `json:"risk,omitempty" doc:"The label of the request: low, normal or high"`
	Session           string      `json:"session,omitempty" doc:"The session of the request: a hash of its id and tenant"`
	Stay              string      `json:"stay,omitempty" doc:"What became of that within the pool: kept with its backend; left, which had no room for it"`
	RefersTo          []string    `json:"refers_to,omitempty" doc:"Kinds of what a provider keeps that the request refers to: container, file, response, conversation, audio, cache"`
	Drained           *Drained    `json:"drained,omitempty" doc:"Where its client had left and its provider bills an answer to the end: what became of reading on"`
	KeptAt            string      `json:"kept_at,omitempty" doc:"The place where that is, and where alone the request could go: a backend, or a provider with credential and site; empty where it is unknown"`
	Translated        string      `json:"translated,omitempty" doc:"The dialect into which the request was put for the backend; empty where that speaks the client's"`
	Fetched           int         `json:"fetched,omitempty" doc:"Images and documents that it names by URL and that the gateway fetched for the backend"`
	Dropped           string      `json:"dropped,omitempty" doc:"Fields of the request that its translation left out or approximated"`
	Untranslated      string      `json:"untranslated,omitempty" doc:"A dialect into which the request could not be put when one was looked for, and the field that was in the way"`
	Cache             *CacheUse   `json:"cache,omitempty" doc:"Where it was answered without a backend of its own"`
	Hooks             []Decision  `json:"hooks,omitempty" doc:"What hooks decided of the request and its answer, up to then"`
	Replayed          string      `json:"replayed,omitempty" doc:"The request whose answer this one was given again, by its Idempotency-Key: no backend was asked and nothing is charged"`
	Canary            bool        `json:"canary,omitempty" doc:"In a canary pool"`
	Prefer            string      `json:"prefer,omitempty" doc:"What the model prefers: latency or price"`
	Preferred         []Preferred `json:"preferred,omitempty" doc:"The model's first pools in the order that this gave, canaries aside, as of the arrival or the attempt before"`
	Away              bool        `json:"away,omitempty" doc:"In another region than its home, which was lost, came back still, or could not serve it in time"`
	Evaluated         *Evaluation `json:"evaluated,omitempty" doc:"What said that a fallback can stand in"`
	Candidates        []Candidate `json:"candidates,omitempty" doc:"Backends that were considered"`
	Facts             any         `json:"facts,omitempty" doc:"What else was recorded of the decision"`
}

// Drained is what became of reading an answer on whose client had left.
type Drained struct {
	Result string `json:"result" doc:"whole; time or bytes, whose bound was reached; cut by the backend; shutdown; or full, where as many were being read as are at a time"`
	MS     int64  `json:"ms,omitempty" doc:"For how long"`
	Bytes  int64  `json:"bytes,omitempty" doc:"How much of a stream"`
}

// Decision is what a hook decided at a stage. No text is kept.
type Decision struct {
	Hook    string           `json:"hook"`
	Stage   string           `json:"stage" enum:"request,commit,event"`
	Verdict string           `json:"verdict" enum:"allow,redact,refuse,risk,failed" doc:"failed: none came, and the hook's failure mode decided"`
	Why     string           `json:"why,omitempty" doc:"The hook's own word, or why no verdict came"`
	Calls   int64            `json:"calls" doc:"Verdicts of this kind"`
	TookUS  int64            `json:"took_us,omitempty" doc:"Microseconds that they took together"`
	Found   map[string]int64 `json:"found,omitempty" doc:"What the built-in redaction found, by kind"`
}

// Candidate is a backend that was considered.
type Candidate struct {
	Pool    string `json:"pool,omitempty"`
	Backend string `json:"backend"`
	Left    string `json:"left,omitempty" doc:"Why it was left out; empty for the one chosen"`
	Lacks   string `json:"lacks,omitempty" doc:"Of what the request needs, where it was left out for a capability"`
	Field   string `json:"field,omitempty" doc:"Of the request, which the dialect of the backend cannot say, where it was left out for the translation"`
	Cached  int64  `json:"cached,omitempty" doc:"Input tokens that were believed to be in its prefix cache"`
	Cost    *int64 `json:"cost_us,omitempty" doc:"What it was compared by: microseconds until the first token could come there, with what its slots and memory in use count for; missing where it was not compared"`

	Expected *int64 `json:"expected_us,omitempty" doc:"Where the model prefers something, microseconds until an answer there was expected to be whole"`
	Price    *int64 `json:"price,omitempty" doc:"Likewise, nano-dollars that the request was expected to cost there"`
}

// Preferred is what a preference saw of one pool.
type Preferred struct {
	Pool     string `json:"pool"`
	Expected *int64 `json:"expected_us,omitempty" doc:"Microseconds until an answer was expected to be whole, waiting included; missing where nothing was known"`
	Price    int64  `json:"price" doc:"Nano-dollars that the request was expected to cost"`
}

// Evaluation is what said that a fallback can stand in.
type Evaluation struct {
	Suite string  `json:"suite"`
	Score float64 `json:"score"`
	Date  string  `json:"date"`
}

// LimitFigure is one limit and what was left of it.
type LimitFigure struct {
	Scope     string `json:"scope"`
	Limit     string `json:"limit" doc:"By its name, such as requests_per_minute"`
	Amount    Amount `json:"amount"`
	Remaining Amount `json:"remaining"`
}

// RefusalFigure is the limit that did not fit, in that moment's figures.
type RefusalFigure struct {
	Scope     string     `json:"scope"`
	ID        string     `json:"id,omitempty" doc:"Whose limit"`
	Reason    string     `json:"reason,omitempty" doc:"Of a shadow: why the request would have been refused"`
	Limit     string     `json:"limit"`
	Amount    Amount     `json:"amount"`
	Requested Amount     `json:"requested"`
	Used      Amount     `json:"used"`
	Held      Amount     `json:"held" doc:"By requests in flight"`
	Reset     *time.Time `json:"reset,omitempty"`
}

func chargeOf(u *sluice.Usage, cost, high sluice.Nano, version string) Charge {
	c := Charge{
		Tokens: map[string]sluice.Tokens{}, ToolCalls: u.ToolCalls, WebSearches: u.WebSearches, Units: u.Units, Source: u.Source.String(), Anomalous: u.Anomalous,
		ServiceTier: u.ServiceTier, Cost: cost.String(), CostNanodollars: int64(cost), PriceVersion: version,
	}
	if high > cost {
		c.BudgetCost = high.String()
	}
	for _, t := range [...]struct {
		name string
		n    sluice.Tokens
	}{
		{"input", u.Input},
		{"cache_read", u.CacheRead},
		{"cache_write", u.CacheWrite},
		{"cache_write_1h", u.CacheWrite1h},
		{"audio_input", u.AudioInput},
		{"output", u.Output},
		{"reasoning", u.Reasoning},
		{"audio_output", u.AudioOutput},
	} {
		if t.n != 0 {
			c.Tokens[t.name] = t.n
		}
	}
	return c
}

// explanationOf tells a request from its entries, which are ordered by attempt
// and not empty.
func explanationOf(entries []ledger.Entry) Explanation {
	last := final(entries)
	var whole ledger.Sum
	for i := range entries {
		whole.Add(&entries[i])
	}
	x := Explanation{
		Request: requestView(last, &whole), Dialect: last.Dialect, Stream: last.Stream, Policy: last.Policy, Ended: last.Ended.UTC(), Late: last.Late, ShadowOf: string(last.ShadowOf), Tier: int(last.Tier),
		Estimate: Estimate{Input: last.EstimatedInput, OutputBound: last.OutputBound, Held: last.HeldSpend.String()},
	}
	for _, l := range last.Labels {
		if x.Labels == nil {
			x.Labels = make(map[string]string, len(last.Labels))
		}
		x.Labels[l.Key] = l.Value
	}
	for i := range entries {
		e := &entries[i]
		x.Steps = append(x.Steps, attemptOf(e))
		x.decisions(&x.Steps[i], e.Detail)
	}
	x.Total = chargeOf(&whole.Usage, whole.Cost, whole.CostHigh, last.PriceVersion)
	return x
}

// final is the entry that closed the request, which is not the last where a hedge lost;
// while there is none, the last.
func final(entries []ledger.Entry) *ledger.Entry {
	for i := range entries {
		if entries[i].Final {
			return &entries[i]
		}
	}
	return &entries[len(entries)-1]
}

func attemptOf(e *ledger.Entry) Attempt {
	return Attempt{
		Attempt: e.Attempt, Pool: string(e.Pool), Backend: string(e.Backend), Provider: string(e.Provider),
		UpstreamModel: e.UpstreamModel, ServedModel: e.ServedModel, UpstreamRequestID: e.UpstreamRequestID,
		Outcome: e.Outcome.String(), Reason: e.Reason.String(), Finish: e.Finish,
		QueuedSeconds: e.Queued.Seconds(), FirstSeconds: e.FirstToken.Seconds(), Seconds: e.Duration.Seconds(),
		Charge: chargeOf(&e.Usage, e.Cost, e.CostHigh, e.PriceVersion),
	}
}

// limitFact is a limit as an entry's detail tells it.
type limitFact struct {
	Scope     string           `json:"scope"`
	ID        string           `json:"id"`
	Dimension sluice.Dimension `json:"dimension"`
	Window    sluice.Window    `json:"window"`
	Amount    int64            `json:"amount"`
	Remaining int64            `json:"remaining"`
	Requested int64            `json:"requested"`
	Used      int64            `json:"used"`
	Held      int64            `json:"held"`
	Reset     *time.Time       `json:"reset"`
}

func (l *limitFact) amount(n int64) Amount { return amount(n, l.Dimension) }

func (l *limitFact) figure() *RefusalFigure {
	return &RefusalFigure{
		Scope: l.Scope, ID: l.ID, Limit: LimitName(l.Dimension, l.Window), Amount: l.amount(l.Amount),
		Requested: l.amount(l.Requested), Used: l.amount(l.Used), Held: l.amount(l.Held), Reset: l.Reset,
	}
}

// limitStates are the caller's limits as an entry's detail tells them: in short, or as
// versions before did, a list of scope, dimension, window, amount and what remained.
type limitStates []quota.LimitState

// UnmarshalJSON reads either.
func (l *limitStates) UnmarshalJSON(b []byte) (err error) {
	var short string
	if json.Unmarshal(b, &short) == nil {
		*l, err = quota.ParseShort(short)
		return err
	}
	var rows [][5]json.RawMessage
	if err := json.Unmarshal(b, &rows); err != nil {
		return err
	}
	for _, row := range rows {
		var s quota.LimitState
		for i, to := range [...]any{&s.Scope, &s.Limit.Dimension, &s.Limit.Window, &s.Limit.Amount, &s.Remaining} {
			if err := json.Unmarshal(row[i], to); err != nil {
				return err
			}
		}
		*l = append(*l, s)
	}
	return nil
}

// decisions reads what was recorded of the decision beside the entry's columns.
// Facts that this version has no field for are passed on as they are.
func (x *Explanation) decisions(at *Attempt, detail []byte) {
	if len(detail) == 0 {
		return
	}
	facts := map[string]json.RawMessage{}
	if err := json.Unmarshal(detail, &facts); err != nil {
		at.Facts = map[string]string{"unreadable": err.Error()}
		return
	}
	take := func(name string, to any) {
		if raw, ok := facts[name]; ok && json.Unmarshal(raw, to) == nil {
			delete(facts, name)
		}
	}
	take("candidates", &at.Candidates)
	take("needs", &at.Needs)
	take("risk", &at.Risk)
	take("session", &at.Session)
	take("stay", &at.Stay)
	take("prefer", &at.Prefer)
	take("preferred", &at.Preferred)
	take("canary", &at.Canary)
	take("away", &at.Away)
	take("evaluated", &at.Evaluated)
	take("fallback", &at.Fallback)
	take("message", &at.Message)
	take("hint", &at.Hint)
	take("retry_after_ms", &at.RetryAfterMS)
	take("retry_denied", &at.RetryDenied)
	take("degraded", &at.Degraded)
	take("asked_model", &at.AskedModel)
	take("hedge", &at.Hedge)
	take("hedged_after_ms", &at.HedgedAfterMS)
	take("hedge_denied", &at.HedgeDenied)
	take("refers_to", &at.RefersTo)
	take("drained", &at.Drained)
	take("replayed", &at.Replayed)
	var pin *route.Pin
	if take("kept_at", &pin); pin != nil {
		at.KeptAt = pin.String()
	}
	take("translated", &at.Translated)
	take("fetched", &at.Fetched)
	take("dropped", &at.Dropped)
	take("untranslated", &at.Untranslated)
	take("hooks", &at.Hooks)
	take("cache", &at.Cache)
	var felt *LadderFelt
	if take("ladder", &felt); felt != nil {
		x.Ladder = felt // that of the last attempt stays
	}
	var rates map[string]int64 // nano-dollars per million
	if take("rates", &rates); len(rates) > 0 {
		at.Charge.Rates = make(map[string]string, len(rates))
		for class, r := range rates {
			at.Charge.Rates[class] = sluice.Nano(r).String()
		}
	}
	var limits limitStates
	if take("limits", &limits); len(limits) > 0 {
		x.Limits = nil // those of the last attempt stay
		for _, l := range limits {
			of := l.Limit.Dimension
			x.Limits = append(x.Limits, LimitFigure{Scope: l.Scope.String(), Limit: LimitName(of, l.Limit.Window), Amount: amount(l.Limit.Amount, of), Remaining: amount(l.Remaining, of)})
		}
	}
	var r, s *limitFact
	if take("refusal", &r); r != nil {
		x.Refusal = r.figure()
	}
	if take("shadow_refusal", &s); s != nil {
		x.Shadow = s.figure()
		take("shadow_reason", &x.Shadow.Reason)
	}
	delete(facts, "shadows") // told of the request: see copiesOf
	if len(facts) > 0 {
		at.Facts = facts
	}
}
