package fakellm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// turn is one request on its way through the provider.
type turn struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	id      string
	surface surface
	a       *ask
	entry   *Served
	job     *job // nil when instant or paced by a fault
	began   time.Time

	total int64 // output tokens that it will generate, of one choice
	cut   bool  // by the client's bound
	cum   int64 // generated so far, of one choice, where no machine counts
	wrote int64 // written so far, of one choice
	ended bool  // the whole answer has been written
}

// How a turn ends other than well.
var (
	errAbort = errors.New("abort the connection")
	errFault = errors.New("ended by a fault") // the connection stays whole
	errGone  = errors.New("the client is gone")
)

func (t *turn) requestID() string { return "req_" + t.id }

// headers sets what the real providers send with every answer.
func (t *turn) headers() {
	t.began = time.Now()
	h := t.w.Header()
	if t.surface == surfaceConverse {
		h.Set("x-amzn-requestid", t.requestID())
		return
	}
	if t.surface.anthropic() {
		h.Set("request-id", t.requestID())
		h.Set("anthropic-organization-id", "00000000-0000-4000-8000-000000000000")
		return
	}
	if t.surface.gemini() {
		h.Set("server-timing", "gfet4t7; dur=1")
		return
	}
	h.Set("x-request-id", t.requestID())
	h.Set("openai-organization", "fakellm")
	h.Set("openai-version", "2020-10-01")
	h.Set("openai-processing-ms", "1")
}

// run answers an understood request, or refuses it.
func (t *turn) run(a *ask, refused *refusal) {
	if refused != nil {
		t.refuse(refused)
		return
	}
	t.a = a
	if a.b.Tier == "" && a.surface.anthropic() && inBatch(t.r.Context()) {
		a.b.Tier = "batch"
	}
	name, _ := splitModel(a.asked)
	t.entry = t.s.book.open(Served{
		ID: t.requestID(), Model: name, Surface: string(a.surface), Faults: a.faults, Stream: a.stream,
		Input: a.input, Cached: a.cached, Written: a.written, At: t.began, Batch: inBatch(t.r.Context()),
	})
	noted := make(chan struct{})
	stop := context.AfterFunc(t.r.Context(), func() {
		defer close(noted)
		now := time.Now()
		t.s.book.update(t.entry, func(e *Served) { e.Left = &now })
	})
	err := t.serve()
	if !stop() {
		<-noted
	}
	t.settle(err)
	if errors.Is(err, errAbort) {
		panic(http.ErrAbortHandler)
	}
}

// settle closes the book on the request.
func (t *turn) settle(err error) {
	generated := sluice.Tokens(t.cum)
	if t.job != nil {
		generated = t.job.end()
	}
	n := sluice.Tokens(t.a.choices)
	t.s.book.update(t.entry, func(e *Served) {
		e.Generated, e.Sent = generated*n, sluice.Tokens(t.wrote)*n
		e.Output = e.Generated
		if t.a.stream && !t.ended { // bills by the event, not by the token under way
			e.Output = e.Sent
		}
		refused, isRefusal := errors.AsType[*refusal](err)
		switch {
		case isRefusal:
			e.End, e.Status = EndRefused, refused.status
			e.Output, e.Sent, e.Generated = 0, 0, 0
		case t.ended:
			e.End, e.Billed = EndCompleted, true
			e.Reported = t.reports()
		case t.r.Context().Err() != nil || errors.Is(err, errGone):
			e.End, e.Billed = EndCancelled, true
			if e.Left == nil {
				now := time.Now()
				e.Left = &now
			}
			if t.a.model.RunsOn {
				e.Output = sluice.Tokens(t.total) * n
			}
		default:
			e.End, e.Billed = EndFailed, true
		}
		e.Reasoning = min(sluice.Tokens(t.a.b.Reasoning)*n, e.Output)
		if t.a.surface == surfaceCount || t.a.surface == surfaceGenerateCount || t.a.surface == surfaceTokenize {
			e.Billed, e.Reported = false, false
		}
	})
	t.s.book.close(t.entry)
}

