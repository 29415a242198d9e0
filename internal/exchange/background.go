package exchange

import (
	"context"
	"strconv"
	"sync"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/wire"
)

// The bounds of the responses that are made in the background, of one process.
const (
	MaxBackground       = 1024          // at a time
	MaxBackgroundTenant = 256           // of one tenant, whose limits of concurrency may be lower
	BackgroundFor       = 2 * time.Hour // until one is cancelled
)

// When the provider is asked how a response that is made in the background stands: a
// second after it began, then after an eighth of its age, and no seldomer than askMost.
const (
	askFirst = time.Second
	askMost  = 30 * time.Second
	askWait  = 30 * time.Second // for one answer
	lastAsk  = 2 * time.Second  // likewise, where the process ends
	leftFor  = 2 * time.Minute  // that what is held lasts without news: more than two answers may take
	sawWait  = 2 * time.Second  // that a client which has the end waits for it to be settled
	fullWait = 10 * time.Second // after which a client may try again that was refused
)

// How a response that was made in the background came out.
const (
	BackgroundEnded    = "ended"    // it completed or failed
	BackgroundStopped  = "stopped"  // it was cancelled
	BackgroundGone     = "gone"     // the provider has it no more
	BackgroundTime     = "time"     // it was cancelled after BackgroundFor
	BackgroundShutdown = "shutdown" // the gateway stopped before
)

// background is the responses that are made though their requests have been answered. Each
// has a goroutine, which close ends and joins.
type background struct {
	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	n       int                     // guarded by mu; requests that may have one, too
	tenants map[sluice.TenantID]int // likewise
	open    map[responseOf]*later   // likewise
	closed  bool                    // likewise
}

// responseOf names a response.
type responseOf struct {
	tenant sluice.TenantID
	id     string
}

// later is a response whose request has been answered and that is still made. What the
// request holds stays held; whoever sees the end first, the gateway that asks or the
// client, it is settled then, once. It belongs to its goroutine.
type later struct {
	t     *turn
	a     *attempt
	of    responseOf
	why   *sluice.Error // how the answer to the request ended; nil if well
	since time.Time

	seen chan []byte   // the response at its end, as a client has it
	now  chan struct{} // one place: the provider is to be asked at once
	done chan struct{} // closed when it is settled

	result string
}

func newBackground() *background {
	return &background{stop: make(chan struct{}), tenants: map[sluice.TenantID]int{}, open: map[responseOf]*later{}}
}

// enter takes a place for a request whose answer may be made in the background.
func (b *background) enter(t sluice.TenantID, most int64) *sluice.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.ShuttingDown, RetryAfter: time.Second, Msg: "the gateway is shutting down", Hint: "try again"}
	case b.n >= MaxBackground, int64(b.tenants[t]) >= most:
		return &sluice.Error{
			Kind: sluice.KindOverloaded, Reason: sluice.QueueFull, Param: "background", RetryAfter: fullWait,
			Msg: "has no room: as many responses are made as may be at a time", Hint: "wait for one of them to end, or for the answer to this one",
		}
	}
	b.n++
	b.tenants[t]++
	b.wg.Add(1)
	return nil
}

// mostBehind is how many responses of the request's tenant may be made in the background
// at a time: no more than calls of it may be in flight.
func (t *turn) mostBehind() int64 {
	most := int64(MaxBackgroundTenant)
	p := t.r.Principal.Policy
	if p == nil || p.Mode != sluice.Enforce {
		return most
	}
	for _, l := range p.Limits[sluice.ScopeTenant] {
		if l.Dimension == sluice.Concurrency {
			most = min(most, l.Amount)
		}
	}
	return most
}

// leave gives it back.
func (b *background) leave(t sluice.TenantID, l *later) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n--
	if b.tenants[t]--; b.tenants[t] == 0 {
		delete(b.tenants, t)
	}
	if l != nil && b.open[l.of] == l {
		delete(b.open, l.of)
	}
	b.wg.Done()
}

func (b *background) find(of responseOf) *later {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[of]
}

// close settles all: each is asked for a last time. No more begin.
func (b *background) close() {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	b.mu.Unlock()
	if !was {
		close(b.stop)
	}
	b.wg.Wait()
}

