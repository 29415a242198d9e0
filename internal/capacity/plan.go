package capacity

import (
	"strconv"

	"sluice"
)

// Binding is the dimension that is used most, and so is used up first.
type Binding string

// The dimensions.
const (
	Prefill Binding = "prefill"
	Decode  Binding = "decode"
	KV      Binding = "kv"
)

// Question is what to plan.
type Question struct {
	Workloads []Workload
	Replica   Replica
	GPUs      int64 // of the fleet; 0 asks for as many as are needed
	Lose      Share // of the GPUs, that may fail together; below 1
	Target    Share // of the engine's time that may be planned for; 0 is all of it
}

// MaxGPUs bounds a fleet.
const MaxGPUs = 1_000_000

// Plan is the answer.
type Plan struct {
	Replica Replica
	Assumed bool // GPUs was not given and is what is needed
	Target  Amount
	State
	Lost *State // the same without the share that is lost; nil if none is
	Lose Amount
}

// State is a demand on a fleet.
type State struct {
	Demand   Demand
	GPUs     int64 // that serve
	Replicas int64 // that they make
	Batch    int64 // most requests in the batch of a replica
	Tight    bool  // its memory bounds the batch, not its slots

	// Supply of the fleet: tokens per second of inputs and outputs of these
	// lengths, and tokens of memory (0: unbounded).
	SupplyPrefill, SupplyDecode, SupplyKV Amount

	KVUsed Amount // tokens in memory by Little's law, of a full batch
	KVHeld Amount // with the room that is kept for answers under way

	Utilisation Utilisation // meaningless where there is no replica
	Binding     Binding
	Over        bool     // more is asked for than the target allows
	Factor      Amount   // the demand may be this many times what it is
	Spare       Amount   // requests per second that would still fit; 0 when over
	GPUsNeeded  int64    // to install
	Expected    Expected // of one replica, unless over
}

// Solve answers the question. The error names the field that cannot be.
func Solve(q Question) (Plan, error) {
	if err := q.check(); err != nil {
		return Plan{}, err
	}
	d, err := Total(q.Workloads)
	if err != nil {
		return Plan{}, err
	}
	target := q.Target.Amount
	if target.Sign() == 0 {
		target = Int(1)
	}
	need, err := q.Replica.needed(d, target)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Replica: q.Replica, Target: target, Lose: q.Lose.Amount, Assumed: q.GPUs == 0}
	gpus := q.GPUs
	if gpus == 0 {
		gpus = need * q.Replica.GPUs
	}
	p.State = q.Replica.state(d, gpus, target)
	p.GPUsNeeded = need * q.Replica.GPUs
	if q.Lose.Sign() == 0 {
		return p, nil
	}
	cold := make([]Workload, len(q.Workloads))
	for i, w := range q.Workloads {
		cold[i] = w.colder(q.Lose.Amount)
	}
	if d, err = Total(cold); err != nil {
		return Plan{}, err
	}
	if need, err = q.Replica.needed(d, target); err != nil {
		return Plan{}, err
	}
	s := q.Replica.state(d, gpus-gone(gpus, q.Lose.Amount), target)
	s.GPUsNeeded = q.Replica.survivors(need, q.Lose.Amount)
	p.Lost = &s
	return p, nil
}

func (q Question) check() error {
	switch {
	case q.Replica.GPUs < 1:
		return sluice.Invalid("profile", "has no GPU")
	case q.GPUs < 0 || q.GPUs > MaxGPUs:
		return sluice.Invalid("gpus", "is not between 1 and %d", MaxGPUs)
	case q.GPUs > 0 && q.GPUs < q.Replica.GPUs:
		e := sluice.Invalid("gpus", "is less than one replica of %s needs", q.Replica.Name)
		e.Hint = "give at least " + strconv.FormatInt(q.Replica.GPUs, 10)
		return e
	case q.Lose.Cmp(Int(1)) >= 0:
		e := sluice.Invalid("lose", "is the whole fleet")
		e.Hint = "write a share below 100%, such as 25%"
		return e
	}
	for i, w := range q.Workloads {
		if err := w.check(); err != nil {
			return atIndex(i, err)
		}
	}
	return nil
}

