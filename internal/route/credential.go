package route

import (
	"time"

	"sluice"
)

// Key names one credential of a backend. The secret itself is for those who dial.
type Key struct {
	ID     string // unique over all providers; backends with the same share what becomes of it
	Weight int64  // share of the backend's attempts, at least 1
}

// How long a credential is left alone before one request tries it again.
const (
	ParkedFor   = time.Hour // its allowance is spent, and nobody said until when
	DisabledFor = time.Hour // it was refused; a reload tries it at once
)

// CredentialState is what a credential may be used for.
type CredentialState string

// The states.
const (
	CredentialUsable   CredentialState = "usable"
	CredentialParked   CredentialState = "parked"   // its allowance is spent
	CredentialDisabled CredentialState = "disabled" // the provider refuses it
)

// Credential is what is known of one key of a provider, over all backends that use
// it. The zero value is usable.
type Credential struct {
	state CredentialState // empty for usable
	until time.Time
	trial bool // one request finds out
}

// Park leaves the credential alone until its allowance is there again: for d, but
// no longer than ParkedFor, and for that if it is not known. It only lengthens, and
// leaves a disabled one so.
func (c *Credential) Park(now time.Time, d time.Duration) (changed bool) {
	if d <= 0 {
		d = ParkedFor
	}
	if c.state == CredentialDisabled && now.Before(c.until) {
		return false
	}
	return c.keep(CredentialParked, now.Add(min(d, ParkedFor)))
}

// Disable leaves the credential alone for DisabledFor: the provider refuses it.
func (c *Credential) Disable(now time.Time) (changed bool) {
	return c.keep(CredentialDisabled, now.Add(DisabledFor))
}

func (c *Credential) keep(s CredentialState, until time.Time) (changed bool) {
	changed = c.state != s
	if c.state = s; until.After(c.until) {
		c.until, changed = until, true
	}
	c.trial = false
	return changed
}

// Enable makes it usable at once.
func (c *Credential) Enable() { *c = Credential{} }

// Usable reports whether the credential may be used: where it was out, by one
// request at a time, until one goes well.
func (c *Credential) Usable(now time.Time) bool {
	return c.state == "" || !c.trial && !now.Before(c.until)
}

// State is what it may be used for, and until when it is out.
func (c *Credential) State() (CredentialState, time.Time) {
	if c.state == "" {
		return CredentialUsable, time.Time{}
	}
	return c.state, c.until
}

// started notes a use. It reports whether that is the trial of one that was out.
func (c *Credential) started(now time.Time) (trial bool) {
	if c.state != "" && c.Usable(now) {
		c.trial, trial = true, true
	}
	return trial
}

// ended notes the end of a trial. It reports whether the credential is usable again.
func (c *Credential) ended(now time.Time, why sluice.Reason) (restored bool) {
	if !c.trial {
		return false // it was put out again
	}
	c.trial = false
	if verdictOn(why) != alive || now.Before(c.until) {
		return false
	}
	c.Enable()
	return true
}

// lane is one credential as one backend uses it: providers count rates by model
// and key.
type lane struct {
	key    Key
	shared *Credential // of all backends with this key
	own    Credential  // refused here, such as for this model
	gone   bool        // no longer configured

	running int64
	turn    uint64
	step    uint64    // by which a use moves turn on
	paused  time.Time // 429
	strikes int       // 429 in a row that told no time
	struck  int64     // the last that counted, in nanoseconds from the place's first moment
	rates   [NumRates]bucket
}

// usable reports whether the lane may be used, rates aside.
func (l *lane) usable(now time.Time) bool {
	return !now.Before(l.paused) && l.shared.Usable(now) && l.own.Usable(now)
}

// sound reports whether the lane is usable whatever the time.
func (l *lane) sound() bool {
	return !l.gone && l.paused.IsZero() && l.shared.state == "" && l.own.state == ""
}

// until is when it may be used again, as far as that is by time alone.
func (l *lane) until() time.Time {
	t := l.paused
	for _, c := range [...]*Credential{l.shared, &l.own} {
		if _, until := c.State(); until.After(t) {
			t = until
		}
	}
	return t
}

// state is the worse of both.
func (l *lane) state() CredentialState {
	s, _ := l.shared.State()
	if o, _ := l.own.State(); s == CredentialUsable || o == CredentialDisabled {
		return o
	}
	return s
}

// less orders lanes by running ÷ weight, then by turn.
func (l *lane) less(o *lane) bool {
	a, b := l.running*o.key.Weight, o.running*l.key.Weight
	if a != b {
		return a < b
	}
	return l.turn < o.turn
}

// MaxKeyWeight bounds Key.Weight.
const MaxKeyWeight = 1_000_000

// Credentials are the credentials of all backends, by id. The zero value has none.
type Credentials struct{ byID map[string]*Credential }

// Of finds or makes one.
func (c *Credentials) Of(id string) *Credential {
	k := c.byID[id]
	if k == nil {
		if c.byID == nil {
			c.byID = make(map[string]*Credential)
		}
		k = &Credential{}
		c.byID[id] = k
	}
	return k
}

// Renew makes those that are still used usable, since a new configuration may have
// mended them, and forgets the others.
func (c *Credentials) Renew(used func(id string) bool) {
	for id, k := range c.byID {
		if !used(id) {
			delete(c.byID, id)
			continue
		}
		k.Enable()
	}
}
