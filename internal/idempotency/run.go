package idempotency

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/answer"
	"sluice/internal/exchange"
)

// Header is the request's header, in canonical form.
const Header = "Idempotency-Key"

// MaxKey bounds a key, in bytes.
const MaxKey = 255

// named is how sluice-dropped tells of a key that had no effect.
const named = "idempotency-key"

// Check reports a header that is no key: one that comes twice, is empty or too long, or
// has more than the visible characters of ASCII.
func Check(values []string) error {
	if len(values) == 0 {
		return nil
	}
	key := values[0]
	switch {
	case len(values) > 1:
		return sluice.Invalid(named, "is given twice: give it once")
	case key == "" || len(key) > MaxKey:
		return sluice.Invalid(named, "is %d bytes long: use 1 to %d", len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return sluice.Invalid(named, "has %q at byte %d: use letters, digits and punctuation of ASCII, without spaces", key[i], i)
		}
	}
	return nil
}

// Run is an exchange.Runner. The key has been checked.
func (k *Keeper) Run(ctx context.Context, r *exchange.Request, c exchange.Client) exchange.Result {
	if len(r.Header[Header]) == 0 || r.Head.Op.Stored() {
		return k.o.Next(ctx, r, c)
	}
	key := r.Header[Header][0]
	now := time.Now()
	claim := Claim{
		Mark: MarkOf(r.Principal.Tenant, r.Head.Op.String(), key), Tenant: r.Principal.Tenant, Print: printOf(r),
		Request: r.ID, Now: now, Until: now.Add(Lease),
	}
	var found *Found
	// A client that leaves meanwhile does not end this: nobody would know whether it has the
	// key. Its request ends as soon as it runs.
	err := k.ask(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		found, err = k.o.Store.ClaimKey(ctx, claim)
		return err
	})
	switch {
	case err != nil:
		return k.unclaimed(ctx, r, c, key, err)
	case found == nil:
		return k.lead(ctx, r, c, claim)
	case found.Print != claim.Print:
		k.o.Told(Mismatch)
		return k.o.Record.Refuse(r, c, mismatch(found))
	case found.Answer == nil:
		k.o.Told(InFlight)
		return k.o.Record.Refuse(r, c, inFlight(found, now))
	}
	return k.replay(ctx, r, c, key, found)
}

func mismatch(f *Found) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindConflict, Reason: sluice.IdempotencyMismatch, Param: named,
		Msg: "is that of another request, " + string(f.Request) + ", whose body was another", Hint: "use a key for one request alone",
	}
}

func inFlight(f *Found, now time.Time) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindConflict, Reason: sluice.IdempotencyInFlight, Param: named,
		Msg: "is that of request " + string(f.Request) + ", which is still running", Hint: "wait for it, and send the same again",
		RetryAfter: pause(now.Sub(f.Begun)),
	}
}

// pause is when to ask again for an answer that somebody has waited for so long: as long
// again, so that asking does not outrun it.
func pause(waited time.Duration) time.Duration {
	return min(max(waited.Round(time.Millisecond), time.Second), Lease)
}

// printOf is the print of a request: two have the same if they ask for the same.
func printOf(r *exchange.Request) Print {
	form := map[bool]string{false: "whole", true: "stream"}[r.Head.Stream]
	h := hashOf(r.Head.Op.String(), r.Head.Model, form) // the model and the form may stand in the path
	body := r.Body
	if r.Head.Op.Form() {
		_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if boundary := parameters["boundary"]; err == nil && boundary != "" {
			body = bytes.ReplaceAll(body, []byte(boundary), nil)
		}
	}
	_, _ = h.Write(body)
	return Print(h.Sum(nil))
}

// unclaimed is what becomes of a request whose key the store could not be asked for.
func (k *Keeper) unclaimed(ctx context.Context, r *exchange.Request, c exchange.Client, key string, err error) exchange.Result {
	k.o.Told(Failed)
	if strings.HasPrefix(key, "stainless-") { // the library's own idea
		return k.o.Next(ctx, r, &unkept{c})
	}
	return k.o.Record.Refuse(r, c, &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Param: named, RetryAfter: time.Second, Expected: true,
		Msg: "has no store that answers now, so that the request might run twice", Hint: "try again in a moment, or send the request without it", Err: err,
	})
}

