package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice"
)

// Once is a key of what is made in one transaction of a store, such as a batch: the key is
// kept in the same transaction, so that no process can die between the two.
type Once struct {
	Claim        // Until is how long the key is kept
	Made  string // the id of what is made
}

// Held is the key as it is kept.
func (o *Once) Held() Held { return Held{o.Mark, o.Request} }

// Taken is why something was not made: another request has its key.
type Taken struct{ Found Found }

func (t *Taken) Error() string { return fmt.Sprintf("request %s has the key", t.Found.Request) }

// made begins what is kept in the place of an answer; no answer begins so.
const made = "made "

// Kept is what the store keeps in the place of an answer.
func (o *Once) Kept() []byte { return []byte(made + o.Made) }

// Size is what the key counts of its tenant's room.
func (o *Once) Size() int64 { return int64(len(made)+len(o.Made)) + Overhead }

// Asked is a request that makes something and has a key, which has been checked.
type Asked struct {
	Tenant    sluice.TenantID
	Operation string // its word: keys are of one operation
	Key       string
	Request   sluice.RequestID
	Print     Print
}

// Once is the key of what is to be made; nil of a request without one.
func (k *Keeper) Once(a Asked) *Once {
	if k == nil || a.Key == "" {
		return nil
	}
	now := time.Now()
	k.mu.Lock()
	until := now.Add(k.limits.Keep)
	k.mu.Unlock()
	return &Once{Claim: Claim{Mark: MarkOf(a.Tenant, a.Operation, a.Key), Tenant: a.Tenant, Print: a.Print, Request: a.Request, Now: now, Until: until}}
}

// First is what an earlier request with the same key and the same body has made.
type First struct {
	Made    string
	Request sluice.RequestID
}

// First says what becomes of a request whose making ended in err. It is nil, and err as it
// is, unless another request has the key: then it is what that one has made, or why this
// one is refused.
func (k *Keeper) First(o *Once, err error) (*First, error) {
	taken, ok := errors.AsType[*Taken](err)
	if o == nil || k == nil || !ok {
		if o != nil && err == nil {
			k.o.Told(Stored)
		}
		return nil, err
	}
	f := &taken.Found
	switch id, is := strings.CutPrefix(string(f.Answer), made); {
	case f.Print != o.Print, f.Answer != nil && !is:
		k.o.Told(Mismatch)
		return nil, mismatch(f)
	case f.Answer == nil:
		k.o.Told(InFlight)
		return nil, inFlight(f, o.Now)
	default:
		k.o.Told(Replayed)
		return &First{id, f.Request}, nil
	}
}

// Seek is First of a request that cannot make anything any more, which err says, since what
// it is made from has gone: it is still given what it made when it could.
func (k *Keeper) Seek(ctx context.Context, o *Once, err error) (*First, error) {
	if o == nil || k == nil {
		return nil, err
	}
	found, failed := k.o.Store.FindKey(ctx, o.Mark, o.Now)
	switch {
	case failed != nil:
		return nil, &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: time.Second, Msg: "it cannot be told now whether the key has been used", Hint: "send it again", Err: failed}
	case found == nil:
		return nil, err
	}
	return k.First(o, &Taken{*found})
}

// Busy refuses a request whose key is that of something that is still being made, since
// then.
func (f *First) Busy(since time.Time) error {
	return inFlight(&Found{Request: f.Request, Begun: since}, time.Now())
}

// Gone refuses a request whose key is that of something that has been deleted since.
func (f *First) Gone() error {
	e := sluice.Invalid(named, "is that of request %s, and what that made has been deleted since", f.Request)
	e.Kind, e.Reason, e.Hint = sluice.KindNotFound, sluice.NotFound, "use another key to make it anew"
	return e
}
