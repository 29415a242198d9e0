package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"sluice"
)

// Domain is GPUs that fail together, and in which all of a replica has to be: a node
// or a rack.
type Domain struct {
	Name string `json:"name" jsonschema:"what it is called"`
	GPUs int64  `json:"gpus" jsonschema:"its GPUs"`
}

// Standing is a replica that runs.
type Standing struct {
	Backend string `json:"backend" jsonschema:"its name in the gateway's configuration"`
	Model   string `json:"model" jsonschema:"which of models it serves"`
	Domain  string `json:"domain,omitempty" jsonschema:"where it runs; the only domain, if there is one"`
}

// Bounds of moves.
const (
	DefaultMoves   = 8    // backends that are drained
	DefaultHorizon = 3600 // seconds
	MaxMoves       = 256
	MaxDomains     = 256
)

// Ways is what stands where, and how much may be moved.
type Ways struct {
	Domains []Domain // none is one that has all GPUs
	Current []Standing
	Fresh   bool  // nothing stands: Current says nothing
	Most    int64 // backends that are drained at most; 0 is DefaultMoves
	Horizon Span  // within which a move has to pay for itself; 0 is DefaultHorizon
}

// Move is one step: backends are drained and, when they are empty, one replica is
// started on their GPUs.
type Move struct {
	Drain       []Standing
	Model       string // of the replica that starts
	Profile     string
	GPUs        int64
	Domain      string
	DrainWithin Amount // seconds: at most, until what runs there has ended
	Start       Amount // seconds, until the replica serves
	// Satisfied, as Allocation.Satisfied: before, while it is done, and then.
	Before, During, After Amount
	PaysIn                Amount // seconds from then on, until what was lost is made good
}

// Kept is replicas of the wanted allocation that are not moved to.
type Kept struct {
	Model    string
	Replicas int64
	Why      string
}

// The reasons of Kept.
const (
	KeptSmall    = "no domain has that many GPUs together"
	KeptMost     = "more backends would be drained than may be"
	KeptNoProfit = "it does not pay for itself within the horizon"
)

// Spread is the replicas of a model in one domain.
type Spread struct {
	Model, Domain string
	Replicas      int64
}

// Moves is the way from what stands to what is wanted.
type Moves struct {
	Steps  []Move
	Kept   []Kept
	Spread []Spread // in the end, by model and domain
}

// mover plans moves.
type mover struct {
	claims  []Claim
	items   []item
	want    []int64
	have    [][]int64 // replicas by model and domain
	free    []int64   // GPUs by domain
	stands  []Standing
	domains []Domain
	w       Ways
	drained int64
}

// PlanMoves finds steps from what stands to an allocation of the same claims. One after
// the other, each drains what is in the way of one more replica and starts that: of all
// that are possible the one that gains most within the horizon,
//
//	gain  = (after − before) · (horizon − T) − (before − during) · T      T = drain + start
//
// of the satisfied demand, and none that gains nothing: an allocation that is hardly
// better stays a wish. A model gives away only what it has beyond the allocation and
// its minimum, so that it never has less than it ends with; one step ends before the next
// begins. Among equals a replica goes to the domain that has fewest of its model. What
// stands keeps its place and its size.
//
// The claims are those of the allocation, in the same order.
func PlanMoves(claims []Claim, a *Allocation, w Ways) (Moves, error) {
	m := mover{claims: slices.Clone(claims), w: w, domains: w.Domains, stands: slices.Clone(w.Current)}
	if m.w.Most == 0 {
		m.w.Most = DefaultMoves
	}
	if m.w.Horizon.Sign() == 0 {
		m.w.Horizon.Amount = Int(DefaultHorizon)
	}
	if len(m.domains) == 0 {
		m.domains = []Domain{{GPUs: a.GPUs}}
	}
	for i := range a.Models {
		m.want = append(m.want, a.Models[i].Replicas)
		for _, r := range claims[i].Or {
			if r.Name == a.Models[i].Profile {
				m.claims[i].Replica = r
			}
		}
	}
	var err error
	if m.items, err = itemsOf(a.GPUs, m.claims); err != nil {
		return Moves{}, err
	}
	if err := m.stand(); err != nil {
		return Moves{}, err
	}
	return m.plan(), nil
}

