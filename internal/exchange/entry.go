package exchange

import (
	"encoding/json"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ledger"
	"sluice/internal/quota"
	"sluice/internal/route"
)

// priceReported is the version of the price that a provider tells with its answer.
const priceReported = "reported"

// maxCandidates bounds what an entry tells of the backends that were considered.
const maxCandidates = 16

// entry is the ledger's record of an attempt, or of a request that had none
// where a is nil. Outcome, reason, status and Final are the caller's to set.
func (t *turn) entry(a *attempt, u sluice.Usage, cost, high sluice.Nano) ledger.Entry {
	r, p := t.r, &t.r.Principal
	e := ledger.Entry{
		Request: r.ID, At: r.Arrived, Ended: time.Now(),
		Tenant: p.Tenant, Project: p.Project, Key: p.Key, User: p.User, Run: p.Run, Task: r.Task, Labels: r.Labels,
		Class: r.Class, Model: t.asks(), Tier: t.tier, ShadowOf: r.ShadowOf,
		Stream: r.Head.Stream, Operation: r.Head.Op.String(), Dialect: string(r.Head.Op.Dialect()),
		Usage: u, Cost: cost, CostHigh: high,
		EstimatedInput: t.plan.work.Input, OutputBound: t.plan.work.OutputBound,
		Queued: t.queued, FirstToken: t.first,
	}
	e.Duration = e.Ended.Sub(e.At)
	if a == nil {
		e.Queued, e.Policy = e.Duration, t.policy
		e.Detail = t.detail(nil)
		return e
	}
	b := a.place.Backend
	e.Tier = max(t.tier, a.place.Tier)
	e.Attempt, e.Pool, e.Backend, e.Provider, e.Policy = a.place.Attempt, a.place.Pool, b.ID, b.Provider, a.place.Policy
	e.UpstreamModel, e.ServedModel, e.UpstreamRequestID = b.Model, a.tap.ServedModel(), a.provider
	e.Finish = a.tap.FinishReason()
	e.PriceVersion, e.HeldSpend, e.EstimatedInput = a.priceVersion(), a.place.HeldSpend, a.input
	e.Detail = t.detail(a)
	if _, ok := t.reported(a, &u); ok {
		e.PriceVersion = priceReported
	} else {
		e.Detail = withRates(e.Detail, a, &u)
	}
	return e
}

// record writes an entry to the journal and tells the hooks.
func (t *turn) record(e *ledger.Entry) {
	if !t.stored() {
		if err := t.x.o.Journal.Settle(*e); err != nil {
			t.journalFailed("settle", err)
		}
	}
	h := &t.x.o.Hooks
	if t.shadow != nil {
		if h.Copied != nil {
			h.Copied(e)
		}
		return
	}
	if h.Attempt != nil {
		h.Attempt(e)
	}
	if h.Anomaly != nil && e.Usage.Anomalous {
		h.Anomaly(e)
	}
}

// withRates adds what the classes that were used are charged, in nano-dollars per
// million: price books change, and an entry must still tell at what it was settled.
func withRates(detail []byte, a *attempt, u *sluice.Usage) []byte {
	row := a.billed()
	if row == nil || u.Source == sluice.UsageNone {
		return detail
	}
	rates := row.RatesFor(u.ServiceTier, u.InputTotal())
	b := append(detail[:len(detail)-1], `,"rates":{`...)
	first := true
	for _, c := range [...]struct {
		name string
		n    int64
		p    sluice.Price
	}{
		{"input", int64(u.Input), rates.Input},
		{"cache_read", int64(u.CacheRead), rates.CacheRead},
		{"cache_write", int64(u.CacheWrite), rates.CacheWrite},
		{"cache_write_1h", int64(u.CacheWrite1h), rates.CacheWrite1h},
		{"audio_input", int64(u.AudioInput), rates.AudioInput},
		{"output", int64(u.Output), rates.Output},
		{"reasoning", int64(u.Reasoning), rates.Reasoning},
		{"audio_output", int64(u.AudioOutput), rates.AudioOutput},
		{"web_search", u.WebSearches, row.WebSearch},
		{row.Per.String(), u.Units, row.Unit},
		{"request", int64(max(row.Request, 0)), row.Request},
	} {
		if c.n <= 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendWord(b, c.name)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(max(c.p, 0)), 10) // free is below 0
	}
	return append(b, "}}"...)
}

