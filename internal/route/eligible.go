package route

import (
	"math"
	"slices"

	"sluice"
	"sluice/internal/price"
)

// Left is why a backend was left out of a choice; empty for the one chosen. The
// words are shown by `sluice explain`.
type Left string

// Why a backend was left out.
const (
	Chosen        Left = ""
	LeftDialect   Left = "dialect"      // it speaks another than the client, and the operation is not translated
	LeftState     Left = "state"        // what the request refers to is kept elsewhere
	LeftTranslate Left = "translation"  // it speaks another, which cannot say what the request asks for
	LeftDrained   Left = "drained"      // weight 0, or by an operator
	LeftRegion    Left = "region"       // the caller's requests may not go to where it runs
	LeftProvider  Left = "provider"     // likewise, to whose it is
	LeftRisk      Left = "risk"         // the request carries a higher label than it, or its pool for this model, takes
	LeftLacks     Left = "capability"   // it cannot do what the request asks: see Lacks
	LeftContext   Left = "context"      // the input is longer than its context or its KV memory
	LeftUnpriced  Left = "unpriced"     // neither price nor ceiling
	LeftTooDear   Left = "too_dear"     // an attempt may cost more there than the model allows
	LeftTerms     Left = "terms"        // its pool is for other tenants or classes, or a canary for other requests
	LeftLocality  Left = "locality"     // it is in another region than the request is to be served in
	LeftTried     Left = "tried"        // an attempt of this request failed there
	LeftDomain    Left = "domain"       // its failure domain has failed, or failed this request, and another can serve it
	LeftUnhealthy Left = "unhealthy"    // cooling down, paused, or being probed
	LeftRamping   Left = "ramping"      // it is coming back: another takes this one
	LeftParked    Left = "credential"   // every credential of it is refused or spent
	LeftKept      Left = "kept"         // what becomes free there is kept for a larger request
	LeftFull      Left = "full"         // no slot, KV memory or prefill for it now
	LeftPaced     Left = "rate_paced"   // the provider's rates are used up for now
	LeftDearer    Left = "dearer"       // it became dearer than what the request holds
	LeftRetries   Left = "retry_budget" // it has had as many retries as it may
	LeftSlower    Left = "slower"       // the model prefers latency, and another is expected to answer sooner
	LeftPricier   Left = "pricier"      // the model prefers price, and another is expected to cost less
	LeftOther     Left = "other"        // it could have served, or it was of no matter whether; another was chosen
)

// Ask is what a request asks of a backend.
type Ask struct {
	Dialect string        // the client's
	Others  []Translation // into other dialects
	Needs   Needs
	Policy  *sluice.Policy // of the caller: regions and providers; nil allows all
	Risk    sluice.Risk    // its label: see sluice.Policy.Raise
	MaxRisk sluice.Risk    // the highest that the pool takes for the model; RiskNone is no bound
	Work    sluice.Work
	Billing price.Billing // how it may be billed
	Free    bool          // nothing is billed
	Pin     *Pin          // where what it refers to is kept; nil if it refers to nothing
}

// Translation is a request in another dialect than the client's, or in another way of
// its own.
type Translation struct {
	Dialect string
	Needs   Needs         // in place of those of the request; of an untried one its Surfaces alone
	Err     *sluice.Error // why it may not be sent so; nil if it may
	Untried bool          // nobody has looked whether it may: until then it is as if it might not
}

// Own reports whether a backend takes the request as it is: it speaks its dialect, and
// the way in which the request is made.
func (a *Ask) Own(b *Backend) bool { return b.Dialect == a.Dialect && a.Needs&Surfaces&b.Lacks == 0 }

// in is the translation by which a backend takes the request, nil if there is none.
func (a *Ask) in(b *Backend) *Translation {
	for i := range a.Others {
		if t := &a.Others[i]; t.Dialect == b.Dialect && t.Needs&Surfaces&b.Lacks == 0 {
			return t
		}
	}
	return nil
}

// NeedsOf is what the request needs of a backend, in the dialect that this speaks.
func (a *Ask) NeedsOf(b *Backend) Needs {
	if !a.Own(b) {
		if t := a.in(b); t != nil {
			return t.Needs
		}
	}
	return a.Needs
}

// Untranslated is why the request may not be sent in the dialect of a backend; nil
// if it may, or is not translated at all.
func (a *Ask) Untranslated(b *Backend) *sluice.Error {
	if a.Own(b) {
		return nil
	}
	if t := a.in(b); t != nil {
		return t.Err
	}
	return nil
}

// speaks tells whether a backend understands the request, as it is or translated.
func (a *Ask) speaks(b *Backend) Left {
	if a.Own(b) {
		return Chosen
	}
	switch t := a.in(b); {
	case t == nil && b.Dialect == a.Dialect: // see Lacks
		return Chosen
	case t == nil:
		return LeftDialect
	case t.Untried:
		return LeftOther
	case t.Err != nil:
		return LeftTranslate
	}
	return Chosen
}

// LongestInput is the largest input that the backend takes: that of its context and
// its KV memory.
func (b *Backend) LongestInput() sluice.Tokens {
	n := sluice.Tokens(math.MaxInt64)
	for _, bound := range [...]sluice.Tokens{b.Context, b.Capacity.KVTokens} {
		if bound > 0 {
			n = min(n, bound)
		}
	}
	return n
}

// Eligible tells why a backend may not serve a request at all, Chosen if it may.
func Eligible(b *Backend, a *Ask) Left {
	spoken := a.speaks(b)
	switch {
	case spoken == LeftDialect:
		return LeftDialect
	case a.Pin != nil && !a.Pin.Holds(b):
		return LeftState
	case b.Weight <= 0:
		return LeftDrained
	}
	if left := b.Permitted(a.Policy, a.Risk); left != Chosen {
		return left
	}
	switch {
	case !a.Risk.Within(a.MaxRisk):
		return LeftRisk
	case spoken != Chosen:
		return spoken
	case a.NeedsOf(b)&b.Lacks != 0:
		return LeftLacks
	case a.Work.Input > b.LongestInput():
		return LeftContext
	case !a.Free && !b.prices(a.Billing):
		return LeftUnpriced
	}
	return Chosen
}

// prices reports whether what is billed so has a price here, or a ceiling.
func (b *Backend) prices(by price.Billing) bool {
	row := b.Row()
	return row != nil && row.Prices(by)
}

// Permitted tells whether a caller's requests may go to the backend at all: its
// region and its provider are among those of the policy, if that names any, and it
// takes what carries such a label. A backend that names no region is in none. There
// is no way around it: first attempts, retries and fallbacks are chosen among what it
// leaves.
func (b *Backend) Permitted(p *sluice.Policy, risk sluice.Risk) Left {
	switch {
	case !risk.Within(b.MaxRisk):
		return LeftRisk
	case p == nil:
		return Chosen
	case len(p.Regions) > 0 && (b.Region == "" || !slices.Contains(p.Regions, b.Region)):
		return LeftRegion
	case len(p.Providers) > 0 && !slices.Contains(p.Providers, b.Provider):
		return LeftProvider
	}
	return Chosen
}

// FailsDomain reports whether a failure says that more than the one backend may be
// down: the next attempt leaves its failure domain. A provider's limit of one account
// does not.
func FailsDomain(why sluice.Reason) bool { return verdictOn(why) == failed }