// unkept is a client that is told that its key has no effect.
type unkept struct{ exchange.Client }

func (u *unkept) Events(h *exchange.Head, p []byte) error {
	return u.Client.Events(without(h), p)
}

func (u *unkept) Answer(h *exchange.Head, body []byte) error {
	return u.Client.Answer(without(h), body)
}

// without is a head that tells that the key had no effect.
func without(h *exchange.Head) *exchange.Head {
	out := *h
	if out.Dropped != "" {
		out.Dropped += ", "
	}
	out.Dropped += named
	return &out
}

// lead runs a request that has its key, and keeps the answer if it is worth that.
func (k *Keeper) lead(ctx context.Context, r *exchange.Request, c exchange.Client, claim Claim) exchange.Result {
	k.o.Told(Claimed)
	held := Held{claim.Mark, claim.Request}
	k.mu.Lock()
	k.held[held.Mark] = held.Request
	most := k.limits.MaxBytes
	k.mu.Unlock()
	t := &tee{k: k, to: c, tenant: claim.Tenant, held: held, limit: most}
	defer func() { // of a panic too: the key is not left to its lease
		k.mu.Lock()
		delete(k.held, held.Mark)
		k.mu.Unlock()
		k.unbuffer(len(t.body))
		if !t.ended {
			k.free(ctx, held)
		}
	}()
	res := k.o.Next(ctx, r, t)
	if !t.ended {
		t.end(ctx, &res)
	}
	return res
}

// free gives a key back.
func (k *Keeper) free(ctx context.Context, h Held) {
	k.o.Told(Freed)
	err := k.ask(context.WithoutCancel(ctx), func(ctx context.Context) error { return k.o.Store.FreeKey(ctx, h) })
	if err != nil {
		k.o.Told(Failed) // it ends with its lease
	}
}

// keep puts an answer into the store. It reports whether it is there.
func (k *Keeper) keep(ctx context.Context, t sluice.TenantID, h Held, a *answer.Answer) bool {
	size := len(a.Body) + Overhead
	if !k.buffer(size) {
		k.o.Told(Full)
		return false
	}
	defer k.unbuffer(size)
	sealed := a.Append(make([]byte, 0, size))
	if !k.room(t, int64(len(sealed))) {
		k.o.Told(Full)
		return false
	}
	k.mu.Lock()
	until := time.Now().Add(k.limits.Keep)
	k.mu.Unlock()
	ok := false
	err := k.ask(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		ok, err = k.o.Store.KeepAnswer(ctx, Kept{Held: h, Answer: sealed, Until: until})
		return err
	})
	switch {
	case err != nil:
		k.o.Told(Failed)
	case !ok:
		k.o.Told(Lost)
	default:
		k.o.Told(Stored)
	}
	return err == nil && ok
}

// mended are refusals of a backend that time or an operator mends, so that the same
// request may be answered later.
var mended = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
	http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests,
}

// refusal is a backend's refusal that is worth keeping, nil if it is not.
func refusal(res *exchange.Result) *answer.Answer {
	p := res.Pass
	if p == nil || p.Status < 400 || p.Status > 499 || slices.Contains(mended, p.Status) {
		return nil
	}
	h := exchange.Head{}
	if res.Head != nil {
		h = *res.Head
	}
	h.Status = p.Status
	return answer.Of(&h, false, p.Body)
}

// replay answers with what is kept.
func (k *Keeper) replay(ctx context.Context, r *exchange.Request, c exchange.Client, key string, f *Found) exchange.Result {
	a, err := answer.Parse(f.Answer)
	if err != nil { // of another version, or damaged: nothing tells what it was
		return k.unclaimed(ctx, r, c, key, err)
	}
	k.o.Told(Replayed)
	h := a.Head()
	h.Replayed = f.Request
	out := exchange.Replay{Of: f.Request, Head: h}
	if a.Status >= 400 {
		out.Pass = &exchange.Passed{Status: a.Status, Header: a.Header, Body: a.Body}
	} else {
		out.Deliver = func() error { return a.Replay(h, c) }
	}
	return k.o.Record.Replayed(ctx, r, out)
}