// withMessage adds the sentence that refused a request: which queue was full, or
// what kept every backend from it; and what its client can do.
func withMessage(detail []byte, e *sluice.Error) []byte {
	told := e.Msg
	if e.Param != "" {
		told = e.Param + " " + told
	}
	if e.Kind == sluice.KindInternal {
		return detail
	}
	b := appendText(detail[:len(detail)-1], "message", told)
	if e.Hint != "" {
		b = appendText(b, "hint", e.Hint)
	}
	if e.RetryAfter > 0 {
		b = appendField(b, "retry_after_ms", e.RetryAfter.Milliseconds())
	}
	return append(b, '}')
}

// appendText adds a text of somebody else's.
func appendText(b []byte, name, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return b
	}
	b = append(b, ',')
	b = appendWord(b, name)
	return append(append(b, ':'), text...)
}

// withRefusal adds the limit that refused a request to its detail, in the words
// that explain reads.
func withRefusal(detail []byte, f *sluice.Refusal) []byte {
	if f == nil || len(detail) == 0 {
		return detail
	}
	return append(appendLimit(detail[:len(detail)-1], "refusal", f), '}')
}

// appendLimit is a limit that a request did not fit. Its name may be a label of the
// caller's.
func appendLimit(b []byte, name string, f *sluice.Refusal) []byte {
	if f == nil {
		return b
	}
	b = append(b, ',')
	b = appendWord(b, name)
	b = append(b, `:{"scope":`...)
	b = appendWord(b, f.Scope.String())
	b = append(b, `,"id":`...)
	if id, err := json.Marshal(f.ID); err == nil {
		b = append(b, id...)
	}
	b = append(b, `,"dimension":`...)
	b = appendWord(b, f.Limit.Dimension.String())
	b = append(b, `,"window":`...)
	b = appendWord(b, f.Limit.Window.String())
	b = appendField(b, "amount", f.Limit.Amount)
	b = appendField(b, "requested", f.Requested)
	b = appendField(b, "used", f.Used)
	b = appendField(b, "held", f.Held)
	if !f.Reset.IsZero() {
		b = append(b, `,"reset":`...)
		b = appendWord(b, f.Reset.UTC().Format(time.RFC3339))
	}
	return append(b, '}')
}

// detail is what explain shows beside the entry's own fields: bounded JSON,
// written by hand since it is on the path.
func (t *turn) detail(a *attempt) []byte {
	w, h := &t.plan.work, t.r.Head
	room := 384 // and what is usual for each of the lists
	if a != nil {
		room += 56*min(len(a.place.Candidates), maxCandidates) + 20*a.place.Limits.Len()
	}
	b := make([]byte, 0, room)
	b = append(b, `{"estimate":{"raw_input":`...)
	b = strconv.AppendInt(b, int64(h.Estimate), 10)
	b = appendField(b, "input", int64(w.Input))
	b = appendField(b, "input_bound", int64(w.InputBound))
	b = appendField(b, "output", int64(w.Output))
	b = appendField(b, "output_hold", int64(w.OutputHold))
	b = appendField(b, "output_bound", int64(w.OutputBound))
	b = append(b, '}')
	if n := h.Needs &^ route.NeedStream; n != 0 { // a column says whether it is streamed
		b = append(b, `,"needs":`...)
		b = appendWord(b, n.String())
	}
	if t.model != "" {
		b = append(b, `,"asked_model":`...)
		b = appendWord(b, h.Model)
	}
	if l := t.risk(); l != sluice.RiskNone {
		b = append(b, `,"risk":`...)
		b = appendWord(b, l.String())
	}
	if s := t.r.Session; s != 0 {
		b = append(b, `,"session":`...)
		b = appendWord(b, s.String())
	}
	if felt := t.felt; felt != nil {
		b = appendFelt(b, felt)
	} else if a != nil {
		b = appendFelt(b, a.place.Felt)
	}
	b = t.appendBackground(t.appendState(t.appendCopied(b)))
	if len(t.hooks.Decisions()) > 0 {
		b = append(b, `,"hooks":`...)
		b = t.hooks.AppendJSON(b)
	}
	b = append(b, t.served...)
	if p := t.r.Principal.Policy; p != nil {
		b = appendTexts(b, "regions", p.Regions)
		b = appendTexts(b, "providers", p.Providers)
	}
	if a != nil {
		b = a.appendDrained(t.appendTranslation(appendPlace(b, a), a))
		if w := a.place.Would; w != nil {
			b = append(b, `,"shadow_reason":`...)
			b = appendWord(b, w.Reason.String())
			b = appendLimit(b, "shadow_refusal", w.Refusal)
		}
	}
	return append(b, '}')
}

