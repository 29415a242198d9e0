package route

import (
	"math/bits"
	"time"

	"sluice"
	"sluice/internal/sched"
)

// Place is one backend and what runs on it. Its identity outlives tables: a new
// table replaces Backend.
type Place struct {
	Backend *Backend
	Health  Health
	Retired bool // no longer in the table: it finishes what it runs

	running int64
	kv      sluice.Tokens
	prefill sluice.Tokens
	turn    uint64

	now   time.Time // the latest moment seen
	base  time.Time // the first: rates count from it, whatever the clock is set to
	tuned *Backend  // what limit and rates are set to
	limit sched.Limit
	rates [NumRates]bucket
	rated bool      // some rate is known
	until time.Time // the earliest that rates have room for something they had none for; zero if nothing was paced since
	load  Load      // as of the last scrape

	retries window // what Retries counts of it
}

// Running is how many attempts run there.
func (p *Place) Running() int64 { return p.running }

// KV is the memory that they are expected to need.
func (p *Place) KV() sluice.Tokens { return p.kv }

// Prefill is the uncached input of those that have not answered yet.
func (p *Place) Prefill() sluice.Tokens { return p.prefill }

// tick takes the time, of which an older moment than the latest counts as that
// one, and a new form of the backend.
func (p *Place) tick(now time.Time) time.Time {
	if now.After(p.now) {
		p.now = now
	}
	if p.tuned != p.Backend {
		p.tune()
	}
	return p.now
}

// since is a moment in nanoseconds from the first one that was seen.
func (p *Place) since(t time.Time) int64 {
	if p.base.IsZero() {
		p.base = p.now
	}
	if p.base.IsZero() {
		return 0
	}
	return int64(t.Sub(p.base))
}

// tune puts the backend's capacity into force. What is learnt and owed stays.
func (p *Place) tune() {
	c := p.Backend.Capacity
	p.limit.SetBounds(c.bounds())
	for r, amount := range c.Rates {
		b := &p.rates[r]
		switch {
		case amount > 0 && b.amount == 0:
			*b = bucket{amount: amount, period: minute, level: amount, at: p.since(p.now)}
		case amount > 0:
			b.learnt = false
			b.set(amount, minute)
		case !b.learnt:
			*b = bucket{}
		}
	}
	p.known()
	p.tuned = p.Backend
}

// known notes whether some rate is.
func (p *Place) known() {
	p.rated = false
	for r := range p.rates {
		p.rated = p.rated || p.rates[r].amount > 0
	}
}

// Rated reports whether some rate of the backend's provider is known.
func (p *Place) Rated() bool {
	p.tick(p.now)
	return p.rated
}

// Slots is how many attempts the backend takes at a time as of the latest moment:
// its configured concurrency, or what is found to be good for it.
func (p *Place) Slots() int64 {
	p.tick(p.now)
	return p.slots()
}

func (p *Place) slots() int64 {
	return p.load.slots(p.now, p.limit.Value(), p.limit.Adaptive())
}

// Adaptive reports whether the slots are found from the answers, and the objective
// for the time of a token, 0 while it is not known.
func (p *Place) Adaptive() (adaptive bool, token time.Duration) {
	p.tick(p.now)
	if !p.limit.Adaptive() {
		return false, 0
	}
	return true, p.limit.Objective()
}

// Told is the used share of its memory as the engine told last, and how long ago; -1
// if it does not tell.
func (p *Place) Told(now time.Time) (kvPermille int64, age time.Duration) {
	if p.load.At.IsZero() {
		return -1, 0
	}
	return p.load.KVPermille, p.tick(now).Sub(p.load.At)
}

// Share is the slots that the pool has of the backend: none while it is not fit
// to be used.
func (p *Place) Share(now time.Time) int64 {
	p.tick(now)
	if p.Retired || p.Backend.Weight <= 0 || !p.Health.Usable(now) {
		return 0
	}
	return p.Slots()
}

// KVCapacity is the backend's memory in tokens: configured, else what the engine
// told; 0 if it is not known.
func (p *Place) KVCapacity() sluice.Tokens {
	if kv := p.Backend.Capacity.KVTokens; kv > 0 {
		return kv
	}
	return p.load.KVCapacity
}

