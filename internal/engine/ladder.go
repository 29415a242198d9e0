package engine

import (
	"fmt"
	"time"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/sched"
)

// ladderEvery is how often pools' ladders are looked at.
const ladderEvery = 250 * time.Millisecond

// grade is a pool's ladder and what it does to requests.
type grade struct {
	ladder.Ladder
	window ladder.Window
	acts   ladder.Acts // in force
	would  ladder.Acts // what it would do, in shadow
	counts LadderCounts

	deferral deferral
	standing [2]*Felt // what requests feel of it, and those whose answer is bounded; nil on the ground
}

// LadderCounts are totals of what a pool's ladder did to requests, or in shadow would
// have done.
type LadderCounts struct {
	Clamped       int64         // answers that were bounded, of requests that had a place
	ClampedTokens sluice.Tokens // by how much, of what they may have been
	Refused       [numEffects]int64
	Smaller       int64 // served by a smaller model
}

// Effects are the counts by the word for each.
func (c *LadderCounts) Effects() map[string]int64 {
	return map[string]int64{
		EffectClamp.String(): c.Clamped, EffectContext.String(): c.Refused[EffectContext], EffectSmaller.String(): c.Smaller,
		EffectOffer.String(): c.Refused[EffectOffer], EffectShed.String(): c.Refused[EffectShed],
	}
}

// Effect is one thing that a pool's ladder does to a request.
type Effect uint8

// The effects.
const (
	EffectNone    Effect = iota
	EffectClamp          // its answer is bounded
	EffectContext        // its input is too long: it is not taken
	EffectDefer          // of batch, it waits
	EffectSmaller        // a smaller model is to serve it
	EffectOffer          // it would wait: it is not taken, and offered the asynchronous path
	EffectShed           // its class is shed: it is not taken
	numEffects    = iota
)

var effectWords = [numEffects]string{"", "clamp", "context", "defer", "smaller", "offer", "shed"}

func (x Effect) String() string { return effectWords[x] }

// TierChange is one move of a pool's ladder.
type TierChange struct {
	Pool sluice.PoolID
	ladder.Change
}

// TierChanges takes the moves of ladders since it was last asked, in order. The slice is
// the caller's.
func (e *Engine) TierChanges() []TierChange {
	out := e.moves
	e.moves = nil
	return out
}

// ranked puts the ladder of a pool in line with its form.
func (e *Engine) ranked(now time.Time, p *pool) {
	if p.grade == nil {
		if p.spec.Ladder.Mode == ladder.Off {
			return
		}
		p.grade = &grade{}
	}
	if c, changed := p.grade.Configure(now, p.spec.Ladder); changed {
		e.moved(p, c)
	}
	e.apply(p)
	if p.spec.Ladder.Mode == ladder.Off {
		p.grade = nil
	}
}

// look brings the ladders' signals up to now, if it is time, and lets each move.
func (e *Engine) look(now time.Time) {
	if !e.ladders || e.ns-e.looked < int64(ladderEvery) {
		return
	}
	e.looked, e.restless = e.ns, false
	for _, p := range e.pools {
		g := p.grade
		if g == nil {
			continue
		}
		if c, changed := g.Observe(now, p.signal(now)); changed {
			e.moved(p, c)
			e.apply(p)
		}
		e.restless = e.restless || g.Restless()
	}
}

// signal is what moves a pool's ladder, as of now.
func (p *pool) signal(now time.Time) ladder.Signal {
	q := p.queue
	s := ladder.Signal{
		Age: q.Age(now, sluice.Batch), Own: q.Age(now, sluice.Standard), Waits: q.Competes(sluice.Interactive) || q.Competes(sluice.Standard), Refused: p.grade.window.Share(now),
	}
	m := room{p: p, now: now}
	if all, free := m.sum(nil); all[sched.KV] > 0 {
		s.KV = (all[sched.KV] - free[sched.KV]) * 1000 / all[sched.KV]
	}
	return s
}

// moved keeps a move for TierChanges.
func (e *Engine) moved(p *pool, c ladder.Change) {
	if len(e.moves) == maxChanges {
		e.moves = append(e.moves[:0], e.moves[1:]...)
	}
	e.moves = append(e.moves, TierChange{Pool: p.id, Change: c})
}