// Background is how many responses are made though their requests have been answered.
func (x *Exchange) Background() int {
	x.background.mu.Lock()
	defer x.background.mu.Unlock()
	return len(x.background.open)
}

// behind reports whether the request may have an answer that is made in the background.
func (t *turn) behind() bool { return t.r.Head.Background && t.shadow == nil }

// pending reports whether an answer in one piece tells of a response that is still made.
func (t *turn) pending(a *attempt) bool {
	return t.behind() && a.to == nil && a.tap.Pending() && a.tap.ResponseID() != ""
}

// outlives reports whether the response of a stream that has failed goes on all the same.
func (t *turn) outlives(a *attempt, e *sluice.Error) bool {
	if !t.behind() || !t.r.Head.Stream || a.to != nil || a.refused || a.told || a.tap.ResponseID() == "" || a.grant != t.grant {
		return false
	}
	switch e.Reason {
	case sluice.HoldExpired, sluice.InternalError, sluice.UpstreamMalformed, sluice.UpstreamTooLarge:
		return false
	}
	t.x.background.mu.Lock()
	defer t.x.background.mu.Unlock()
	return !t.x.background.closed
}

// putOff ends the request for its client and leaves its settlement to when the response
// has ended. why is how the answer ended, nil if well.
func (t *turn) putOff(a *attempt, why *sluice.Error) {
	l := &later{
		t: t, a: a, of: responseOf{t.r.Principal.Tenant, a.tap.ResponseID()}, why: why, since: time.Now(),
		seen: make(chan []byte), now: make(chan struct{}, 1), done: make(chan struct{}),
	}
	u := sluice.Usage{Input: a.input, Output: t.plan.work.Output, Source: sluice.UsageEstimated}
	cost, high := t.price(a, u)
	entry := t.entry(a, u, cost, high)
	entry.Outcome, entry.Status = outcome(why), t.status(why, a)
	if why != nil {
		entry.Reason = why.Reason
	}
	t.result = Result{Head: t.head, Would: a.place.Would, Limits: t.grant.Limits(), Final: entry, Usage: u, Cost: cost}
	t.r.Body, a.body, t.later = nil, nil, l
	// The place and the gauges are free: how long a response is queued at its provider is
	// nothing that others should wait for, nor tells it how fast that is.
	t.grant.Leave(u, leftFor)
	if why == nil {
		t.x.o.Gate.Observe(engine.Signal{Backend: a.place.Backend.ID, Probed: true, Healthy: true}) // a backend that is on trial has answered
	}
	b := t.x.background
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[l.of] = l
}

// departs begins to wait for the end of a response that goes on, when its request is over.
func (t *turn) departs() {
	l := t.later
	if l == nil || t.finished {
		t.x.background.leave(t.r.Principal.Tenant, l)
		return
	}
	go l.run()
}

// run waits for the end and settles.
func (l *later) run() {
	t, a := l.t, l.a
	var res Result
	defer t.x.background.leave(t.r.Principal.Tenant, l)
	defer close(l.done)
	defer t.recovered(&res)
	t.client = nobody{}
	a.times.head, a.times.whole = 0, 0
	l.await()
	a.times.end()
	t.finish(a, a.failure)
	t.taught(a)
	if h := t.x.o.Hooks.Background; h != nil {
		h(a.place.Backend.Provider, l.result, time.Since(l.since))
	}
}