// stand puts what runs in its place.
func (m *mover) stand() error {
	for range m.claims {
		m.have = append(m.have, make([]int64, len(m.domains)))
	}
	for _, d := range m.domains {
		m.free = append(m.free, d.GPUs)
	}
	for i, s := range m.stands {
		model, domain := m.model(s.Model), m.domain(s.Domain)
		at := fmt.Sprintf("current[%d]", i)
		switch {
		case model < 0:
			return sluice.Invalid(at+".model", "names %q, which is not one of models", s.Model)
		case domain < 0:
			return sluice.Invalid(at+".domain", "names %q, which is not one of domains", s.Domain)
		}
		m.have[model][domain]++
		if m.free[domain] -= m.claims[model].Replica.GPUs; m.free[domain] < 0 {
			return sluice.Invalid(at+".domain", "has more replicas than GPUs: %d are too few", m.domains[domain].GPUs)
		}
	}
	return nil
}

func (m *mover) model(name string) int {
	return slices.IndexFunc(m.claims, func(c Claim) bool { return c.Name == name })
}

func (m *mover) domain(name string) int {
	if name == "" && len(m.domains) == 1 {
		return 0
	}
	return slices.IndexFunc(m.domains, func(d Domain) bool { return d.Name == name })
}

// count is the replicas of a model.
func (m *mover) count(model int) (n int64) {
	for _, k := range m.have[model] {
		n += k
	}
	return n
}

// surplus is what a model may give away.
func (m *mover) surplus(model int) int64 {
	return max(0, m.count(model)-max(m.want[model], m.claims[model].Min))
}

// satisfied is what so many replicas of each model satisfy, by weight.
func (m *mover) satisfied(n []int64) Amount {
	var sum, weights Amount
	for i := range m.items {
		it, weight := &m.items[i], Int(max(m.claims[i].Weight, 1))
		part := Int(1)
		if it.load.Sign() > 0 {
			part = Min(part, it.ratio(n[i]))
		}
		sum, weights = sum.Plus(weight.Times(part)), weights.Plus(weight)
	}
	return sum.Over(weights)
}

func (m *mover) counts() (n []int64) {
	for i := range m.claims {
		n = append(n, m.count(i))
	}
	return n
}

func (m *mover) plan() (out Moves) {
	for {
		best, _, _ := m.best()
		if best == nil {
			break
		}
		m.make(best)
		out.Steps = append(out.Steps, *best)
	}
	for i := range m.claims {
		if lacks := m.want[i] - m.count(i); lacks > 0 {
			_, _, why := m.bestOf(i)
			out.Kept = append(out.Kept, Kept{m.claims[i].Name, lacks, why})
		}
		for d, n := range m.have[i] {
			if n > 0 {
				out.Spread = append(out.Spread, Spread{m.claims[i].Name, m.domains[d].Name, n})
			}
		}
	}
	return out
}

// best is the move that gains most, nil if none does. What takes no GPU from another
// comes before all that does, the largest replicas first, for which it is hardest to
// find room.
func (m *mover) best() (best *Move, gain Amount, free bool) {
	for i := range m.claims {
		if m.count(i) >= m.want[i] {
			continue
		}
		move, g, _ := m.bestOf(i)
		if move == nil {
			continue
		}
		idle := len(move.Drain) == 0
		better := best == nil || idle && !free
		if best != nil && idle == free {
			if better = g.Cmp(gain) > 0; idle {
				better = move.GPUs > best.GPUs || move.GPUs == best.GPUs && better
			}
		}
		if better {
			best, gain, free = move, g, idle
		}
	}
	return best, gain, free
}

// bestOf is the best move that starts a replica of a model, and why there is none.
func (m *mover) bestOf(model int) (best *Move, gain Amount, why string) {
	why = KeptSmall
	size := m.claims[model].Replica.GPUs
	for d := range m.domains {
		victims, ok := m.victims(d, size-m.free[d])
		switch {
		case !ok:
			continue
		case m.drained+int64(len(victims)) > m.w.Most:
			why = KeptMost
			continue
		}
		move := m.move(model, d, victims)
		g, pays := m.gain(model, &move)
		if !pays {
			if why == KeptSmall {
				why = KeptNoProfit
			}
			continue
		}
		fewer := best != nil && m.have[model][d] < m.have[model][m.domain(best.Domain)]
		if best == nil || g.Cmp(gain) > 0 || g.Equal(gain) && fewer {
			best, gain = &move, g
		}
	}
	return best, gain, why
}