// apply puts into force what a pool's ladder does where it stands.
func (e *Engine) apply(p *pool) {
	g := p.grade
	g.acts, g.would = g.Policy().Acts(g.Acting()), g.Policy().Acts(g.Would())
	g.standing = [2]*Felt{g.stands(p), g.stands(p, EffectClamp)}
	g.defers(e.now, p)
	for _, q := range p.both() {
		if g.acts.Defer {
			q.queue.Suspend(sluice.Batch)
		} else {
			q.queue.Resume(sluice.Batch)
		}
	}
}

// defers reports whether the pool lets the request wait until its ladder comes down.
func (p *pool) defers(r *request) bool {
	return p.queue.Suspended(r.call.Class, r.item.Flow.Tenant)
}

// deferral is how long that takes at least.
func (p *pool) deferral(now time.Time) time.Duration {
	if g := p.base().grade; g != nil {
		return g.Earliest(now, ladder.Defer)
	}
	return 0
}

// declines tells why the pool's ladder does not take a request that would wait so long
// there.
func (p *pool) declines(now time.Time, r *request, wait time.Duration) Effect {
	g := p.base().grade
	if g == nil || g.would.Tier < ladder.Context || r.call.Free || r.call.Owed || r.attempt > 0 {
		return EffectNone
	}
	x := p.effect(now, r, wait, &g.acts)
	if x == EffectNone && g.Acting() == 0 && r.shadowed == EffectNone {
		r.shadowed = p.effect(now, r, wait, &g.would)
	}
	return x
}

// effect is what acts do to a request beside bounding its answer.
func (p *pool) effect(now time.Time, r *request, wait time.Duration, acts *ladder.Acts) Effect {
	if acts.Tier < ladder.Context {
		return EffectNone
	}
	promised := func() bool { // a contract has room for it
		need := r.needOfPlace()
		return p.queue.Promised(now, r.item.Flow.Tenant, sched.Amounts{sched.Slots: 1, sched.KV: int64(need.KV)})
	}
	x, class := EffectNone, r.call.Class
	switch {
	case acts.Smaller && class < sluice.Batch && r.consents():
		x = EffectSmaller
	case class >= acts.Shed:
		x = EffectShed
	case acts.Input > 0 && r.call.Work.Input > acts.Input && (wait > 0 || p.base().grade.Held()): // what has room at once takes it from nobody
		x = EffectContext
	case acts.Wait <= 0 || class == sluice.Batch || wait <= acts.Wait:
	case acts.Share:
		x = EffectShed
	default:
		x = EffectOffer
	}
	if x != EffectNone && promised() {
		return EffectNone
	}
	return x
}

// consents reports whether a smaller model may serve the request in its model's place:
// its caller has said so, and it depends on nothing that the model keeps.
func (r *request) consents() bool {
	p := r.call.Policy
	return p != nil && p.Degrade != "" && p.Degrade != r.item.Flow.Model && !r.call.Whole && r.call.Pin == nil && r.table.Models[p.Degrade] != nil && p.Allows(p.Degrade)
}

// declined is what became of a request that ladders kept from pools, if it found no other.
type declined struct {
	pool *pool
	why  Effect
}

// decline notes the first pool that did not take a request for its ladder. It reports
// whether the pool did not.
func (e *Engine) decline(now time.Time, r *request, p *pool, wait time.Duration) bool {
	x := p.declines(now, r, wait)
	if x != EffectNone && e.declined.pool == nil {
		e.declined = declined{p, x}
	}
	return x != EffectNone
}

// left is the answer to a request that ladders left no pool: nil where none did,
// and where the fallback pools are to be asked, unless they have been.
func (e *Engine) left(now time.Time, r *request, fellBack bool) *sluice.Error {
	switch e.declined.why {
	case EffectNone, EffectSmaller:
		return nil
	case EffectContext:
		if !fellBack {
			return nil
		}
	}
	return e.lesser(now, r)
}