// reports tells whether the client was sent true final usage.
func (t *turn) reports() bool {
	if t.a.surface == surfaceConverse && t.a.stream && t.a.b.NoDone { // its figures are its end
		return false
	}
	switch t.a.b.Usage {
	case "", "twice", "every":
		return !t.a.stream || t.a.usage || t.a.surface.anthropic() || t.a.surface.gemini() || t.a.surface == surfaceConverse || t.a.surface == surfaceResponses || t.a.b.Usage == "every"
	}
	return false
}

// serve answers; its error says how it ended: a *refusal, errAbort, errFault,
// errGone, or the context's error.
func (t *turn) serve() error {
	b := &t.a.b
	ctx := t.r.Context()
	switch {
	case b.HangHeaders:
		<-ctx.Done()
		return ctx.Err()
	case b.Reset:
		t.reset()
		return errAbort
	}
	if err := pause(ctx, b.Delay); err != nil {
		return err
	}
	if b.Redirect {
		http.Redirect(t.w, t.r, "/elsewhere"+t.r.URL.Path, http.StatusTemporaryRedirect)
		return &refusal{status: http.StatusTemporaryRedirect}
	}
	if b.Status != 0 {
		r := t.statusRefusal()
		t.write(r)
		return r
	}
	switch t.a.surface {
	case surfaceEmbeddings:
		return t.embed()
	case surfaceCount:
		return t.end(obj{"input_tokens": t.a.input})
	case surfaceGenerateCount:
		return t.end(obj{"totalTokens": t.a.input})
	case surfaceTokenize:
		return t.end(obj{"count": t.a.input, "max_model_len": t.a.model.Context})
	}
	return t.generate()
}

// end answers with a small body and ends the turn.
func (t *turn) end(v any) error {
	t.s.book.update(t.entry, func(e *Served) { e.Status = http.StatusOK })
	writeJSON(t.w, http.StatusOK, v)
	t.ended = true
	return nil
}

// submit puts the work on the model's machine, unless a fault paces it.
func (t *turn) submit() error {
	m, b := t.a.model, &t.a.b
	if m.pace == nil || b.Gap > 0 {
		return nil
	}
	j, err := m.pace.submit(fleet.Job{Input: t.a.input, Cached: t.a.cached, Output: sluice.Tokens(t.total)})
	t.rates()
	if err == nil {
		t.job = j
		return nil
	}
	r := &refusal{status: http.StatusServiceUnavailable, kind: "server_error", msg: "The server is overloaded: " + err.Error()}
	if t.surface.anthropic() {
		r.status, r.kind, r.msg = 529, "overloaded_error", "Overloaded"
	}
	if limit, ok := errors.AsType[*fleet.LimitError](err); ok {
		t.w.Header().Set("Retry-After", strconv.FormatInt(int64((limit.RetryAfter+time.Second-1)/time.Second), 10))
		r = t.limited("Rate limit reached: " + limit.Error())
	}
	if errors.Is(err, fleet.ErrTooLarge) {
		r = invalid("the context does not fit: %v", err)
		r.code = "context_length_exceeded"
	}
	t.write(r)
	return r
}

// rates sets the rate-limit headers of a hosted model.
func (t *turn) rates() {
	m := t.a.model
	if m.hosted == nil || t.surface.gemini() { // its provider tells no rates
		return
	}
	m.pace.mu.Lock()
	requests, tokens, full, tokensFull := m.hosted.Remaining(time.Now())
	m.pace.mu.Unlock()
	h := t.w.Header()
	put := func(kind string, limit, left int64, reset time.Duration) {
		if limit <= 0 {
			return
		}
		if t.surface.anthropic() {
			h.Set("anthropic-ratelimit-"+kind+"-limit", strconv.FormatInt(limit, 10))
			h.Set("anthropic-ratelimit-"+kind+"-remaining", strconv.FormatInt(left, 10))
			h.Set("anthropic-ratelimit-"+kind+"-reset", time.Now().Add(reset).UTC().Format(time.RFC3339))
			return
		}
		h.Set("x-ratelimit-limit-"+kind, strconv.FormatInt(limit, 10))
		h.Set("x-ratelimit-remaining-"+kind, strconv.FormatInt(left, 10))
		h.Set("x-ratelimit-reset-"+kind, reset.Round(time.Millisecond).String())
	}
	put("requests", m.Hosted.RequestsPerMinute, requests, full)
	put("tokens", int64(m.Hosted.TokensPerMinute), tokens, tokensFull)
}

