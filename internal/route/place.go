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
	// What a decision asks of every place comes first, and is together.

	Backend *Backend
	calm    *Backend      // Backend, where most is all that stands in the way of a request; see steady
	most    sched.Amounts // what it holds, as of calm or of the last Most; 0 is no bound
	running int64
	kv      sluice.Tokens
	prefill sluice.Tokens
	turn    uint64
	step    uint64  // by which a choice moves turn on, breakers aside
	domain  *Domain // nil if none is known

	Retired bool // no longer in the table: it finishes what it runs
	drained bool // an operator keeps new attempts from it
	shunned bool // its domain fails, and its pool has a backend elsewhere
	rejoin  bool // its breaker has closed: it missed turns that it is not due
	rated   bool // some rate is known

	// Credentials are those of all places; nil keeps the place's own.
	Credentials *Credentials

	Health Health
	lanes  []*lane   // at least one; those that are gone are kept while they run something
	tuned  *Backend  // what limit and rates are set to
	now    time.Time // the latest moment seen
	base   time.Time // the first: rates and attempts count from it, whatever the clock is set to
	at     int64     // now, in nanoseconds from base
	pace   pace      // how soon it answers

	retries window // what Retries counts of it

	until time.Time // the earliest that rates have room for something they had none for; zero if nothing was paced since
	load  Load      // as of the last scrape
	limit *sched.Limit
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
	if now != p.now || p.tuned != p.Backend {
		p.pass(now)
	}
	return p.now
}

// pass is tick, but for the questions after the first of one decision.
func (p *Place) pass(now time.Time) {
	if now.After(p.now) {
		p.now = now
		p.at = p.since(now)
	}
	if p.tuned != p.Backend {
		p.tune()
	}
	if p.calm == nil {
		p.settle()
	}
}

// steady reports whether the place takes whatever it has room for, and what room it has
// depends on what it runs alone: no breaker, operator, credential, rate, hint or moment has
// a say. So it is most often, and then what is asked of it at each decision is a comparison.
func (p *Place) steady() bool { return p.calm == p.Backend }

// settle finds whether the place is steady, which it is until something stirs it.
func (p *Place) settle() {
	if p.Backend.Weight > 0 && p.sound() && p.Health.phase == closed && !p.rated && p.load.At.IsZero() && !p.limit.Adaptive() {
		c := &p.Backend.Capacity
		p.calm, p.most = p.Backend, sched.Amounts{p.limit.Value(), int64(c.KVTokens), int64(c.PrefillTokens)}
	}
}

// stir notes that something may have a say in what the place is given.
func (p *Place) stir() { p.calm = nil }

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
	c := &p.Backend.Capacity
	if p.limit == nil {
		p.limit = &sched.Limit{}
	}
	p.limit.SetBounds(c.bounds())
	p.relane()
	p.known()
	p.tuned, p.step = p.Backend, stride/uint64(max(p.Backend.Weight, 1))
	p.stir()
}

// known notes whether some rate is.
func (p *Place) known() {
	p.rated = false
	for _, l := range p.lanes {
		for r := range l.rates {
			p.rated = p.rated || l.rates[r].amount > 0
		}
	}
}

// Rated reports whether some rate of the backend's provider is known.
func (p *Place) Rated() bool {
	return !p.steady() && p.isRated()
}

func (p *Place) isRated() bool {
	p.tick(p.now)
	return p.rated
}

// Slots is how many attempts the backend takes at a time as of the latest moment:
// its configured concurrency, or what is found to be good for it.
// While its breaker's ramp lasts it is a part of that, at least one.
func (p *Place) Slots() int64 {
	if p.steady() {
		return p.most[sched.Slots]
	}
	return p.slots()
}