// gain is what a move is worth within the horizon. A model that has less than its
// minimum gets that whatever it costs, and what runs nowhere costs nothing.
func (m *mover) gain(model int, move *Move) (Amount, bool) {
	took := move.DrainWithin.Plus(move.Start)
	lost, won := move.Before.Minus(move.During).Times(took), move.After.Minus(move.Before)
	g := won.Times(m.w.Horizon.Minus(took)).Minus(lost)
	if won.Sign() > 0 {
		move.PaysIn = lost.Over(won)
	}
	must := m.count(model) < m.claims[model].Min || m.w.Fresh
	return g, must || won.Sign() > 0 && g.Sign() > 0
}

// victims are the backends of a domain to drain for so many GPUs: of the model that has
// most to spare first, and of those the last ones.
func (m *mover) victims(domain int, gpus int64) (out []int, ok bool) {
	if gpus <= 0 {
		return nil, true
	}
	spare := make([]int64, len(m.claims))
	var may []int
	for k, s := range m.stands {
		if i := m.model(s.Model); m.domain(s.Domain) == domain && m.surplus(i) > 0 {
			spare[i] = m.surplus(i)
			may = append(may, k)
		}
	}
	ratio := func(k int) Amount {
		i := m.model(m.stands[k].Model)
		return m.items[i].ratio(m.count(i))
	}
	idle := func(k int) int { // nothing is asked of it
		if m.items[m.model(m.stands[k].Model)].load.Sign() == 0 {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(may, func(a, b int) int {
		return cmp.Or(cmp.Compare(idle(a), idle(b)), ratio(b).Cmp(ratio(a)), cmp.Compare(b, a))
	})
	for _, k := range may {
		if i := m.model(m.stands[k].Model); gpus > 0 && spare[i] > 0 {
			spare[i]--
			gpus -= m.claims[i].Replica.GPUs
			out = append(out, k)
		}
	}
	if gpus > 0 {
		return nil, false
	}
	for n := len(out) - 1; n >= 0; n-- { // those that a later, larger one made needless
		if size := m.claims[m.model(m.stands[out[n]].Model)].Replica.GPUs; size <= -gpus {
			gpus += size
			out = slices.Delete(out, n, n+1)
		}
	}
	return out, true
}

// move is the step that drains some backends and starts a replica.
func (m *mover) move(model, domain int, victims []int) Move {
	c := &m.claims[model]
	out := Move{Model: c.Name, Profile: c.Replica.Name, GPUs: c.Replica.GPUs, Domain: m.domains[domain].Name, Start: c.start()}
	n := m.counts()
	out.Before = m.satisfied(n)
	for _, k := range victims {
		s := m.stands[k]
		i := m.model(s.Model)
		n[i]--
		out.Drain = append(out.Drain, s)
		out.DrainWithin = Max(out.DrainWithin, m.items[i].lasts())
	}
	out.During = m.satisfied(n)
	n[model]++
	out.After = m.satisfied(n)
	return out
}

// lasts is how long the longest answer of a model takes on a full batch between whose
// steps its prompts are prefilled.
func (it *item) lasts() Amount {
	if it.load.Sign() == 0 {
		return Amount{}
	}
	var longest Amount
	for _, w := range it.claim.Workloads {
		if o, err := w.Output.moments(); err == nil {
			longest = Max(longest, o.longest)
		}
	}
	e := it.claim.Replica.engineFor(it.demand)
	u, _, _ := e.demandOn(it.demand)
	prefill := Min(u.Prefill.Over(u.Engine).Times(it.target), Ratio(9, 10))
	return longest.Times(e.step(Int(e.batch))).Over(Int(1).Minus(prefill))
}

// make carries a move out.
func (m *mover) make(move *Move) {
	for _, s := range move.Drain {
		i, d := m.model(s.Model), m.domain(s.Domain)
		m.have[i][d]--
		m.free[d] += m.claims[i].Replica.GPUs
		m.stands = slices.DeleteFunc(m.stands, func(o Standing) bool { return o == s })
		m.drained++
	}
	i, d := m.model(move.Model), m.domain(move.Domain)
	m.have[i][d]++
	m.free[d] -= move.GPUs
}