// load sets the engine's load report, where the request asks for it.
func (t *turn) load() {
	format := strings.ToUpper(t.r.Header.Get("endpoint-load-metrics-format"))
	if t.a.model.pace == nil || format != "TEXT" && format != "JSON" {
		return
	}
	l, _ := t.a.model.pace.load()
	kv := float64(l.Permille()) / 1000
	v := fmt.Sprintf("TEXT named_metrics.kv_cache_usage_perc=%g, named_metrics.num_requests_waiting=%d.0, named_metrics.num_requests_running=%d.0", kv, l.Waiting, l.Running)
	if format == "JSON" {
		v = "JSON " + string(marshal(obj{"named_metrics": obj{
			"kv_cache_usage_perc": kv, "num_requests_waiting": l.Waiting, "num_requests_running": l.Running,
		}}))
	}
	t.w.Header().Set("endpoint-load-metrics", v)
}

func (t *turn) statusRefusal() *refusal {
	b := &t.a.b
	if b.RetryAfter != "" {
		t.w.Header().Set("Retry-After", b.RetryAfter)
	}
	switch {
	case t.surface == surfaceConverse && b.Quota:
		return &refusal{http.StatusBadRequest, "ServiceQuotaExceededException", "", "Your account has spent its quota"}
	case t.surface == surfaceConverse:
		return &refusal{status: b.Status, kind: exceptions[b.Exception], msg: fmt.Sprintf("scripted status %d", b.Status)}
	case b.Quota && t.surface.anthropic():
		return &refusal{http.StatusPaymentRequired, "billing_error", "", "Your credit balance is too low"}
	case b.Quota:
		t.w.Header().Set("x-should-retry", "false")
		return &refusal{http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota"}
	case b.Status == http.StatusTooManyRequests:
		return t.limited("Rate limit reached")
	}
	return &refusal{status: b.Status, msg: fmt.Sprintf("scripted status %d", b.Status)}
}

func (t *turn) limited(msg string) *refusal {
	if t.surface == surfaceConverse {
		return &refusal{http.StatusTooManyRequests, "ThrottlingException", "", msg}
	}
	if t.surface.anthropic() {
		return &refusal{http.StatusTooManyRequests, "rate_limit_error", "", msg}
	}
	return &refusal{http.StatusTooManyRequests, "rate_limit_exceeded", "rate_limit_exceeded", msg}
}

// refuse answers with an error before the request has a behaviour, and books it.
func (t *turn) refuse(r *refusal) {
	t.write(r)
	e := t.s.book.open(Served{ID: t.requestID(), Surface: string(t.surface), At: t.began, End: EndRefused, Status: r.status})
	t.s.book.close(e)
}

// write sends an error in the dialect.
func (t *turn) write(r *refusal) {
	if t.surface.gemini() {
		wait := t.w.Header().Get("Retry-After") // it stands in the body alone there
		t.w.Header().Del("Retry-After")
		writeJSON(t.w, r.status, geminiError(r.status, r.msg, wait))
		return
	}
	kind := r.kind
	if t.surface == surfaceConverse {
		if !strings.HasSuffix(kind, "Exception") {
			kind = cmp.Or(bedrockErrors[r.status], "InternalServerException")
		}
		t.w.Header().Set("x-amzn-errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
		writeJSON(t.w, r.status, obj{"message": r.msg})
		return
	}
	if kind == "" {
		kind = kindOf(r.status, t.surface.anthropic())
	}
	if t.surface.anthropic() {
		writeJSON(t.w, r.status, anthropicError(kind, r.msg, t.requestID()))
		return
	}
	writeJSON(t.w, r.status, openaiError(kind, r.code, r.msg))
}

// kindOf is the error type that goes with a status.
func kindOf(status int, anthropic bool) string {
	if !anthropic {
		switch {
		case status == http.StatusTooManyRequests:
			return "rate_limit_exceeded"
		case status >= 500:
			return "server_error"
		}
		return "invalid_request_error"
	}
	kinds := map[int]string{
		401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
	}
	if k, ok := kinds[status]; ok {
		return k
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// reset closes the connection with no answer, by RST where it is TCP.
func (t *turn) reset() {
	c, _, err := http.NewResponseController(t.w).Hijack()
	if err != nil {
		return // the panic that follows tears the connection
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
