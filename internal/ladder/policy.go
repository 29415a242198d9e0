package ladder

import (
	"errors"
	"fmt"
	"time"

	"sluice"
)

// Mode is what a ladder may do.
type Mode uint8

// The modes.
const (
	Off      Mode = iota // nothing is looked at
	Watch                // it says what it would do; an operator's pin is in force
	Act                  // it does
	NumModes = iota
)

var modeWords = [NumModes]string{"off", "shadow", "on"}

func (m Mode) String() string {
	if int(m) < len(modeWords) {
		return modeWords[m]
	}
	return fmt.Sprintf("unknown(%d)", uint8(m))
}

// ModeNamed is what a word of the configuration stands for.
func ModeNamed(word string) (Mode, bool) {
	for i, w := range modeWords {
		if w == word {
			return Mode(i), true
		}
	}
	return Off, false
}

// Bounds are figures that a signal is held against. A zero is not looked at.
type Bounds struct {
	Age     time.Duration // of what has waited longest in the queue
	KV      int64         // of the memory in use, thousandths, while something waits
	Refused int64         // of the arrivals those refused for want of room, thousandths
}

// over names the first figure that reaches its bound.
func (b *Bounds) over(s *Signal) Cause {
	switch {
	case b.Age > 0 && s.Age >= b.Age:
		return CauseAge
	case b.Refused > 0 && s.Refused >= b.Refused:
		return CauseRefused
	case b.KV > 0 && s.Waits && s.KV >= b.KV:
		return CauseKV
	}
	return CauseNone
}

// calm reports whether no figure is beyond its bound.
func (b *Bounds) calm(s *Signal) bool {
	return (b.Age == 0 || s.Age <= b.Age) && (b.Refused == 0 || s.Refused <= b.Refused) && (b.KV == 0 || !s.Waits || s.KV <= b.KV)
}

// Step is when a tier is entered, from the one below it, and when it is left.
type Step struct {
	Enter Bounds // one of them reached
	Exit  Bounds // none of them exceeded
}

// Policy is how a pool's ladder climbs and what its tiers do. The zero value is off.
type Policy struct {
	Mode Mode
	Top  Tier // the highest that it climbs to of itself; an operator's pin may be higher

	Steps [NumTiers]Step // by tier; of None nothing is read

	// Rise is how long a signal must be beyond its bound before each step up, and the
	// least that lies between two.
	Rise time.Duration
	// Hold is how long all signals must be within the bounds before each step down, and
	// the least time on the rung that is left. It doubles each time that a rung has to be
	// entered again within MaxHold, to MaxHold at most.
	Hold    time.Duration
	MaxHold time.Duration

	Output sluice.Tokens // Clamp: most of one answer
	Input  sluice.Tokens // Context: most input of one request
}

// Defaults of a Policy.
const (
	DefaultRise                  = 3 * time.Second
	DefaultHold                  = 30 * time.Second
	DefaultMaxHold               = 8 * time.Minute
	DefaultOutput  sluice.Tokens = 1024
	DefaultInput   sluice.Tokens = 32_768
)

// DefaultStep is when any tier is entered and left that says nothing else.
func DefaultStep() Step {
	return Step{
		Enter: Bounds{Age: 2 * time.Second, KV: 970, Refused: 50},
		Exit:  Bounds{Age: 500 * time.Millisecond, KV: 850, Refused: 10},
	}
}

// Default is the policy of a pool that says nothing but its mode.
func Default(m Mode) Policy {
	p := Policy{
		Mode: m, Top: Shed, Rise: DefaultRise, Hold: DefaultHold, MaxHold: DefaultMaxHold,
		Output: DefaultOutput, Input: DefaultInput,
	}
	for t := Clamp; t < NumTiers; t++ {
		p.Steps[t] = DefaultStep()
	}
	return p
}

// Ranges of a Policy.
const (
	MinDwell = 250 * time.Millisecond // of Rise and Hold
	MaxDwell = time.Hour              // of MaxHold
	whole    = 1000
)

// Validate reports what of a policy cannot be put into force.
func (p *Policy) Validate() error {
	if p.Mode == Off {
		return nil
	}
	var errs []error
	if p.Mode >= NumModes || p.Top >= NumTiers {
		errs = append(errs, errors.New("the mode or the highest tier is unknown"))
	}
	if p.Rise < MinDwell || p.Hold < MinDwell || p.MaxHold < p.Hold || p.MaxHold > MaxDwell || p.Rise > MaxDwell {
		errs = append(errs, fmt.Errorf("the ladder rises after %v and holds for %v to %v: use %v to %v, the last no less than the second", p.Rise, p.Hold, p.MaxHold, MinDwell, MaxDwell))
	}
	if p.Output < 1 || p.Input < 1 {
		errs = append(errs, errors.New("the bounds of output and input are to be positive"))
	}
	for t := Clamp; t < NumTiers; t++ {
		if err := p.Steps[t].validate(); err != nil {
			errs = append(errs, fmt.Errorf("tier %s: %w", t, err))
		}
	}
	return errors.Join(errs...)
}

// validate holds entry and exit apart: without a gap between them a signal that stands
// still would move the ladder to and fro.
func (s *Step) validate() error {
	e, x := &s.Enter, &s.Exit
	if *e == (Bounds{}) {
		return errors.New("nothing makes it begin: name a bound of age, kv or refused")
	}
	for _, b := range []struct {
		what      string
		enter, at int64
		most      int64
	}{
		{"age", int64(e.Age), int64(x.Age), int64(MaxDwell)},
		{"kv", e.KV, x.KV, whole},
		{"refused", e.Refused, x.Refused, whole},
	} {
		switch {
		case b.enter < 0 || b.at < 0 || b.enter > b.most:
			return fmt.Errorf("%s is out of range", b.what)
		case b.enter == 0 && b.at > 0, b.enter > 0 && b.at == 0, b.enter > 0 && b.at >= b.enter:
			return fmt.Errorf("%s has to end at less than it begins at, and both or neither have to be named", b.what)
		}
	}
	return nil
}
