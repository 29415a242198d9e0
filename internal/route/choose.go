package route

import (
	"math"
	"math/bits"
	"time"

	"sluice"
)

// DefaultPrefillRate is what a backend is taken to prefill in a second where nobody
// says.
const DefaultPrefillRate = 10_000

// fullCost is what a backend whose slots are all used costs more than an idle one, and
// what one does whose memory is.
const fullCost = time.Second

// Chooser chooses among the places of one pool, and remembers what the rule needs.
// The zero value chooses by load.
type Chooser struct {
	rule     Choice
	affinity Affinity
	places   []*Place
	slots    []int // of places, in the index
	weights  int64 // of all places

	index   index
	tenants tenures
	counts  ChoiceCounts

	// Of the last Choose.
	asked  bool
	stay   Stay
	tenant *tenure
	common int
	found  []int32 // by slot: leading blocks held
	notes  []Note  // by place
}

// Note is what a choice found of one place.
type Note struct {
	Cached sluice.Tokens // of the input, believed to be held there
	Cost   time.Duration // until it would have started there, with what else counts; 0 if it was not looked at
	Kept   bool          // it holds the request's own prefix, not only what nearly all have in common
	Spent  bool          // so it does, but its tenant's quantum there is used up
}

// Configure puts a rule and its places into force. What is remembered of places that
// stay is kept.
func (c *Chooser) Configure(rule Choice, a Affinity, places []*Place) {
	c.rule, c.affinity, c.places, c.asked = rule, a.WithDefaults(), places, false
	c.notes = make([]Note, len(places))
	c.slots = make([]int, len(places))
	c.weights = 0
	for _, p := range places {
		c.weights += p.Backend.Weight
	}
	if !rule.Prefixed() {
		c.index, c.tenants, c.found = index{}, tenures{}, nil
		return
	}
	before := append([]*Place(nil), c.index.slots...)
	room := c.affinity.Memory - int64(MaxAffineTenants)*(tenureBytes+8*int64(len(places)))
	c.index.configure(places, max(room, MinMemory/4), c.affinity.BlockTokens)
	for i, p := range before {
		if p != nil && i < len(c.index.slots) && c.index.slots[i] != p {
			c.tenants.leave(i)
		}
	}
	for i, p := range places {
		c.slots[i] = c.index.slot(p)
	}
	c.found = make([]int32, len(c.index.slots))
}

// Asks reports whether the rule looks at what it chooses for, sessions aside.
func (c *Chooser) Asks() bool { return c.rule != ByLoad && c.rule != ByTurn }

// Rule is the one in force.
func (c *Chooser) Rule() Choice { return c.rule }

// Choose is the index of the best of the places for which left is Chosen, -1 if there
// is none. left has one word for each place; those of the others that could have
// served become LeftOther. A session is kept where it was: rules that follow prefixes
// remember where, and draw it there as a prefix does; with Asking.Sticky those by load
// and cost keep it where its hash says, unless that one has no room or too much to do.
func (c *Chooser) Choose(now time.Time, left []Left, a *Asking) int {
	c.stay = StayNone
	session := c.look(left, a)
	best := -1
	switch {
	case c.hashed(a):
		best = c.home(left, a)
	case c.rule == ByCost || c.rule == ByAffinity:
		best = c.cheapest(now, left, a)
	default:
		best = c.least(left)
	}
	if session != nil && best >= 0 {
		c.stay = StayLeft
		if session.has(c.slots[best]) {
			c.stay = StayKept
		}
	}
	for i := range left {
		if i != best && left[i] == Chosen {
			left[i] = LeftOther
		}
	}
	return best
}