// lesser words what a ladder refused.
func (e *Engine) lesser(now time.Time, r *request) *sluice.Error {
	p := e.declined.pool
	g := p.base().grade
	r.tier, r.felt = g.acts.Tier, g.stands(p, e.declined.why)
	err := &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.Degraded, Expected: true}
	switch e.declined.why {
	case EffectContext:
		err.Msg = fmt.Sprintf("%s is short of capacity and takes no input above %d tokens now, and this one has about %d", p.title(), g.acts.Input, r.call.Work.Input)
		err.Hint = "send less input, or come back later"
		err.RetryAfter = g.Earliest(now, ladder.Context)
	case EffectOffer:
		err.Msg = fmt.Sprintf("%s is short of capacity and would let this request wait for longer than %v", p.title(), g.acts.Wait)
		err.Hint = "come back later, or ask for an answer that you fetch when it is there, with Prefer: respond-async"
		err.RetryAfter = p.drain(now, nil)
	default:
		p.shed = now // nobody retries here
		err.Msg = fmt.Sprintf("%s is short of capacity and serves no %s requests now", p.title(), r.call.Class)
		err.Hint = "come back later, or ask for a model that other pools serve"
		if r.call.Class == sluice.Interactive {
			err.Msg = fmt.Sprintf("%s is short of capacity and serves no more of this caller's requests than its share now", p.title())
		}
		err.RetryAfter = max(p.drain(now, nil), min(g.Earliest(now, ladder.Shed), time.Minute))
	}
	return err
}

// degrade is what the ladder of the pool that a request joins does to it there: its
// answer is bounded. REQUIRES: nothing is held for it yet.
func (e *Engine) degrade(now time.Time, r *request, p *pool) {
	g := p.base().grade
	if g == nil {
		return
	}
	if r.call.Class < sluice.Batch {
		g.window.Arrived(now)
	}
	r.tier, r.felt = g.acts.Tier, g.standing[0]
	if r.call.Free || r.call.Owed || g.would.Tier == ladder.None {
		return
	}
	acts := &g.acts
	if g.Acting() == 0 {
		acts = &g.would
	}
	bound := acts.Answer(r.bound, r.least(), r.call.Choices)
	if bound < r.bound {
		r.lessener, r.lessened = p, r.bound-bound
		if acts == &g.acts {
			r.bound, r.clamped = bound, true
			r.felt = g.standing[1]
			r.item.Work = r.call.Work.Input + min(r.call.Work.OutputHold, bound)
		}
	}
}

// bounded counts an answer that is bounded, now that there is to be one.
func (r *request) bounded() {
	if r.lessened == 0 {
		return
	}
	if g := r.lessener.base().grade; g != nil {
		g.counts.Clamped++
		g.counts.ClampedTokens += r.lessened
	}
	r.lessener, r.lessened = nil, 0
}

// graded counts what ladders did to an arrival, in the pool whose ladder it was.
func (e *Engine) graded(r *request, p *pool) {
	x := r.shadowed
	if e.declined.pool != nil {
		p, x = e.declined.pool, e.declined.why
	}
	if p == nil || x == EffectNone {
		return
	}
	if g := p.base().grade; g != nil {
		g.counts.Refused[x]++
	}
}

// pinned carries out an operator's order about a pool's ladder.
func (e *Engine) pinned(now time.Time, o *Order) (changed bool, err error) {
	p := e.poolOf(o.Pool)
	if p == nil {
		return false, unknown("pool", string(o.Pool), "sluice status lists them")
	}
	if p.grade == nil {
		err := sluice.Invalid("", "the ladder of pool %s is off", p.id)
		err.Hint = "set ladder: shadow or ladder: on at the pool"
		return false, err
	}
	if o.Unpin {
		c, was := p.grade.Unpin(now)
		if was {
			e.moved(p, c)
			e.apply(p)
		}
		return was, nil
	}
	if p.grade.Pinned(o.Pin) {
		return false, nil
	}
	c, err := p.grade.Pin(now, *o.Pin)
	if err != nil {
		return false, sluice.Invalid("", "%s", err.Error())
	}
	e.moved(p, c)
	e.apply(p)
	e.restless = true
	return true, nil
}

// LadderView is a pool's ladder.
type LadderView struct {
	ladder.View
	Counts   LadderCounts
	Deferred int // requests of batch that wait for it
}

func (p *pool) ladderView(now time.Time) *LadderView {
	g := p.grade
	if g == nil {
		return nil
	}
	v := &LadderView{View: g.View(now), Counts: g.counts}
	if g.acts.Defer {
		v.Deferred = p.queue.Waiting()[sluice.Batch]
	}
	return v
}

// smaller answers an arrival whose caller consents to a smaller model: nothing is decided.
// It stays demand of the pool that was asked, which has no room for it.
func (e *Engine) smaller(r *request, v *Verdict) {
	p := e.declined.pool
	g := p.base().grade
	v.Smaller, v.Pool, v.Tier, v.Felt = r.call.Policy.Degrade, p.id, g.acts.Tier, g.stands(p, EffectSmaller)
	g.counts.Smaller++
	e.turnedDown(r, p, sluice.Degraded)
}
