package ladder

import (
	"fmt"
	"time"

	"sluice"
)

// Tier is a step of the degradation ladder: how far the service of a pool is reduced.
type Tier uint8

// The tiers. Each does what those below it do, too.
const (
	None    Tier = iota // all is served as it was asked for
	Clamp               // answers are bounded
	Context             // long inputs that would wait are refused, or go to a pool that is not degraded
	Defer               // batch waits
	Smaller             // a smaller model serves those who consent; others, who would wait, are offered the asynchronous path
	Shed                // batch is refused, then standard, then what is beyond the share of interactive
	NumTiers
)

var tierWords = [NumTiers]string{"none", "clamp", "context", "defer", "smaller", "shed"}

func (t Tier) String() string {
	if t < NumTiers {
		return tierWords[t]
	}
	return fmt.Sprintf("unknown(%d)", uint8(t))
}

// Rung is where a ladder stands: a tier, the last of which has a rung for each class.
// A ladder moves by one rung at a time.
type Rung uint8

// The rungs of Shed; those below are the tiers.
const (
	ShedBatch Rung = Rung(Shed) + iota
	ShedStandard
	ShedInteractive
	NumRungs
)

// Tier is the tier of the rung.
func (r Rung) Tier() Tier { return min(Tier(r), Shed) }

func (r Rung) String() string {
	switch r {
	case ShedBatch:
		return "shed batch"
	case ShedStandard:
		return "shed batch and standard"
	case ShedInteractive:
		return "shed what is beyond its share"
	}
	return Tier(r).String()
}

// RungOf is the first rung of a tier.
func RungOf(t Tier) Rung { return Rung(min(t, Shed)) }

// last is the last rung of a tier.
func last(t Tier) Rung {
	if t >= Shed {
		return NumRungs - 1
	}
	return Rung(t)
}

// Acts is what is done to requests on a rung.
type Acts struct {
	Tier   Tier
	Output sluice.Tokens // most of one answer; 0 is no bound
	Input  sluice.Tokens // most of one request; 0 is no bound
	Defer  bool          // batch waits
	// Smaller serves those who consent by a smaller model. Others are refused if they
	// would wait longer than Wait, with the offer of the asynchronous path.
	Smaller bool
	// Shed is the most important class that is refused, whatever the wait: NumClasses if
	// none is. Share refuses what would wait longer than Wait of the others too: it is
	// beyond what the fair queue has for its caller.
	Shed  sluice.Class
	Share bool
	// Wait is the longest predicted wait that is accepted; negative is any.
	Wait time.Duration
}

// noActs is what is done to requests where nothing is.
var noActs = Acts{Shed: sluice.Class(sluice.NumClasses), Wait: -1}

// Acts is what the policy does to requests on a rung.
func (p *Policy) Acts(r Rung) Acts {
	a, t := noActs, r.Tier()
	a.Tier = t
	if t >= Clamp {
		a.Output = p.Output
	}
	if t >= Context {
		a.Input = p.Input
	}
	a.Defer, a.Smaller = t >= Defer, t >= Smaller
	if t >= Smaller {
		a.Wait = p.Steps[Smaller].Enter.Age
	}
	switch r {
	case ShedBatch:
		a.Shed = sluice.Batch
	case ShedStandard:
		a.Shed = sluice.Standard
	case ShedInteractive:
		a.Shed, a.Share = sluice.Standard, true
		a.Wait = p.Steps[Shed].Exit.Age
	}
	return a
}

// Answer is the output bound of a request of so many answers, which is worth nothing
// below least.
func (a *Acts) Answer(bound, least sluice.Tokens, answers int64) sluice.Tokens {
	if a.Output <= 0 {
		return bound
	}
	return min(bound, max(a.Output*sluice.Tokens(max(answers, 1)), least))
}