// least is the first by turn, by what is held of the prompt, or by load.
func (c *Chooser) least(left []Left) int {
	best := -1
	for i, p := range c.places {
		if left[i] != Chosen {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		q, less := c.places[best], false
		switch {
		case c.rule == ByTurn:
			less = p.turn < q.turn
		case c.rule == ByMatch && c.notes[i].Cached != c.notes[best].Cached:
			less = c.notes[i].Cached > c.notes[best].Cached
		default:
			less = p.less(q)
		}
		if less {
			best = i
		}
	}
	return best
}

// look finds what each place holds of a prompt. It returns the place that its session
// was at, nil if none is remembered.
func (c *Chooser) look(left []Left, a *Asking) (session *set) {
	if !c.Asks() {
		return nil
	}
	clear(c.notes)
	c.asked = c.rule.Prefixed()
	if !c.asked {
		return nil
	}
	c.tenant = c.tenants.get(a.Tenant, len(c.index.slots))
	c.common = c.tenant.common(a.Prefix.Blocks)
	c.index.match(a.Prefix.Blocks, c.tenant.salt, c.found)
	if a.Session != 0 {
		session = c.index.holders(uint64(a.Session), c.tenant.salt)
	}
	floor := int64(math.MaxInt64)
	for i, slot := range c.slots {
		if left[i] == Chosen {
			floor = min(floor, c.tenant.given[slot])
		}
	}
	for i, slot := range c.slots {
		if g := &c.tenant.given[slot]; left[i] != Chosen && floor < math.MaxInt64 {
			*g = max(*g, floor) // what cannot take it has nothing to make up for
		}
		n := int(c.found[slot])
		if n == 0 && session == nil {
			continue
		}
		note := &c.notes[i]
		note.Cached = a.tokens(n)
		if n > c.common || session.has(slot) {
			note.Spent = c.tenant.given[slot]-floor >= int64(c.affinity.Quantum)
			note.Kept = !note.Spent
		}
	}
	return session
}

// cheapest is the place of least cost among two at random and, by affinity, those
// that hold something of the request's own. Between equals the turn decides.
func (c *Chooser) cheapest(now time.Time, left []Left, a *Asking) int {
	most, all := int64(0), int64(0)
	for i, p := range c.places {
		if left[i] == Chosen {
			most = max(most, p.Backend.Weight)
			all += p.Backend.Weight
		}
	}
	if all == 0 {
		return -1
	}
	seed := a.seed()
	first := c.draw(left, mix(seed), all, -1)
	second := -1
	if rest := all - c.places[first].Backend.Weight; rest > 0 {
		second = c.draw(left, mix(seed+1), rest, first)
	}
	best := -1
	for i := range c.places {
		if left[i] != Chosen || i != first && i != second && !c.notes[i].Kept {
			continue
		}
		c.notes[i].Cost = c.cost(now, i, most, a)
		if best < 0 || c.before(i, best) {
			best = i
		}
	}
	return best
}

// draw is a place by weight, never but.
func (c *Chooser) draw(left []Left, x uint64, weights int64, but int) int {
	hi, _ := bits.Mul64(x, uint64(weights))
	at := int64(hi)
	for i, p := range c.places {
		if left[i] != Chosen || i == but {
			continue
		}
		if at -= p.Backend.Weight; at < 0 {
			return i
		}
	}
	return -1
}

// before orders places by cost, less what may be waited for where a prefix is, then
// by turn.
func (c *Chooser) before(i, j int) bool {
	ci, cj := c.notes[i].Cost-c.stick(i), c.notes[j].Cost-c.stick(j)
	if ci != cj {
		return ci < cj
	}
	if c.asked {
		if gi, gj := c.tenant.given[c.slots[i]], c.tenant.given[c.slots[j]]; gi != gj {
			return gi < gj
		}
	}
	return c.places[i].turn < c.places[j].turn
}

// stick is how much later a request may start at a place than elsewhere.
func (c *Chooser) stick(i int) time.Duration {
	if !c.notes[i].Kept {
		return 0
	}
	return max(c.affinity.Stick, 0)
}

// cost is how long it would be until the request had been prefilled there, and what
// its slots and memory in use are worth in time.
func (c *Chooser) cost(now time.Time, i int, most int64, a *Asking) time.Duration {
	p := c.places[i]
	credit := c.credit(i, a)
	rate := p.Backend.Capacity.PrefillRate
	if rate <= 0 {
		rate = DefaultPrefillRate
	}
	load := spread(int64(p.prefill), int64(time.Second), rate)
	if slots := p.Slots(); slots > 0 {
		load += spread(p.running, int64(fullCost), slots)
	}
	if kv := p.KVCapacity(); kv > 0 {
		if over := int64(p.KVUsed(now)+a.KV-credit) - int64(kv)/5*4; over > 0 {
			load += spread(over, int64(fullCost), max(int64(kv)/5, 1))
		}
	}
	if w := max(p.Backend.Weight, 1); w != most {
		load = spread(load, most, w)
	}
	return time.Duration(max(1, load+spread(int64(a.Input-credit), int64(time.Second), rate)))
}

// credit is the input that need not be computed at place i, as far as it is to draw the
// request there: of what nearly all prompts of the tenant begin with, that is the same
// everywhere, and of the rest nothing once its quantum is used up.
func (c *Chooser) credit(i int, a *Asking) sluice.Tokens {
	if !c.asked {
		return 0
	}
	common := a.tokens(c.common)
	if !c.notes[i].Kept {
		return common
	}
	return max(common, c.notes[i].Cached)
}

// spread is n × by ÷ over, at most about a month in nanoseconds.
func spread(n, by, over int64) int64 {
	const most = math.MaxInt64 >> 12
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(by))
	if hi >= uint64(over) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(over))
	return int64(min(q, most))
}