// Open reports whether the place has a slot and is fit to be used, whatever the
// request.
func (p *Place) Open(now time.Time) bool {
	now = p.tick(now)
	return p.running < p.slots() && p.Backend.Weight > 0 && p.Health.Usable(now) && !p.paced(&[NumRates]int64{1, 1, 1, 1})
}

// Usable tells why the place cannot take a request now, Chosen if it can.
func (p *Place) Usable(now time.Time, n Need) Left {
	now = p.tick(now)
	if !p.Health.Usable(now) {
		return LeftUnhealthy
	}
	c, kv := &p.Backend.Capacity, p.KVCapacity()
	n.within(kv, c.PrefillTokens)
	if p.running >= p.slots() ||
		kv > 0 && p.KVUsed(now)+n.KV > kv && p.running > 0 ||
		c.PrefillTokens > 0 && p.prefill+n.Prefill > c.PrefillTokens {
		return LeftFull
	}
	if p.rated {
		if amounts := n.amounts(); p.paced(&amounts) {
			return LeftPaced
		}
	}
	return Chosen
}

// KVUsed is the memory in use: what we reckon, or what the engine told of late if
// that is more, since others may use it too.
func (p *Place) KVUsed(now time.Time) sluice.Tokens {
	return max(p.kv, p.load.kv(now, p.KVCapacity()))
}

// paced reports whether some rate does not have its amount now, and remembers
// when all of them will.
func (p *Place) paced(amounts *[NumRates]int64) bool {
	if !p.rated {
		return false
	}
	now := p.since(p.now)
	at := p.fitsAt(now, amounts)
	if at <= now {
		return false
	}
	if until := p.now.Add(time.Duration(at - now)); !p.until.After(p.now) || until.Before(p.until) {
		p.until = until
	}
	return true
}

func (p *Place) fitsAt(now int64, amounts *[NumRates]int64) int64 {
	at := now
	for r := range p.rates {
		b := &p.rates[r]
		if b.amount == 0 {
			continue
		}
		b.refill(now)
		at = max(at, b.fitsAt(amounts[r]))
	}
	return at
}

// PacedUntil is when the rates have room for something that Open or Usable turned
// away for them; false if there is no such thing.
func (p *Place) PacedUntil(now time.Time) (time.Time, bool) {
	return p.until, p.until.After(p.tick(now))
}

// RoomAt is when the provider's rates have what a request needs, if nothing else
// happens: now, if they do not stand in its way.
func (p *Place) RoomAt(now time.Time, n Need) time.Time {
	p.tick(now)
	amounts := n.amounts()
	return p.now.Add(time.Duration(p.fitsAt(p.since(p.now), &amounts) - p.since(p.now)))
}

// Take puts an attempt there and returns what it takes, to be given to Progressed,
// Answered and Give.
func (p *Place) Take(now time.Time, n Need) Taken {
	now = p.tick(now)
	t := Taken{Need: n}
	t.within(p.KVCapacity(), p.Backend.Capacity.PrefillTokens)
	if p.rated {
		for r, amount := range n.amounts() {
			p.rates[r].refill(p.since(now))
			t.held[r] = p.rates[r].take(amount)
		}
	}
	p.running++
	p.kv += t.KV
	p.prefill += t.Prefill
	p.turn += stride / uint64(max(p.Backend.Weight, 1))
	p.Health.started(now)
	t.begun = attempt{at: now, prefill: n.Prefill, running: p.running}
	return t
}

// Progressed tells how much output an attempt has, over choices that are generated
// side by side: the first time that there is any, and from then on now and again.
func (p *Place) Progressed(now time.Time, t *Taken, output sluice.Tokens, choices int64) {
	now = p.tick(now)
	a := &t.begun
	output /= sluice.Tokens(max(choices, 1))
	s := sched.Sample{InFlight: p.running}
	switch {
	case a.told.IsZero():
		s.First, s.Prefill, s.Start = max(now.Sub(a.at), 1), a.prefill, a.running
	case output > a.tokens:
		s.Tokens, s.Took = output-a.tokens, now.Sub(a.told)
	default:
		return
	}
	a.told, a.tokens = now, output
	p.limit.Observe(now, s)
}

