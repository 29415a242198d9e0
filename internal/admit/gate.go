package admit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
)

// Options tune a Gate.
type Options struct {
	Hooks Hooks
}

// Hooks are told what happened, after it did and outside the lock. Nil fields
// are silent. They run on the goroutine of the caller concerned and must not
// block.
type Hooks struct {
	Queued   func(engine.Call, engine.Verdict) // it waits, or is about to be granted
	Refused  func(engine.Call, *sluice.Error)  // at arrival, or when a wait ended without a place
	Granted  func(engine.Call, engine.Grant)   // every attempt
	Ended    func(engine.Call, engine.Result)  // every attempt that Next ended
	Settled  func(engine.Call, engine.Actual, error)
	Released func(engine.Call, sluice.Reason)
	Expired  func(sluice.RequestID)    // a hold ran out without activity; on any goroutine
	Health   func(engine.HealthChange) // what a backend may be given has changed; on any goroutine
	Tier     func(engine.TierChange)   // a pool's ladder has moved; on any goroutine
}

// Gate is the waiting room. It is safe for concurrent use.
type Gate struct {
	hooks Hooks
	wake  chan struct{} // the next wake-up is sooner than the sleeper thinks; one place
	quit  chan struct{}
	wg    sync.WaitGroup

	mu       sync.Mutex
	eng      *engine.Engine                               // guarded by mu
	waiters  map[sluice.RequestID]chan<- engine.Grant     // guarded by mu; channels with one place
	copies   map[sluice.RequestID]context.CancelCauseFunc // guarded by mu; of those that have a place
	spare    chan engine.Grant                            // guarded by mu; empty, nil if there is none
	idle     []chan struct{}                              // guarded by mu; closed when nothing is open
	armed    time.Time                                    // guarded by mu; when the sleeper wakes, zero for never
	draining bool                                         // guarded by mu
	closed   bool                                         // guarded by mu
}

// New puts a gate around an engine, which nobody else may touch from then on.
// Close ends it.
func New(eng *engine.Engine, o Options) *Gate {
	g := &Gate{
		hooks:   o.Hooks,
		wake:    make(chan struct{}, 1),
		quit:    make(chan struct{}),
		eng:     eng,
		waiters: make(map[sluice.RequestID]chan<- engine.Grant),
		copies:  make(map[sluice.RequestID]context.CancelCauseFunc),
	}
	g.wg.Go(g.sleep)
	return g
}

// ErrTranslate asks for the translations of a call whose Others are untried: see
// engine.Verdict. Nothing was decided.
var ErrTranslate = errors.New("which dialects the request may be put into has to be known")

// Admit waits for a place. The error is a *Refused, ErrTranslate or a *Smaller, and
// nothing is held then. The caller owns the Grant: defer its Release.
func (g *Gate) Admit(ctx context.Context, c engine.Call) (*Grant, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, g.refuse(c, Refused{Err: gone(err)})
	}
	g.mu.Lock()
	if g.draining || g.closed {
		g.mu.Unlock()
		return nil, g.refuse(c, Refused{Err: shuttingDown()})
	}
	now := time.Now()
	v := g.eng.Arrive(now, c)
	if v.Translate {
		g.mu.Unlock()
		return nil, ErrTranslate
	}
	if v.Smaller != "" {
		g.mu.Unlock()
		return nil, &Smaller{v.Smaller, v.Tier, v.Felt}
	}
	if v.Err != nil {
		g.mu.Unlock()
		return nil, g.refuse(c, Refused{Err: v.Err, Limits: v.Limits, Candidates: v.Candidates, Policy: v.Policy, Tier: v.Tier, Felt: v.Felt})
	}
	ch := g.expect(c.ID)
	told := g.advance(now)
	place, granted := g.atOnce(ch)
	g.mu.Unlock()
	g.tell(told)
	if g.hooks.Queued != nil {
		g.hooks.Queued(c, v)
	}
	var err *sluice.Error
	if granted {
		err = place.Err
	} else {
		place, err = g.await(ctx, c.ID, ch)
	}
	if err != nil {
		g.mu.Lock()
		now := time.Now()
		felt := cmp.Or(place.Felt, g.eng.Felt(c.ID), v.Felt) // as it waited, or else as it came
		g.eng.Cancel(now, c.ID, err.Reason)                  // no more than a look-up if the engine has ended it
		told := g.advance(now)
		g.mu.Unlock()
		g.tell(told)
		return nil, g.refuse(c, Refused{Err: err, Limits: place.Limits, Policy: cmp.Or(place.Policy, v.Policy), Tier: tierOf(felt), Felt: felt})
	}
	if g.hooks.Granted != nil {
		g.hooks.Granted(c, place)
	}
	return &Grant{gate: g, call: c, place: place}, nil
}

// await waits for what the engine says about a request. On an error the request
// may still be open, and no longer has a waiter.
func (g *Gate) await(ctx context.Context, id sluice.RequestID, ch <-chan engine.Grant) (engine.Grant, *sluice.Error) {
	select {
	case place := <-ch: // a further attempt may have it by now
		return place, place.Err
	default:
	}
	select {
	case place := <-ch:
		return place, place.Err
	case <-ctx.Done():
	}
	g.mu.Lock()
	delete(g.waiters, id)
	g.mu.Unlock()
	select {
	case place := <-ch:
		if place.Err != nil {
			return place, place.Err
		}
		// Granted at the very moment that the caller left: the place goes back.
	default:
	}
	return engine.Grant{}, gone(context.Cause(ctx))
}