// await waits for the end, and sets what the attempt came to.
func (l *later) await() {
	b := l.t.x.background
	timer := time.NewTimer(askFirst)
	defer timer.Stop()
	if l.why != nil && !l.a.content { // nobody has its id
		if l.takes(l.ask(wire.ResponseCancel, askWait)) {
			return
		}
	}
	for {
		select {
		case body := <-l.seen:
			if l.takes(body, false) {
				return
			}
		case <-b.stop:
			if !l.takes(l.ask(wire.ResponseGet, lastAsk)) {
				l.ends(BackgroundShutdown, &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ShuttingDown, Msg: "the gateway is shutting down"})
			}
			return
		case <-l.now:
		case <-timer.C:
		}
		if l.takes(l.ask(wire.ResponseGet, askWait)) {
			return
		}
		age := time.Since(l.since)
		if age >= BackgroundFor {
			if !l.takes(l.ask(wire.ResponseCancel, askWait)) {
				l.ends(BackgroundTime, &sluice.Error{Kind: sluice.KindTimeout, Reason: sluice.UpstreamTimeout, Msg: "the response did not end in time"})
			}
			l.result = BackgroundTime
			return
		}
		l.t.grant.Progress(sluice.Usage{}) // renews what it holds
		timer.Reset(min(max(age/8, askFirst), askMost))
	}
}

// ask asks the provider for the response, or to cancel it; gone says that it has it no
// more. Nil is no news.
func (l *later) ask(op wire.Operation, wait time.Duration) (body []byte, gone bool) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	t, a := l.t, l.a
	target := a.target
	if now, ok := t.x.o.Target(a.place.Backend.ID); ok { // its credential may be another by now
		target = now
	}
	h, err := wire.ScanStored(op, l.of.id, "")
	if err != nil {
		return nil, true
	}
	ans, err := t.x.o.Upstream.Do(ctx, target, t.storedRequest(a, target, h))
	if err != nil {
		return nil, false
	}
	defer ans.Close()
	if ans.Status >= 400 {
		return nil, ans.Status == 404 || ans.Status == 410
	}
	if body, err = ans.ReadAll(); err != nil {
		return nil, false
	}
	return body, false
}

// takes takes what the provider has told of the response. It reports whether that is its
// end.
func (l *later) takes(body []byte, gone bool) bool {
	a := l.a
	if gone {
		l.ends(BackgroundGone, &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.UpstreamRefused, Msg: "the provider does not have the response any more"})
		return true
	}
	if body == nil {
		return false
	}
	tap := wire.NewTap(wire.Responses, l.t.tapOptions(a))
	_, err := tap.Body(body)
	e := sluice.AsError(err)
	if tap.Pending() || tap.ResponseID() != l.of.id || err != nil && e.Reason == sluice.UpstreamMalformed {
		return false
	}
	if _, told := tap.Usage(); told || tap.Delivered() >= a.tap.Delivered() {
		a.tap = tap
	}
	switch {
	case tap.FinishReason() == "cancelled":
		a.stopped = true
		l.ends(BackgroundStopped, &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the response was cancelled"})
	case err != nil:
		a.told = true
		l.ends(BackgroundEnded, e)
	default:
		l.ends(BackgroundEnded, nil)
	}
	return true
}

// ends sets how it came out. How the answer to the request ended counts before.
func (l *later) ends(result string, e *sluice.Error) {
	if l.why != nil {
		e = l.why
	}
	l.result, l.a.failure = result, e
}

// saw takes a response, as a client has it, that is made no more, and has it settled
// before that client has it.
func (b *background) saw(of responseOf, body []byte) {
	l := b.find(of)
	if l == nil {
		return
	}
	most := time.NewTimer(sawWait)
	defer most.Stop()
	select {
	case l.seen <- body:
	case <-l.done:
	case <-most.C:
		return
	}
	select {
	case <-l.done:
	case <-most.C:
	}
}

// hurry has the provider asked at once.
func (b *background) hurry(of responseOf) {
	if l := b.find(of); l != nil {
		select {
		case l.now <- struct{}{}:
		default:
		}
	}
}

// appendBackground tells explain that the answer was made in the background, and how that
// came out.
func (t *turn) appendBackground(b []byte) []byte {
	l := t.later
	if l == nil || l.result == "" {
		return b
	}
	b = append(b, `,"background":{"result":`...)
	b = appendWord(b, l.result)
	b = append(b, `,"ms":`...)
	b = strconv.AppendInt(b, time.Since(l.since).Milliseconds(), 10)
	return append(b, '}')
}

// stops reports whether what an attempt generates, and is billed for, stops with its
// connection.
func (t *turn) stops(a *attempt) bool {
	return a.stopped || a.place.Backend.StopsOnCancel && !t.behind()
}
