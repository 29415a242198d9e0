package jwt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/egress"
)

// Options configures a Verifier. Dialer is required.
type Options struct {
	Dialer *egress.Dialer
	Log    *slog.Logger // nil discards
	// Told is called with what became of each token, on its request's goroutine: known,
	// verified, or a word for what refused it. Fetched with each fetch of keys, on its own
	// goroutine. Nil is silent.
	Told    func(issuer string, result Result)
	Fetched func(issuer string, err error)

	MaxVerified int // 0 is MaxVerified
}

// Result is what became of a token.
type Result string

// The results.
const (
	Known    Result = "known"    // it had been verified before
	Verified Result = "verified" // it was now
	Refused  Result = "refused"  // it is not good
	NotReady Result = "not_ready"
)

// Verifier verifies tokens.
type Verifier struct {
	o       Options
	memory  memory
	sources atomic.Pointer[map[string]*source] // by iss

	changing sync.Mutex // serialises Use
	wake     chan struct{}
	ctx      context.Context // of fetches
	stop     context.CancelFunc

	mu    sync.Mutex // guards what follows
	ended bool       // nothing more is to begin
	work  sync.WaitGroup
}

// New makes a Verifier that knows no issuer. Use, Start and Close it.
func New(o Options) *Verifier {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Told == nil {
		o.Told = func(string, Result) {}
	}
	if o.Fetched == nil {
		o.Fetched = func(string, error) {}
	}
	if o.MaxVerified <= 0 {
		o.MaxVerified = MaxVerified
	}
	v := &Verifier{o: o, memory: newMemory(o.MaxVerified), wake: make(chan struct{}, 1)}
	v.ctx, v.stop = context.WithCancel(context.Background())
	v.sources.Store(&map[string]*source{})
	return v
}

// Use puts issuers in force. Those that are asked for keys as before keep theirs.
func (v *Verifier) Use(specs []Spec) {
	v.changing.Lock()
	defer v.changing.Unlock()
	before, next := *v.sources.Load(), make(map[string]*source, len(specs))
	changed := len(before) != len(specs)
	for _, spec := range specs {
		old := before[spec.Issuer]
		switch {
		case old == nil || !old.spec.sameKeys(&spec):
			next[spec.Issuer] = &source{spec: spec}
		case old.spec.equal(&spec):
			next[spec.Issuer] = old
			continue
		default:
			next[spec.Issuer] = old.with(spec)
		}
		changed = true
	}
	if !changed {
		return
	}
	v.sources.Store(&next)
	v.memory.forget()
	v.look()
}

// look has the goroutine see what is due.
func (v *Verifier) look() {
	select {
	case v.wake <- struct{}{}:
	default: // it is about to
	}
}

// with is a source of the same keys for another spec.
func (s *source) with(spec Spec) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &source{spec: spec, keys: s.keys, fetched: s.fetched, asked: s.asked, fails: s.fails, err: s.err}
}

// Any reports whether there is an issuer.
func (v *Verifier) Any() bool { return len(*v.sources.Load()) > 0 }

// Start fetches keys, now and as they are due, until Close.
func (v *Verifier) Start() { v.spawn(v.run) }

// Close ends all fetches and waits for them. Tokens of known keys are still verified.
func (v *Verifier) Close() {
	v.stop()
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.work.Wait()
}

// spawn runs f on a goroutine that Close joins. After Close it runs nothing.
func (v *Verifier) spawn(f func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.work.Go(f)
	}
	return !v.ended
}

func (v *Verifier) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-v.wake:
		case <-timer.C:
		}
		now, next := time.Now(), time.Time{}
		for _, s := range *v.sources.Load() {
			due := s.due()
			if !due.After(now) {
				v.fetch(s, now, 0)
				due = now.Add(retryFirst)
			}
			if next.IsZero() || due.Before(next) {
				next = due
			}
		}
		if !next.IsZero() {
			timer.Reset(next.Sub(now))
		}
	}
}