// expect makes the channel that a request's next grant is sent to. REQUIRES: mu
// is held.
func (g *Gate) expect(id sluice.RequestID) chan engine.Grant {
	ch := g.spare
	if g.spare = nil; ch == nil {
		ch = make(chan engine.Grant, 1)
	}
	g.waiters[id] = ch
	return ch
}

// atOnce takes a grant that has come while mu was held, as most do. The channel then
// serves the next request: nobody else has it. REQUIRES: mu is held.
func (g *Gate) atOnce(ch chan engine.Grant) (place engine.Grant, ok bool) {
	select {
	case place = <-ch:
		g.spare = ch
		return place, true
	default:
		return place, false
	}
}

// advance lets the engine decide, delivers what it did and sees that the sleeper
// wakes in time. now is when the engine was told what happened: read anew it is
// some nanoseconds later, and for a request that may not wait that is too late.
// It returns what is to be told of once mu is not held any more. REQUIRES: mu is held.
func (g *Gate) advance(now time.Time) news {
	n := g.deliver(now)
	g.arm()
	return n
}

// news is what the engine did that no caller waits for.
type news struct {
	expired []sluice.RequestID // their holds ran out
	lost    []lostPlace
	health  []engine.HealthChange
	tiers   []engine.TierChange
}

// deliver lets the engine decide and hands each grant to its caller. A place whose
// caller has just left finds no waiter; the caller gives it back itself. REQUIRES:
// mu is held.
func (g *Gate) deliver(now time.Time) (n news) {
	for _, place := range g.eng.Advance(now) {
		if ch, ok := g.waiters[place.ID]; ok {
			delete(g.waiters, place.ID)
			place.Candidates, place.Limits = slices.Clone(place.Candidates), place.Limits.Clone()
			place.Preferred = slices.Clone(place.Preferred) // the engine's memory
			ch <- place
		} else if lost, ok := g.copies[place.ID]; ok {
			delete(g.copies, place.ID)
			n.lost = append(n.lost, lostPlace{lost, place.Err})
		} else if place.Err != nil && place.Err.Reason == sluice.HoldExpired {
			n.expired = append(n.expired, place.ID)
		}
	}
	if len(g.idle) > 0 && g.eng.Open() == 0 {
		for _, ch := range g.idle {
			close(ch)
		}
		g.idle = nil
	}
	n.health, n.tiers = g.eng.HealthChanges(), g.eng.TierChanges()
	return n
}

// arm wakes the sleeper if it would sleep too long. REQUIRES: mu is held.
func (g *Gate) arm() {
	at, ok := g.eng.NextWake()
	if !ok || !g.armed.IsZero() && !at.Before(g.armed) {
		return
	}
	g.armed = at
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// sleep lets the engine advance when time alone has something to do.
func (g *Gate) sleep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-g.quit:
			return
		case <-g.wake:
		case <-timer.C:
		}
		g.mu.Lock()
		told := g.deliver(time.Now())
		at, ok := g.eng.NextWake()
		g.armed = at
		g.mu.Unlock()
		g.tell(told)
		if ok {
			timer.Reset(max(0, time.Until(at)))
		} else {
			timer.Stop()
		}
	}
}

func (g *Gate) tell(n news) {
	for _, c := range n.lost {
		c.lost(c.why)
	}
	if g.hooks.Expired != nil {
		for _, id := range n.expired {
			g.hooks.Expired(id)
		}
	}
	if g.hooks.Health != nil {
		for _, c := range n.health {
			g.hooks.Health(c)
		}
	}
	if g.hooks.Tier != nil {
		for _, c := range n.tiers {
			g.hooks.Tier(c)
		}
	}
}

func tierOf(f *engine.Felt) ladder.Tier {
	if f == nil {
		return ladder.None
	}
	return f.Tier
}

func (g *Gate) refuse(c engine.Call, r Refused) error {
	if g.hooks.Refused != nil {
		g.hooks.Refused(c, r.Err)
	}
	return &r
}

// Drain stops new admissions: they are refused with shutting_down. Calls that
// wait or run go on.
func (g *Gate) Drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
}

// Idle waits until nothing waits or runs, or ctx ends. Drain first, or it may
// never be so.
func (g *Gate) Idle(ctx context.Context) error {
	g.mu.Lock()
	if g.eng.Open() == 0 {
		g.mu.Unlock()
		return nil
	}
	ch := make(chan struct{})
	g.idle = append(g.idle, ch)
	g.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Observe takes a signal about a backend.
func (g *Gate) Observe(s engine.Signal) {
	g.change(func(now time.Time) { g.eng.Observe(now, s) })
}

// Operate carries out an operator's order; see engine.Engine.Operate.
func (g *Gate) Operate(o engine.Order) (changed bool, err error) {
	g.change(func(now time.Time) { changed, err = g.eng.Operate(now, o) })
	return changed, err
}

// Dump is a bounded picture of all pools; see engine.Engine.Dump.
func (g *Gate) Dump(limit int) engine.View { return g.Look(engine.Zoom{}, limit) }

// Look is a bounded picture of what is zoomed at; see engine.Engine.Dump.
func (g *Gate) Look(z engine.Zoom, limit int) engine.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.eng.Dump(time.Now(), z, limit)
}

// Close refuses what still waits with shutting_down and joins the gate's
// goroutine. It is idempotent. Grants may still be settled.
func (g *Gate) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.quit)
		for id, ch := range g.waiters {
			delete(g.waiters, id)
			ch <- engine.Grant{ID: id, Err: shuttingDown()}
		}
	}
	g.mu.Unlock()
	g.wg.Wait()
}