func appendPlace(b []byte, a *attempt) []byte {
	if a.place.Fallback {
		b = append(b, `,"fallback":true`...)
	}
	if a.place.Canary {
		b = append(b, `,"canary":true`...)
	}
	b = appendPreference(b, a)
	if s := a.place.Stay; s != route.StayNone {
		b = append(b, `,"stay":`...)
		b = appendWord(b, s.String())
	}
	if a.place.Away {
		b = append(b, `,"away":true`...)
	}
	if v := a.place.Evaluated; v != nil {
		b = append(b, `,"evaluated":{"suite":`...)
		b = appendWord(b, v.Suite)
		b = append(b, `,"score":`...)
		b = append(b, v.Score...)
		b = append(b, `,"date":`...)
		b = append(appendWord(b, v.Date), '}')
	}
	if a.place.Clamped {
		b = appendField(b, "clamped_to", int64(a.place.OutputBound))
	}
	if a.place.Degraded {
		b = append(b, `,"degraded":"clamp"`...)
	}
	if a.failure != nil {
		b = append(b, `,"failure":`...)
		b = appendWord(b, a.failure.Reason.String())
	}
	if a.hedge {
		b = append(b, `,"hedge":true`...)
	}
	if a.hedged > 0 {
		b = appendField(b, "hedged_after_ms", a.hedged.Milliseconds())
	}
	if a.unhedged != "" {
		b = append(b, `,"hedge_denied":`...)
		b = appendWord(b, a.unhedged)
	}
	if a.denied != "" {
		b = append(b, `,"retry_denied":`...)
		b = appendWord(b, a.denied)
	}
	b = appendCandidates(b, a.place.Candidates, a.place.Prefer != route.PreferNone)
	b = append(b, `,"limits":"`...)
	var room [32]engine.LimitState // as many as there are most often
	return append(quota.AppendShort(b, a.place.Limits.States(room[:0])), '"')
}

// appendCandidates adds the backends that were considered, and why those that do not
// serve the request were left out; what each would have cost it only where that counted.
func appendCandidates(b []byte, list []engine.Candidate, preferred bool) []byte {
	b = append(b, `,"candidates":[`...)
	for i, c := range list {
		if i == maxCandidates {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"pool":`...)
		b = appendWord(b, string(c.Pool))
		b = append(b, `,"backend":`...)
		b = appendWord(b, string(c.Backend))
		if c.Left != "" {
			b = append(b, `,"left":`...)
			b = appendWord(b, c.Left)
		}
		if c.Lacks != 0 {
			b = append(b, `,"lacks":`...)
			b = appendWord(b, c.Lacks.String())
		}
		if c.Field != "" {
			b = append(b, `,"field":`...)
			b = appendWord(b, c.Field)
		}
		if c.Cached > 0 {
			b = appendField(b, "cached", int64(c.Cached))
		}
		if c.Cost > 0 {
			b = appendField(b, "cost_us", c.Cost.Microseconds())
		}
		if preferred && (c.Expected > 0 || c.Price > 0) {
			b = appendField(b, "expected_us", c.Expected.Microseconds())
			b = appendField(b, "price", int64(c.Price))
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// withCandidates adds those of a request that got no place.
func withCandidates(detail []byte, list []engine.Candidate) []byte {
	if len(list) == 0 {
		return detail
	}
	return append(appendCandidates(detail[:len(detail)-1], list, false), '}')
}

// appendPreference adds what the model's preference put its pools into order by.
func appendPreference(b []byte, a *attempt) []byte {
	if a.place.Prefer == route.PreferNone {
		return b
	}
	b = append(b, `,"prefer":`...)
	b = appendWord(b, a.place.Prefer.String())
	b = append(b, `,"preferred":[`...)
	for i, f := range a.place.Preferred {
		if i == maxCandidates {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"pool":`...)
		b = appendWord(b, string(f.Pool))
		if f.Known {
			b = appendField(b, "expected_us", f.Time.Microseconds())
		}
		b = appendField(b, "price", int64(f.Price))
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendWord quotes a name of the configuration or of an enum, whose alphabets
// need no escapes.
func appendWord(b []byte, s string) []byte {
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendTexts adds a list, if there is anything in it.
func appendTexts[T ~string](b []byte, name string, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	text, err := json.Marshal(list)
	if err != nil {
		return b
	}
	b = append(b, ',')
	b = appendWord(b, name)
	b = append(b, ':')
	return append(b, text...)
}

func appendField(b []byte, name string, v int64) []byte {
	b = append(b, ',')
	b = appendWord(b, name)
	b = append(b, ':')
	return strconv.AppendInt(b, v, 10)
}
