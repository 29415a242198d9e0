package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/ladder"
	"sluice/internal/wire"
)

// The header names of the surface, in canonical form.
const (
	hClass     = "Sluice-Class"
	hMaxWait   = "Sluice-Max-Wait"
	hTask      = "Sluice-Task"
	hLabels    = "Sluice-Labels"
	hRisk      = "Sluice-Risk"
	hRequestID = "Sluice-Request-Id"
	hBackend   = wire.HeaderBackend
	hPolicy    = wire.HeaderPolicy
	hQueue     = wire.HeaderQueue
	hDropped   = wire.HeaderDropped
	hReason    = wire.HeaderReason
	hTier      = wire.HeaderTier
	hCache     = wire.HeaderCache
	hReplayed  = "Idempotent-Replayed"
	hOriginal  = "Sluice-Original-Request"
)

// requestHeaders are those of a request that have an effect.
var requestHeaders = []string{hClass, hMaxWait, hTask, hLabels, hRisk, hRun, hRunLimits, hSession, hCache}

// ownPrefix is that of the headers that are this gateway's alone.
const ownPrefix = "Sluice-"

// understood refuses a header of the gateway's own that it does not know, since one
// that is misspelt would lose what it was to do in silence, and one that is given
// twice.
func understood(h http.Header) error {
	var wrong error
	first := ""
	for name, values := range h {
		if !strings.HasPrefix(name, ownPrefix) || first != "" && name > first {
			continue
		}
		param := strings.ToLower(name)
		switch {
		case !slices.Contains(requestHeaders, name):
			e := sluice.Invalid(param, "is no header of a request")
			e.Hint = suggest(name)
			wrong, first = e, name
		case len(values) > 1:
			wrong, first = sluice.Invalid(param, "is given twice: give it once"), name
		}
	}
	return wrong
}

// suggest is what to write in the place of a header's name: the known one that
// begins and ends as it does, or all of them.
func suggest(name string) string {
	best, most := "", 0
	for _, k := range requestHeaders {
		known, given := k[len(ownPrefix):], name[len(ownPrefix):]
		head := 0
		for head < min(len(known), len(given)) && known[head] == given[head] {
			head++
		}
		tail := 0
		for tail < min(len(known), len(given))-head && known[len(known)-1-tail] == given[len(given)-1-tail] {
			tail++
		}
		if same := head + tail; 2*same >= len(known) && same > most {
			best, most = k, same
		}
	}
	if best != "" {
		return "did you mean " + strings.ToLower(best) + "?"
	}
	return "use one of " + strings.ToLower(strings.Join(requestHeaders, ", "))
}

// request puts together what the exchange runs.
func (c *call) request(body []byte) (*exchange.Request, error) {
	h, head := c.r.Header, c.head
	if c.principal.User == "" { // else it was verified
		c.principal.User = sluice.UserID(head.User)
	}
	req := &exchange.Request{
		ID: c.sink.id, Arrived: c.arrived, Principal: c.principal, Head: head, Body: body, Header: h,
		MaxWait: -1, Free: c.op.Counts() || c.op.Stored(),
	}
	if p := c.principal.Policy; p != nil {
		req.Class = p.Class
		if !c.op.Stored() && !p.Allows(sluice.ModelID(head.Model)) {
			return nil, &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed, Param: "model", Msg: "is not allowed for this key", Hint: "GET /v1/models lists what is"}
		}
	}
	if err := understood(h); err != nil {
		return nil, err
	}
	if err := idempotency.Check(h[idempotency.Header]); err != nil {
		return nil, err
	}
	for _, name := range head.Privileged {
		if p := c.principal.Policy; p == nil || !slices.Contains(p.EngineFields, name) {
			return nil, sluice.Invalid(name, "steers the backend's engine, which this key may not do: leave it out")
		}
	}
	var err error
	if req.Class, err = c.class(req.Class); err != nil {
		return nil, err
	}
	if req.MaxWait, err = maxWait(h[hMaxWait]); err != nil {
		return nil, err
	}
	if req.Risk, err = c.risk(); err != nil {
		return nil, err
	}
	if req.Cache, err = wish(h[hCache]); err != nil {
		return nil, err
	}
	if v := h[hTask]; len(v) > 0 {
		if req.Task, err = sluice.ParseTask(v[0]); err != nil {
			return nil, err
		}
	}
	if v := h[hLabels]; len(v) > 0 {
		if req.Labels, err = parseLabels(v[0]); err != nil {
			return nil, err
		}
	}
	if err = c.session(req); err != nil {
		return nil, err
	}
	return req, c.run(req)
}

// maxWait is how long a request may wait, negative if it does not say.
func maxWait(v []string) (time.Duration, error) {
	if len(v) == 0 {
		return -1, nil
	}
	d, err := time.ParseDuration(v[0])
	if err != nil || d < 0 {
		return 0, sluice.Invalid("sluice-max-wait", "has %q: write a duration such as 500ms or 10s, or 0 to not queue", v[0])
	}
	return d, nil
}

// wish is what a request asks of the output cache.
func wish(v []string) (exchange.Wish, error) {
	if len(v) == 0 {
		return "", nil
	}
	w := exchange.Wish(v[0])
	if !slices.Contains(exchange.Wishes[:], w) {
		return "", sluice.Invalid("sluice-cache", "has %q: write use, bypass or refresh", v[0])
	}
	return w, nil
}