// Took notes that the last request that was asked for goes to place i. It returns what
// of its input is believed to be cached there.
func (c *Chooser) Took(i int, a *Asking) sluice.Tokens {
	if !c.asked || len(a.Prefix.Blocks) == 0 && a.Session == 0 {
		return 0
	}
	slot, x := c.slots[i], c.tenant
	cached := c.notes[i].Cached
	c.count(i)
	w := max(c.places[i].Backend.Weight, 1)
	x.given[slot] += spread(int64(a.Input-cached), c.weights, w*int64(len(c.places)))
	c.index.put(slot, a.Prefix.Blocks, x.salt)
	if a.Session != 0 {
		c.index.move(slot, uint64(a.Session), x.salt)
	}
	x.saw(a.Prefix.Blocks)
	c.counts.Expected += cached
	return cached
}

func (c *Chooser) count(i int) {
	if c.notes[i].Kept {
		c.counts.Warm++
		return
	}
	out := &c.counts.Cold
	for j := range c.places {
		switch {
		case c.notes[j].Spent:
			out = &c.counts.Quantum
		case c.notes[j].Kept && out == &c.counts.Cold:
			out = &c.counts.Saturated
		}
	}
	*out++
}

// Reported takes what a backend told it had read from its cache, of so much input,
// where so much was expected. One that has told of any and holds less than half of
// what was expected has less room than was believed.
func (c *Chooser) Reported(p *Place, expected, read, input sluice.Tokens) {
	if !c.rule.Prefixed() {
		return
	}
	c.counts.Read += read
	c.counts.Told += input
	if slot := c.index.slot(p); slot >= 0 {
		c.index.learn(slot, expected, read)
	}
}

// Lost forgets what a place held: its engine is gone, or came up anew.
func (c *Chooser) Lost(p *Place) {
	if slot := c.index.slot(p); slot >= 0 {
		c.index.drop(slot)
		c.tenants.leave(slot)
	}
}

// Stayed is what the last choice did with its request's session.
func (c *Chooser) Stayed() Stay { return c.stay }

// Note is what the last choice found of place i.
func (c *Chooser) Note(i int) Note {
	if i >= len(c.notes) {
		return Note{}
	}
	return c.notes[i]
}

// seed is what chance is drawn from: it differs between requests, and between attempts
// of one.
func (a *Asking) seed() uint64 {
	h := uint64(14695981039346656037)
	for i := range len(a.ID) {
		h = (h ^ uint64(a.ID[i])) * 1099511628211
	}
	return mix(h + uint64(a.Attempt))
}