// fetch begins to fetch a source's keys, if that was not done in the last each.
func (v *Verifier) fetch(s *source, now time.Time, each time.Duration) (f *flight, wait time.Duration) {
	f, begun, wait := s.begin(now, each)
	if !begun {
		return f, wait
	}
	spawned := v.spawn(func() {
		set, err := s.spec.fetch(v.ctx, v.o.Dialer)
		if v.ctx.Err() == nil {
			v.o.Fetched(s.spec.Name, err)
			if err != nil {
				v.o.Log.Warn("an issuer's keys could not be fetched: those that it had stay valid", slog.String("issuer", s.spec.Name), slog.Any("error", err))
			}
		}
		before, _ := s.current(now)
		s.land(f, set, err)
		v.sayUnfit(s.spec.Name, before, set)
		v.look() // a fetch that failed is due again sooner
	})
	if !spawned {
		s.land(f, nil, context.Canceled)
	}
	return f, 0
}

// Bearer is whose token it is, at now. The error is a *sluice.Error: KindUnauthenticated
// for what is no good token, KindForbidden for a good one that is mapped to nobody,
// KindOverloaded where the keys of its issuer are not there. It may wait AskWait for these.
func (v *Verifier) Bearer(token string, now time.Time) (auth.Bearer, error) {
	if len(token) > MaxToken {
		v.o.Told("", Refused)
		return auth.Bearer{}, refuse("the token is %d bytes long, and the bound is %d", "have its issuer put fewer claims into it", len(token), MaxToken)
	}
	id := sumOf(token)
	if k := v.memory.find(&id); k != nil {
		if set, good := k.source.current(now); good && set.print[k.print] && now.Before(k.until) && v.inForce(k.source) {
			v.o.Told(k.source.spec.Name, Known)
			return k.bearer, nil
		}
	}
	name, found, err := v.verify(token, now)
	if err != nil {
		result := Refused
		if sluice.AsError(err).Reason == sluice.NotReady {
			result = NotReady
		}
		v.o.Told(name, result)
		return auth.Bearer{}, err
	}
	v.memory.keep(id, found)
	v.o.Told(name, Verified)
	return found.bearer, nil
}

func (v *Verifier) inForce(s *source) bool { return (*v.sources.Load())[s.spec.Issuer] == s }

// verify checks all of a token; name is that of its issuer, empty if it is of none.
func (v *Verifier) verify(token string, now time.Time) (name string, found *verified, err error) {
	h, claimed, err := open(token)
	if err != nil {
		return "", nil, refuse("the token %s", "send it whole, as its issuer gave it", err)
	}
	s := (*v.sources.Load())[claimed.Issuer]
	if s == nil {
		return "", nil, refuse("the token is of an issuer that is not known here", "use one of this gateway's issuers, or a key")
	}
	name = s.spec.Name
	if !h.bearer() {
		return name, nil, refuse("the token's type (typ) is not that of an access or ID token", "send one whose typ is JWT or at+jwt")
	}
	if !slices.Contains(s.spec.Algorithms, h.Algorithm) {
		return name, nil, refuse("the token is signed by an algorithm that is not taken from its issuer", "have it signed by one of %s", strings.Join(s.spec.Algorithms, ", "))
	}
	payload, print, err := v.payload(s, token, &h, &claimed, now)
	if err != nil {
		return name, nil, err
	}
	c, until, err := s.spec.check(payload, now)
	if err != nil {
		return name, nil, err
	}
	bearer, err := s.spec.bearer(c)
	if err != nil {
		return name, nil, err
	}
	return name, &verified{bearer: bearer, source: s, print: print, until: until}, nil
}

