package demand

import "time"

// Policy is how many replicas a pool should have for what is asked of it. The zero
// value is none to say: see WithDefaults.
type Policy struct {
	Target int64         // part of the supply to be used, in thousandths, from 1 to 1000
	Min    int64         // replicas in any case
	Max    int64         // replicas at most; 0 is as many as the pool lists
	Stable time.Duration // how long the demand must have been lower before fewer are desired; negative is not at all
	Batch  bool          // batch asks for replicas too
}

// Defaults of Policy.
const (
	DefaultTarget = 800
	DefaultStable = 5 * time.Minute
)

// WithDefaults fills zero fields. Min stays: 0 lets a pool that nothing is asked of
// have none.
func (p Policy) WithDefaults() Policy {
	if p.Target == 0 {
		p.Target = DefaultTarget
	}
	if p.Stable == 0 {
		p.Stable = DefaultStable
	}
	return p
}

// Replicas is those of a pool.
type Replicas struct {
	Listed  int64 // in the configuration, that may take work
	Serving int64 // of them, now
	Ahead   int64 // that are out and are listed before one that serves
}

// tolerance is the part of the target, in thousandths, that demand has to be below to
// let a replica go.
const tolerance = 900

// Desire is how many replicas a pool should have. ratios is what is asked of the
// replicas that serve, or of one where none does, at the highest of the stabilisation
// window; whole says that all of that window has been seen.
func (p Policy) Desire(r Replicas, ratios *Ratios, found, whole bool) int64 {
	p = p.WithDefaults()
	of := max(r.Serving, 1)
	u := binding(ratios, found)
	up, down := ceilDiv(u, of, p.Target), ceilDiv(u, of, p.Target*tolerance/1000)
	n := r.Serving
	switch {
	case up > n:
		n = up
	case down < n && whole:
		n = down
	}
	n = saturating(n, r.Ahead)
	most := p.Max
	if most == 0 {
		most = r.Listed
	}
	return max(min(n, most), p.Min)
}

// binding is the largest of the ratios that say how many replicas there should be.
// Slots that are found from answers grow where the answers allow it, so that they bind
// only where nothing else is known.
func binding(r *Ratios, found bool) int64 {
	others := max(r[KVTokens], r[Engine])
	if r[Engine] < 0 {
		others = max(others, r[Prefill], r[Decode])
	}
	if found && others >= 0 {
		return others
	}
	return max(others, r[Slots], 0)
}

// ceilDiv is ⌈ millionths · n ÷ thousandths ⌉.
func ceilDiv(u, n, target int64) int64 {
	target = max(target, 1) * 1000
	got := mulDiv(u, n, target)
	if hi := mulDiv(got, target, 1); hi < mulDiv(u, n, 1) {
		got++
	}
	return got
}