// slots is Slots of a place that is not steady.
func (p *Place) slots() int64 {
	p.tick(p.now)
	n := p.load.slots(p.now, p.limit.Value(), p.limit.Adaptive())
	if share := p.Health.Share(p.now); share < 1000 {
		n = max(1, n/1000*share+n%1000*share/1000)
	}
	return n
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
	if p.Retired || p.Backend.Weight <= 0 || p.Fit(now) != Chosen {
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

// Ready reports whether the backend may be given anything at all.
func (p *Place) Ready(now time.Time) bool {
	return p.steady() || p.Backend.Weight > 0 && p.fit(now) == Chosen
}

// Most is what the backend holds now of each dimension, 0 if that is not known. It is
// valid until the next question.
func (p *Place) Most(now time.Time) *sched.Amounts {
	if !p.steady() {
		p.measure(now)
	}
	return &p.most
}

func (p *Place) measure(now time.Time) {
	p.tick(now)
	p.most = sched.Amounts{p.slots(), int64(p.KVCapacity()), int64(p.Backend.Capacity.PrefillTokens)}
}

// Open reports whether the place has a slot and is fit to be used, whatever the
// request.
func (p *Place) Open(now time.Time) bool {
	if p.steady() {
		return p.running < p.most[sched.Slots]
	}
	return p.opens(now)
}

func (p *Place) opens(now time.Time) bool {
	now = p.tick(now)
	return p.running < p.slots() && p.Backend.Weight > 0 && p.Fit(now) == Chosen && !(p.rated && p.paced(&[NumRates]int64{1, 1, 1, 1}, ""))
}

// Usable tells why the place cannot take a request now, Chosen if it can.
func (p *Place) Usable(now time.Time, n *Need) Left {
	if !p.steady() || n.Only != "" {
		return p.admits(now, *n)
	}
	kv, prefill := p.most[sched.KV], p.most[sched.Prefill]
	if p.running >= p.most[sched.Slots] ||
		kv > 0 && p.running > 0 && int64(p.kv)+min(int64(n.KV), kv) > kv ||
		prefill > 0 && int64(p.prefill)+min(int64(n.Prefill), prefill) > prefill {
		return LeftFull
	}
	return Chosen
}

// admits is Usable of a place that is not steady.
func (p *Place) admits(now time.Time, n Need) Left {
	now = p.tick(now)
	if left := p.FitWith(now, n.Only); left != Chosen {
		return left
	}
	c, kv := &p.Backend.Capacity, p.KVCapacity()
	n.within(kv, c.PrefillTokens)
	if p.running >= p.slots() ||
		kv > 0 && p.KVUsed(now)+n.KV > kv && p.running > 0 ||
		c.PrefillTokens > 0 && p.prefill+n.Prefill > c.PrefillTokens {
		return LeftFull
	}
	if p.rated {
		if amounts := n.amounts(); p.paced(&amounts, n.Only) {
			return LeftPaced
		}
	}
	return Chosen
}

// KVUsed is the memory in use: what we reckon, or what the engine told of late if
// that is more, since others may use it too.
func (p *Place) KVUsed(now time.Time) sluice.Tokens {
	if p.steady() {
		return p.kv
	}
	return p.toldKV(now)
}

func (p *Place) toldKV(now time.Time) sluice.Tokens {
	return max(p.kv, p.load.kv(now, p.KVCapacity()))
}

// Take puts an attempt there. What it takes is to be given to Progressed, Answered and
// Give.
func (p *Place) Take(now time.Time, n *Need, t *Taken) {
	now = p.tick(now)
	most := *n
	most.within(p.KVCapacity(), p.Backend.Capacity.PrefillTokens)
	t.attempt = attempt{KV: most.KV, Prefill: most.Prefill, at: p.at, prefill: n.Prefill}
	p.hold(now, n, t)
	p.running++
	p.kv += t.KV
	p.prefill += t.Prefill
	if p.turn += p.step; !p.steady() {
		p.turn += p.step*whole/uint64(p.Health.Share(now)) - p.step
	}
	t.trip, t.probe = p.Health.started(now)
	t.running, t.expected = p.running, p.prefillTime(0)
}

// Progressed tells how much output an attempt has, over choices that are generated
// side by side: the first time that there is any, and from then on now and again.
func (p *Place) Progressed(now time.Time, t *Taken, output sluice.Tokens, choices int64) {
	now = p.tick(now)
	output /= sluice.Tokens(max(choices, 1))
	s := sched.Sample{InFlight: p.running}
	switch {
	case !t.shown:
		s.First, s.Prefill, s.Start = time.Duration(max(p.at-t.at, 1)), t.prefill, t.running
		t.shown, t.first, t.came = true, output, p.at
		most := p.Health.rules().FirstToken
		t.slow = most > 0 && s.First > most
	case output > t.tokens:
		s.Tokens, s.Took = output-t.tokens, time.Duration(p.at-t.told)
	default:
		return
	}
	t.told, t.tokens = p.at, output
	p.learn(now, t, &s)
}

// Completed tells that an attempt has come to its end, and all its output. One
// that was not told of before came in one piece.
func (p *Place) Completed(now time.Time, t *Taken, output sluice.Tokens, choices int64) {
	now = p.tick(now)
	output /= sluice.Tokens(max(choices, 1))
	s := sched.Sample{InFlight: p.running, Ended: true}
	t.slow = t.slow || t.crawled(p.at, output, p.Health.rules().Rate)
	switch whole := time.Duration(max(p.at-t.at, 1)); {
	case output > t.tokens && t.shown:
		s.Tokens, s.Took = output-t.tokens, time.Duration(p.at-t.told)
	case !t.shown && output <= 1:
		s.First, s.Prefill, s.Start = whole, t.prefill, t.running
	case !t.shown && output >= wholeTokens:
		s.Tokens, s.Took = output, whole
	}
	p.learn(now, t, &s)
}

// crawled reports whether the output after the first report came at less than so
// many tokens per second.
func (a *attempt) crawled(now int64, output sluice.Tokens, least int64) bool {
	rest := output - a.first
	if least <= 0 || !a.shown || rest < wholeTokens {
		return false
	}
	hi, lo := bits.Mul64(uint64(now-a.came), uint64(least))
	return hi > 0 || lo > uint64(rest)*uint64(time.Second)
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
func (p *Place) Give(t *Taken) {
	p.running--
	p.kv -= t.KV
	p.prefill -= t.Prefill
	p.unhold(t)
}

// Overloaded notes that the backend refused for want of capacity (529, 503).
func (p *Place) Overloaded(now time.Time) {
	now = p.tick(now)
	p.limit.Overloaded(now, p.running)
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

// less orders by running ÷ weight, then by turn.
func (p *Place) less(q *Place) bool {
	phi, plo := bits.Mul64(uint64(p.running), uint64(q.Backend.Weight))
	qhi, qlo := bits.Mul64(uint64(q.running), uint64(p.Backend.Weight))
	if phi != qhi || plo != qlo {
		return phi < qhi || phi == qhi && plo < qlo
	}
	return p.turn < q.turn
}