// payload verifies a token's signature. Where its key is not known the issuer is asked,
// or was, since it issued the token.
func (v *Verifier) payload(s *source, token string, h *header, claimed *unverified, now time.Time) ([]byte, string, error) {
	for asked := false; ; asked = true {
		set, good := s.current(now)
		if good {
			payload, print, err := set.verify(v.ctx, token, h)
			if err == nil {
				return payload, print, nil
			}
			if !errors.Is(err, errNoKey) {
				return nil, "", refuse("the token's signature does not match its issuer's key", "get a new one from the issuer")
			}
			if asked || s.unpublished(h.KeyID, now) || s.answeredAfter(claimed.issued(), s.spec.Leeway) {
				if why := set.whyUnfit(h.KeyID); why != "" {
					return nil, "", refuse("the token is signed with a key that its issuer publishes and that is not taken here: it %s", "ask the gateway's operator", why)
				}
				return nil, "", refuse("the token is signed with a key that its issuer does not publish", "get a new one from the issuer")
			}
		} else if asked {
			return nil, "", unready(time.Second)
		}
		f, wait := v.fetch(s, now, AskEach)
		if f == nil {
			return nil, "", unready(wait)
		}
		if !await(f) || f.err != nil { // it is down: a key that it has just begun to use is no forgery
			return nil, "", unready(time.Second)
		}
		now = time.Now()
	}
}

// await waits for a fetch, AskWait at most.
func await(f *flight) bool {
	most := time.NewTimer(AskWait)
	defer most.Stop()
	select {
	case <-f.done:
		return true
	case <-most.C:
		return false
	}
}

// check holds a verified payload to the times, audiences and claims that the issuer's
// tokens need. until is when it expires, leeway included.
func (s *Spec) check(payload []byte, now time.Time) (c claims, until time.Time, err error) {
	c, err = parseClaims(payload)
	if err != nil {
		return nil, until, refuse("the token's claims are not well formed", "have its issuer write each once")
	}
	if own, _ := word(c["iss"]); own != s.Issuer {
		return nil, until, refuse("the token's iss is not well formed", "have its issuer write it once")
	}
	expires, ok, err := c.when("exp")
	if err != nil || !ok {
		return nil, until, refuse("the token has no exp, or one that is no time", "have its issuer say when it expires")
	}
	until = expires.Add(s.Leeway)
	if !now.Before(until) {
		e := refuse("the token expired at %s", "get a new one from its issuer", expires.Format(time.RFC3339))
		e.Reason = sluice.KeyExpired
		return nil, until, e
	}
	for _, name := range [...]string{"nbf", "iat"} {
		from, ok, err := c.when(name)
		if err != nil {
			return nil, until, refuse("the token's %s is no time", "have its issuer write seconds since 1970", name)
		}
		if ok && now.Before(from.Add(-s.Leeway)) {
			return nil, until, refuse("the token is good from %s on (%s), which has not come here", "compare the clocks, or try again then", from.Format(time.RFC3339), name)
		}
	}
	if subject, ok := word(c["sub"]); !ok || subject == "" || c["sub"].Kind() != '"' {
		return nil, until, refuse("the token has no sub, or one that is no text", "have its issuer say who it is of")
	}
	if !texts(c["aud"]) {
		return nil, until, refuse("the token's aud is neither a text nor a list of texts", "have its issuer write whom it is for")
	}
	audiences := words(c["aud"])
	if !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(s.Audiences, a) }) {
		return nil, until, refuse("the token is for another audience than this gateway", "ask the issuer for one whose aud is %s", strings.Join(s.Audiences, " or "))
	}
	for i := range s.Require {
		if r := &s.Require[i]; !r.holds(c) {
			return nil, until, denied("the token's claim %s is missing, or not one that is admitted here", "ask the gateway's operator", r.Claim)
		}
	}
	return c, until, nil
}

// refuse is the error of a token that is not good. Verbs that msg leaves over are hint's.
func refuse(msg, hint string, args ...any) *sluice.Error {
	n := strings.Count(msg, "%")
	return &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated, Msg: fmt.Sprintf(msg, args[:n]...), Hint: fmt.Sprintf(hint, args[n:]...)}
}

// unready is the error of a token whose issuer's keys are not there.
func unready(wait time.Duration) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: wait,
		Msg: "the keys of the token's issuer are not known here yet", Hint: "try again in a moment",
	}
}