// check holds a workload to what can be.
func (w Workload) check() error {
	switch {
	case w.Rate.Sign() < 0:
		return sluice.Invalid("rps", "is negative")
	case w.Input.none() && w.Output.none():
		e := sluice.Invalid("input", "is missing, and so is output")
		e.Hint = "say how many tokens a request has: input 2000, output 300"
		return e
	}
	return nil
}

// atIndex puts the place in a list before the field of an error.
func atIndex(i int, err error) error {
	e := *sluice.AsError(err)
	e.Param = "[" + strconv.Itoa(i) + "]." + e.Param
	return &e
}

// gone is how many GPUs a share is, rounded up.
func gone(gpus int64, share Amount) int64 { return Int(gpus).Times(share).Ceil() }

// needed is how many replicas a demand needs, at least 1.
func (r Replica) needed(d Demand, target Amount) (int64, error) {
	e := r.engineFor(d)
	if e.batch < 1 {
		err := sluice.Invalid("input", "and output of %s tokens, weighted by how long a request stays, do not fit into the %d tokens of a replica of %s", e.whole.Text(0), r.Profile.KVCapacity, r.Name)
		err.Hint = "shorten the requests, or take a profile with more memory"
		return 0, err
	}
	u, _, _ := e.demandOn(d)
	n := max(u.Engine.Over(target).Ceil(), 1)
	if n > MaxGPUs/r.GPUs {
		err := sluice.Invalid("rps", "needs more than %d GPUs", MaxGPUs)
		err.Hint = "is the rate per second what you mean? 20/min is twenty per minute"
		return 0, err
	}
	return n, nil
}

// survivors is how many GPUs to install so that without a share of them there
// are still as many replicas as are needed.
func (r Replica) survivors(need int64, lose Amount) int64 {
	n := max(need, Int(need).Over(Int(1).Minus(lose)).Floor()-1)
	for ; ; n++ {
		gpus := n * r.GPUs
		if (gpus-gone(gpus, lose))/r.GPUs >= need {
			return gpus
		}
	}
}

// state puts a demand on so many GPUs.
func (r Replica) state(d Demand, gpus int64, target Amount) State {
	n := gpus / r.GPUs
	e := r.engineFor(d)
	s := State{Demand: d, GPUs: gpus, Replicas: n, Batch: e.batch, Tight: e.tight}
	all := Int(n)
	s.SupplyPrefill = d.Prefill.Over(e.busy(d)).Times(all)
	if d.Prefill.Sign() == 0 {
		s.SupplyPrefill = all.Over(e.token)
	}
	s.SupplyDecode, s.SupplyKV = e.decode().Times(all), e.memory.Times(all)
	whole, used, held := e.demandOn(d)
	s.KVUsed, s.KVHeld = used, held
	s.Binding = whole.binding()
	if n == 0 {
		s.Over = whole.Engine.Sign() > 0
		return s
	}
	one := d.Times(Ratio(1, n))
	u, _, _ := e.demandOn(one)
	s.Utilisation = u
	s.Over = u.Engine.Cmp(target) > 0
	s.Factor = target.Over(u.Engine)
	if !s.Over {
		s.Spare = d.Requests.Times(s.Factor.Minus(Int(1)))
		s.Expected = e.expect(one, u)
	}
	return s
}

// binding is the dimension that is used most.
func (u Utilisation) binding() Binding {
	b, most := Prefill, u.Prefill
	if u.Decode.Cmp(most) > 0 {
		b, most = Decode, u.Decode
	}
	if u.KV.Cmp(most) > 0 {
		b = KV
	}
	return b
}