// Completed tells that an attempt has come to its end, and all its output. One
// that was not told of before came in one piece.
func (p *Place) Completed(now time.Time, t *Taken, output sluice.Tokens, choices int64) {
	now = p.tick(now)
	a := &t.begun
	output /= sluice.Tokens(max(choices, 1))
	s := sched.Sample{InFlight: p.running, Ended: true}
	switch whole := max(now.Sub(a.at), 1); {
	case output > a.tokens && !a.told.IsZero():
		s.Tokens, s.Took = output-a.tokens, now.Sub(a.told)
	case a.told.IsZero() && output <= 1:
		s.First, s.Prefill, s.Start = whole, a.prefill, a.running
	case a.told.IsZero() && output >= wholeTokens:
		s.Tokens, s.Took = output, whole
	}
	p.limit.Observe(now, s)
}

// wholeTokens is the output of an answer in one piece from which on its time says
// something of the time of a token.
const wholeTokens = 64

// Answered frees the prefill of an attempt: its first token has come.
func (p *Place) Answered(t *Taken) {
	p.prefill -= t.Prefill
	t.Prefill = 0
}

// Give takes an attempt away, and puts right what it held of the provider's rates
// if Spent was told what it took.
func (p *Place) Give(t Taken) {
	p.running--
	p.kv -= t.KV
	p.prefill -= t.Prefill
	if !p.rated {
		return
	}
	for r := range p.rates {
		used := t.held[r].n
		if t.known {
			used = t.spent[r]
		}
		p.rates[r].refill(p.since(p.now))
		p.rates[r].settle(t.held[r], used)
	}
}

// Hint takes what the provider told of a rate.
func (p *Place) Hint(now time.Time, h Hint) {
	now = p.tick(now)
	if h.Rate < NumRates {
		p.rates[h.Rate].hint(p.since(now), p.since(h.At), h)
		p.known()
	}
}

// Limited notes that the provider refused for a rate (429) and for how long it
// asked to be left alone; told is that it also said which rates are left, by Hint.
// Where it says nothing at all it is short of capacity as far as can be told.
func (p *Place) Limited(now time.Time, wait time.Duration, told bool) {
	now = p.tick(now)
	counted := told
	for r := range p.rates {
		if b := &p.rates[r]; b.amount > 0 && !told {
			b.pause(p.since(now), wait)
			counted = true
		}
	}
	if !counted && wait <= 0 {
		p.limit.Overloaded(now, p.running)
	}
}

// Overloaded notes that the backend refused for want of capacity (529, 503).
func (p *Place) Overloaded(now time.Time) { p.limit.Overloaded(p.tick(now), p.running) }

// RateLeft is what is left of a rate, and what there is in all; false if it is not
// known.
func (p *Place) RateLeft(now time.Time, r Rate) (left, all int64, known bool) {
	p.tick(now)
	b := &p.rates[r]
	b.refill(p.since(p.now))
	return b.level, b.amount, b.amount > 0
}

// Join gives a new place the turn of those that it joins, so that it gets its
// share and not all that it missed.
func (p *Place) Join(others []*Place) {
	for i, o := range others {
		if i == 0 || o.turn < p.turn {
			p.turn = o.turn
		}
	}
}

const stride = 1 << 32

// Choose is the index of the best of places for which left is Chosen, -1 if
// there is none. left has one word for each place; those of the others that
// could have served become LeftOther.
func Choose(places []*Place, left []Left) int {
	best := -1
	for i, p := range places {
		if left[i] == Chosen && (best < 0 || p.less(places[best])) {
			best = i
		}
	}
	for i := range left {
		if i != best && left[i] == Chosen {
			left[i] = LeftOther
		}
	}
	return best
}

// less orders by running ÷ weight, then by turn.
func (p *Place) less(q *Place) bool {
	phi, plo := bits.Mul64(uint64(p.running), uint64(q.Backend.Weight))
	qhi, qlo := bits.Mul64(uint64(q.running), uint64(p.Backend.Weight))
	if phi != qhi || plo != qlo {
		return phi < qhi || phi == qhi && plo < qlo
	}
	return p.turn < q.turn
}
