package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
)

// MaxPoll is the longest time between two looks at a source.
const MaxPoll = 2 * time.Second

// Source is where records come from: the store, or a file's declarations.
type Source interface {
	// Load returns all records, with the version that they have.
	Load(ctx context.Context) (Records, error)
	// Version returns the change counter alone; it must be cheap.
	Version(ctx context.Context) (int64, error)
}

// KeeperOptions configures a Keeper. The zero value is usable.
type KeeperOptions struct {
	Hasher Hasher
	Poll   time.Duration // between two looks at the sources' versions; 0 is 1 s, at most MaxPoll
	// Timeout bounds one look, and one load, at one source; 0 is 1 s for a look
	// and 30 s for a load.
	LookTimeout, LoadTimeout time.Duration
	// StaleMax is how long the records of a source that is down stay valid;
	// after it all keys are answered 503. 0 is for ever: an outage of the store
	// then stops no traffic, and what was revoked during it, elsewhere, goes on
	// until the store is back.
	StaleMax time.Duration
	// Introduce is called before a new snapshot comes into force, with the one that is:
	// for what has to be so before limits are in force that were not. Snapshots that
	// come later wait for it, so it must end soon.
	Introduce func(before, next *Snapshot)
	// Loaded is called, on the Keeper's goroutine or in Refresh and Declare,
	// after every new snapshot, and after the first of a row of failures. It
	// must not call Refresh.
	Loaded func(*Snapshot, error)
}

// Keeper keeps the current Snapshot. Declared records come first; then the
// sources, in order.
type Keeper struct {
	o       KeeperOptions
	current atomic.Pointer[state]
	wake    chan struct{}
	stop    context.CancelFunc
	done    sync.WaitGroup

	// turn holds one token: who has it may read sources and change held. It is
	// taken before mu, and waiting for it ends with the caller's context.
	turn    chan struct{}
	sources []held
	failing bool

	// publishing is held while a snapshot is made and put in force, so that none is by
	// older records. It is taken after the turn and before mu.
	publishing sync.Mutex

	mu       sync.Mutex
	declared Records   // guarded by mu
	loaded   []Records // guarded by mu: what the sources last said, in order
}

// held is a source and what it last said.
type held struct {
	source  Source
	records Records
	loaded  bool
	checked time.Time // when it last answered
	err     error     // of the last look, nil if it answered
}

// state is what Identify reads in one step.
type state struct {
	snapshot *Snapshot
	valid    time.Time // after it the snapshot is too old; zero is never
	health   Health
}

// Health tells how fresh the keys are.
type Health struct {
	Ready   bool      // every source has loaded once
	Checked time.Time // when the source that was asked longest ago last answered; zero if there is none
	Err     error     // of the last look at a source, nil if all answered
}

// NewKeeper makes a Keeper over what a configuration declares and over sources.
// It answers at once, for declared keys; call Start.
func NewKeeper(o KeeperOptions, declared Records, sources ...Source) *Keeper {
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	o.Poll = min(o.Poll, MaxPoll)
	if o.LookTimeout <= 0 {
		o.LookTimeout = time.Second
	}
	if o.LoadTimeout <= 0 {
		o.LoadTimeout = 30 * time.Second
	}
	k := &Keeper{o: o, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), declared: declared}
	for _, s := range sources {
		k.sources = append(k.sources, held{source: s})
	}
	k.publishing.Lock()
	defer k.publishing.Unlock()
	k.publish(k.condition(), true)
	return k
}

// Start looks at the sources once, for at most MaxPoll, and then from its own
// goroutine until Close. A source that is down or hangs does not keep the
// gateway from coming up without it. Call it once, before Close.
func (k *Keeper) Start(ctx context.Context) {
	first, cancel := context.WithTimeout(ctx, MaxPoll)
	_ = k.Refresh(first) // told by Loaded and Health; the loop tries again
	cancel()
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.done.Go(func() { k.run(ctx) })
}

func (k *Keeper) run(ctx context.Context) {
	timer := time.NewTimer(k.o.Poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
		_ = k.Refresh(ctx)
		timer.Reset(k.o.Poll)
	}
}

// Close ends the goroutine and waits for it. The last snapshot goes on
// answering.
func (k *Keeper) Close() {
	if k.stop != nil {
		k.stop()
	}
	k.done.Wait()
}

// Notify has the sources looked at now. It does not wait and may be called from
// anywhere, any number of times.
func (k *Keeper) Notify() {
	select {
	case k.wake <- struct{}{}:
	default: // a look is due already
	}
}