// class is how the request waits; it may only lower the plan's, unless the plan
// lists what it asks for.
func (c *call) class(own sluice.Class) (sluice.Class, error) {
	v := c.r.Header[hClass]
	if len(v) == 0 {
		return own, nil
	}
	var asked sluice.Class
	if err := asked.UnmarshalText([]byte(v[0])); err != nil {
		return 0, sluice.Invalid("sluice-class", "is wrong: %v", err)
	}
	if p := c.principal.Policy; p != nil && !p.AllowsClass(asked) {
		return 0, &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied, Param: "sluice-class",
			Msg: "asks for " + asked.String() + ", which the plan does not list", Hint: "ask for " + own.String() + " or lower",
		}
	}
	return asked, nil
}

// risk is the label that the client gives the request: it raises what the policy says,
// and what is lower than that becomes it and is named in sluice-dropped.
func (c *call) risk() (asked sluice.Risk, err error) {
	v := c.r.Header[hRisk]
	if len(v) == 0 {
		return sluice.RiskNone, nil
	}
	if err := asked.UnmarshalText([]byte(v[0])); err != nil {
		return 0, sluice.Invalid("sluice-risk", "is wrong: %v", err)
	}
	if own := c.principal.Policy.Raise(asked); own != asked {
		c.drop("sluice-risk=" + own.String())
	}
	return asked, nil
}

// values are header values that one call holds together: a slice for each would be
// an allocation for each.
type values struct {
	of [6]string
	n  int
}

func (v *values) set(h http.Header, name, value string) {
	if v.n == len(v.of) {
		h[name] = []string{value}
		return
	}
	v.of[v.n] = value
	h[name] = v.of[v.n : v.n+1 : v.n+1]
	v.n++
}

// Values that are always the same are shared: net/http does not write to them.
var (
	typeJSON   = []string{"application/json"}
	typeEvents = []string{"text/event-stream; charset=utf-8"}
	noCache    = []string{"no-cache"}
	noBuffer   = []string{"no"}
	degraded   = []string{sluice.Degraded.String()}
)

// answerHeader sets the headers of an answer that has a head.
func (c *call) answerHeader(h http.Header, head *exchange.Head) {
	c.values.set(h, hRequestID, string(c.sink.id))
	if head == nil {
		setTier(h, c.record.Final.Tier)
		return
	}
	if setTier(h, head.Tier); head.Lesser {
		h[hReason] = degraded
	}
	if head.Upstream != nil {
		wire.AnswerHeader(h, head.Upstream)
	}
	if head.Replayed != "" {
		h[hReplayed] = []string{"true"}
		h[hOriginal] = []string{string(head.Replayed)}
	}
	if b := head.Grant.Backend; b != nil {
		c.values.set(h, hBackend, string(b.ID))
	}
	c.values.set(h, hPolicy, head.Grant.Policy)
	c.values.set(h, hQueue, strconv.FormatInt(head.Queued.Milliseconds(), 10))
	if d := c.dropped(head); d != "" {
		h[hDropped] = []string{d}
	}
	if head.Cache != "" {
		h[hCache] = []string{head.Cache}
	}
	c.tellLimits(h, head.Grant.Limits)
}

// tellLimits sets the dialect's rate-limit headers.
func (c *call) tellLimits(h http.Header, l engine.Limits) {
	var room [32]engine.LimitState // as many as there are most often
	wire.RateHeaders(h, c.dialect, l.States(room[:0]), time.Now())
}

// setTier tells of a pool whose ladder has left the ground.
func setTier(h http.Header, t ladder.Tier) {
	if t > ladder.None {
		h[hTier] = []string{strconv.Itoa(int(t))}
	}
}

// dropped is what of the request had no effect.
func (c *call) dropped(head *exchange.Head) string {
	if head.Dropped == "" {
		return c.dropping
	}
	if c.dropping == "" {
		return head.Dropped
	}
	return head.Dropped + ", " + c.dropping
}

// late is the comment that tells what was decided after the status was sent.
func (c *call) late(head *exchange.Head) []byte {
	b := append(make([]byte, 0, 160), `: sluice {"backend":`...)
	if head.Grant.Backend != nil {
		b = strconv.AppendQuoteToASCII(b, string(head.Grant.Backend.ID))
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"policy":`...)
	b = strconv.AppendQuoteToASCII(b, head.Grant.Policy)
	b = append(b, `,"queue_ms":`...)
	b = strconv.AppendInt(b, head.Queued.Milliseconds(), 10)
	if d := c.dropped(head); d != "" {
		b = append(b, `,"dropped":`...)
		b = strconv.AppendQuoteToASCII(b, d)
	}
	if head.Cache != "" {
		b = append(b, `,"cache":`...)
		b = strconv.AppendQuoteToASCII(b, head.Cache)
	}
	if head.Tier > ladder.None {
		b = append(b, `,"tier":`...)
		b = strconv.AppendInt(b, int64(head.Tier), 10)
	}
	return append(b, "}\n\n"...)
}

// lateError is the comment that stands for the headers of a refusal that comes after the
// status was sent.
func (c *call) lateError(e *sluice.Error, head *exchange.Head) []byte {
	tier := c.record.Final.Tier
	if head != nil {
		tier = head.Tier
	}
	b := strconv.AppendQuoteToASCII([]byte(`: sluice {"reason":`), e.Reason.String())
	if tier > ladder.None {
		b = strconv.AppendInt(append(b, `,"tier":`...), int64(tier), 10)
	}
	return append(b, "}\n\n"...)
}

func sizeText(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
