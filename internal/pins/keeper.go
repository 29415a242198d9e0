package pins

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
)

// Record is the pin of one pool.
type Record struct {
	Pool sluice.PoolID
	ladder.Pin
}

// Store is where pins are kept.
type Store interface {
	// Pins lists those that are not over.
	Pins(ctx context.Context, now time.Time) ([]Record, error)
	// KeepPin keeps one in the place of its pool's, and forgets those that are over.
	KeepPin(ctx context.Context, now time.Time, r Record) error
	// DropPin forgets the pool's, if there is one.
	DropPin(ctx context.Context, p sluice.PoolID) error
}

// The defaults of Options, and what is bounded whatever they say.
const (
	DefaultPoll = time.Second

	patience = 2 * time.Second // that the store has for one step
)

// Options configures a Keeper. Store and Operate are required.
type Options struct {
	Store   Store
	Operate func(engine.Order) (changed bool, err error) // admit.Gate.Operate
	Shared  func() bool                                  // others write to the store, too; nil is never
	Log     *slog.Logger                                 // nil discards
	Poll    time.Duration                                // between two looks at the store; 0 is DefaultPoll
}

// Keeper keeps pins. Its methods are safe for concurrent use.
type Keeper struct {
	o    Options
	wake chan struct{} // one place: a look is due
	stop context.CancelFunc
	done sync.WaitGroup

	turn    chan struct{}             // holds one token: who has it may use what follows
	known   map[sluice.PoolID]Record  // what the store had
	unkept  map[sluice.PoolID]*Record // what it is to have, where it did not answer; nil: none
	refused map[sluice.PoolID]time.Time
}

// New makes a Keeper that knows nothing. Load it, Start it and Close it.
func New(o Options) *Keeper {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Shared == nil {
		o.Shared = func() bool { return false }
	}
	o.Poll = cmp.Or(o.Poll, DefaultPoll)
	return &Keeper{
		o: o, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		known: map[sluice.PoolID]Record{}, unkept: map[sluice.PoolID]*Record{}, refused: map[sluice.PoolID]time.Time{},
	}
}

// Order carries out an order to pin or unpin a ladder and records it. It reports whether
// that changed anything, and whether the store has it: where not, it is in force here alone
// until the store answers.
func (k *Keeper) Order(ctx context.Context, o engine.Order) (changed, kept bool, err error) {
	if err := k.take(ctx); err != nil {
		return false, false, err
	}
	defer k.give()
	now := time.Now().Truncate(time.Microsecond) // as the store has it
	var r *Record
	if o.Pin != nil {
		pin := *o.Pin
		pin.At, pin.Expires = now, pin.Expires.Truncate(time.Microsecond)
		o.Pin, r = &pin, &Record{o.Pool, pin}
	}
	changed, err = k.o.Operate(o)
	if err != nil {
		return false, false, err
	}
	if err := k.keep(ctx, now, o.Pool, r); err != nil {
		k.o.Log.Warn("a pin of a ladder is not recorded: it is in force here until the store answers, and no restart keeps it", slog.String("pool", string(o.Pool)), slog.Any("error", err))
		return changed, false, nil
	}
	return changed, true, nil
}

// keep records a pin, or that there is none. REQUIRES: the turn.
func (k *Keeper) keep(ctx context.Context, now time.Time, p sluice.PoolID, r *Record) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if r != nil {
		err = k.o.Store.KeepPin(ctx, now, *r)
	} else {
		err = k.o.Store.DropPin(ctx, p)
	}
	if err != nil {
		k.unkept[p] = r
		return err
	}
	delete(k.unkept, p)
	if delete(k.known, p); r != nil {
		k.known[p] = *r
	}
	return nil
}

// Load puts in force what a store has: what Options.Store stands for. It is called before
// Start, until it succeeds.
func (k *Keeper) Load(ctx context.Context, from Store) error {
	if err := k.take(ctx); err != nil {
		return err
	}
	defer k.give()
	return k.look(ctx, from)
}

// Start looks at the store from a goroutine, until Close.
func (k *Keeper) Start(ctx context.Context) {
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.done.Go(func() { k.run(ctx) })
}

// Close ends the goroutine and waits for it. Pins stay in force.
func (k *Keeper) Close() {
	if k.stop != nil {
		k.stop()
	}
	k.done.Wait()
}

// Again has all pins put in force once more: a configuration may have brought back their
// pools. It does not wait.
func (k *Keeper) Again() {
	select {
	case k.wake <- struct{}{}:
	default: // it is due already
	}
}

func (k *Keeper) run(ctx context.Context) {
	timer := time.NewTimer(k.o.Poll)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			due = true
		case <-timer.C:
		}
		if err := k.take(ctx); err != nil {
			return
		}
		if due || len(k.unkept) > 0 || k.o.Shared() {
			if err := k.look(ctx, k.o.Store); err != nil {
				k.o.Log.Debug("pins of ladders could not be read: those in force stay", slog.Any("error", err))
			}
		}
		k.give()
		timer.Reset(k.o.Poll)
	}
}

// look records what is still to be, and brings the ladders in line with the store.
// REQUIRES: the turn.
func (k *Keeper) look(ctx context.Context, from Store) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := time.Now()
	for _, p := range slices.Sorted(maps.Keys(k.unkept)) {
		if r := k.unkept[p]; r != nil && !r.Expires.After(now) {
			delete(k.unkept, p)
		} else if err := k.keep(ctx, now, p, r); err != nil {
			return err
		}
	}
	rows, err := from.Pins(ctx, now)
	if err != nil {
		return err
	}
	gone := maps.Clone(k.known)
	for _, r := range rows {
		delete(gone, r.Pool)
		k.known[r.Pool] = r
		k.pin(now, r)
	}
	for _, p := range slices.Sorted(maps.Keys(gone)) {
		delete(k.known, p)
		if gone[p].Expires.After(now) { // else its ladder has seen to it
			k.order("the pin of a ladder was taken off elsewhere", gone[p], engine.Order{Pool: p, Unpin: true})
		}
	}
	return nil
}

// pin puts in force what the store has. REQUIRES: the turn.
func (k *Keeper) pin(now time.Time, r Record) {
	pin := r.Pin
	if most := now.Add(ladder.MaxPin); pin.Expires.After(most) { // of a clock that is ahead
		pin.Expires = most
	}
	k.order("the pin of a ladder is in force, as the store has it", r, engine.Order{Pool: r.Pool, Pin: &pin})
}

// order carries one out, and tells once what cannot be. REQUIRES: the turn.
func (k *Keeper) order(what string, r Record, o engine.Order) {
	attrs := []any{slog.String("pool", string(r.Pool)), slog.Int("tier", int(r.Tier)), slog.String("author", r.Author), slog.String("reason", r.Reason), slog.Time("until", r.Expires.UTC())}
	changed, err := k.o.Operate(o)
	switch {
	case err == nil && changed:
		k.o.Log.Info(what, attrs...)
	case err != nil && o.Pin != nil && !k.refused[r.Pool].Equal(r.At):
		k.o.Log.Warn("the pin of a ladder is kept and not in force", append(attrs, slog.Any("error", err))...)
	}
	if delete(k.refused, r.Pool); err != nil {
		k.refused[r.Pool] = r.At
	}
}

func (k *Keeper) take(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *Keeper) give() { <-k.turn }