// Refresh looks at every source and loads those that changed. It returns when
// the snapshot holds what they said, so that a caller that has just written
// sees its own change. The error tells which sources did not answer.
func (k *Keeper) Refresh(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	changed := false
	var errs []error
	for i := range k.sources {
		h := &k.sources[i]
		loaded, err := k.look(ctx, h)
		h.err = err
		if err != nil {
			errs = append(errs, err)
			continue
		}
		h.checked = time.Now()
		changed = changed || loaded
	}
	err := errors.Join(errs...)
	if ctx.Err() != nil { // stopping: not the sources' fault
		return err
	}
	k.publishing.Lock()
	k.mu.Lock()
	k.loaded = k.loaded[:0:0]
	for _, h := range k.sources {
		k.loaded = append(k.loaded, h.records)
	}
	k.mu.Unlock()
	k.publish(k.condition(), changed)
	k.publishing.Unlock()
	told := changed || err != nil && !k.failing
	k.failing = err != nil
	if told && k.o.Loaded != nil {
		k.o.Loaded(k.Snapshot(), err)
	}
	return err
}

// condition is how the sources do. REQUIRES: the turn, or nobody else yet.
func (k *Keeper) condition() Health {
	h := Health{Ready: true}
	for i := range k.sources {
		s := &k.sources[i]
		h.Ready = h.Ready && s.loaded
		if i == 0 || s.checked.Before(h.Checked) {
			h.Checked = s.checked
		}
		h.Err = errors.Join(h.Err, s.err)
	}
	return h
}

// look asks one source for its version and loads it if that is new.
func (k *Keeper) look(ctx context.Context, h *held) (loaded bool, err error) {
	if h.loaded {
		looking, cancel := context.WithTimeout(ctx, k.o.LookTimeout)
		defer cancel()
		v, err := h.source.Version(looking)
		if err != nil {
			return false, fmt.Errorf("read version of keys: %w", err)
		}
		if v == h.records.Version {
			return false, nil
		}
	}
	loading, cancel := context.WithTimeout(ctx, k.o.LoadTimeout)
	defer cancel()
	r, err := h.source.Load(loading)
	if err != nil {
		return false, fmt.Errorf("load keys: %w", err)
	}
	h.records, h.loaded = r, true
	return true, nil
}

// Declare replaces what the configuration declares. It cannot fail and waits
// for no source, but for Introduce.
func (k *Keeper) Declare(r Records) {
	k.publishing.Lock()
	k.mu.Lock()
	k.declared = r
	k.mu.Unlock()
	k.publish(k.current.Load().health, true)
	k.publishing.Unlock()
	if k.o.Loaded != nil {
		k.o.Loaded(k.Snapshot(), nil)
	}
}

// publish makes the state that Identify reads, with a new snapshot if the
// records changed. REQUIRES: publishing held.
func (k *Keeper) publish(h Health, changed bool) {
	next := state{health: h}
	if k.o.StaleMax > 0 && h.Ready && len(k.sources) > 0 {
		next.valid = h.Checked.Add(k.o.StaleMax)
	}
	last := k.current.Load()
	if last != nil {
		next.snapshot = last.snapshot
	}
	if changed {
		k.mu.Lock()
		all := append([]Records{k.declared}, k.loaded...)
		k.mu.Unlock()
		next.snapshot = Compile(CompileOptions{Hasher: k.o.Hasher, Before: next.snapshot, Partial: !h.Ready}, all...)
		if last != nil && k.o.Introduce != nil {
			k.o.Introduce(last.snapshot, next.snapshot)
		}
	}
	k.current.Store(&next)
}

// Identify finds whose credential it is, as Snapshot.Identify does.
func (k *Keeper) Identify(credential string, now time.Time) (sluice.Principal, error) {
	s := k.current.Load()
	if s.stale(now) {
		return sluice.Principal{}, notReady()
	}
	return s.snapshot.Identify(credential, now)
}

// Admit finds what applies to the bearer of a token, as Snapshot.Admit does.
func (k *Keeper) Admit(b *Bearer, now time.Time) (sluice.Principal, error) {
	s := k.current.Load()
	if s.stale(now) {
		return sluice.Principal{}, notReady()
	}
	return s.snapshot.Admit(b)
}

// Principal is who a key is of now, as Snapshot.PrincipalAt has it.
func (k *Keeper) Principal(id sluice.KeyID, now time.Time) (sluice.Principal, error) {
	s := k.current.Load()
	if s.stale(now) {
		return sluice.Principal{}, notReady()
	}
	return s.snapshot.PrincipalAt(id, now)
}

// Admin finds whose operator's token it is, as Snapshot.Admin does.
func (k *Keeper) Admin(token string, now time.Time) (AdminToken, error) {
	s := k.current.Load()
	if s.stale(now) {
		return AdminToken{}, notReady()
	}
	return s.snapshot.Admin(token, now)
}

func (s *state) stale(now time.Time) bool { return !s.valid.IsZero() && now.After(s.valid) }

// Snapshot is the current one, never nil.
func (k *Keeper) Snapshot() *Snapshot { return k.current.Load().snapshot }

// Health tells how fresh the keys are.
func (k *Keeper) Health() Health { return k.current.Load().health }

// Declared finds what the configuration file owns, for an API that must refuse
// to change it.
func (k *Keeper) Declared() Records {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.declared
	r.Keys, r.Tenants, r.Plans = slices.Clone(r.Keys), slices.Clone(r.Tenants), slices.Clone(r.Plans)
	return r
}
