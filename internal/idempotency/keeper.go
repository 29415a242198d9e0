package idempotency

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"sluice"
	"sluice/internal/exchange"
)

// The defaults of Options, and the times of claims.
const (
	DefaultKeep      = 24 * time.Hour
	DefaultMaxBytes  = 1 << 20
	DefaultPerTenant = 64 << 20
	DefaultTotal     = 1 << 30
	DefaultBuffer    = 64 << 20

	Lease = 30 * time.Second // of a claim whose process is not heard of any more

	renewEach  = Lease / 3
	sweepEach  = time.Minute
	sweepAgain = time.Second     // between two sweeps for want of room
	storeWait  = 2 * time.Second // for one answer of the store
	storeCalls = 32              // for requests, at a time
	lastFrees  = 2 * time.Second // that Close gives the store
	renewAtOne = 256             // claims that are renewed in one transaction
)

// Limits are what is kept, and for how long. Zero fields take the defaults.
type Limits struct {
	Keep      time.Duration
	MaxBytes  int   // of one answer
	PerTenant int64 // bytes of a tenant's answers
	Total     int64 // bytes of all
}

func (l Limits) filled() Limits {
	if l.Keep <= 0 {
		l.Keep = DefaultKeep
	}
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.PerTenant <= 0 {
		l.PerTenant = DefaultPerTenant
	}
	if l.Total <= 0 {
		l.Total = DefaultTotal
	}
	return l
}

// Recorder writes what becomes of requests that run nowhere. *exchange.Exchange is one.
type Recorder interface {
	// Refuse records and returns a refusal.
	Refuse(r *exchange.Request, c exchange.Client, e *sluice.Error) exchange.Result
	// Replayed records a request that gets the answer of another one.
	Replayed(ctx context.Context, r *exchange.Request, of exchange.Replay) exchange.Result
}

// Options configures a Keeper. Next, Record and Store are needed.
type Options struct {
	Next   exchange.Runner
	Record Recorder
	Store  Store
	Log    *slog.Logger // nil discards
	Limits Limits
	Buffer int64       // bytes of answers on their way, over all requests; 0 takes DefaultBuffer
	Told   func(Event) // what became of each key; from any goroutine. nil is silent
}

// Event is what became of a request's key, or of the answer.
type Event string

// The events.
const (
	Claimed  Event = "claimed"  // it runs
	Replayed Event = "replayed" // it got an answer that was kept
	InFlight Event = "in_flight"
	Mismatch Event = "mismatch"
	Stored   Event = "stored"    // its answer is kept
	Freed    Event = "freed"     // it failed: its key is free again
	TooLarge Event = "too_large" // its answer is not kept
	Full     Event = "full"      // for want of room, likewise
	Lost     Event = "lost"      // its claim was taken over, likewise
	Failed   Event = "failed"    // the store did not answer
)

// Events are all of them.
var Events = [...]Event{Claimed, Replayed, InFlight, Mismatch, Stored, Freed, TooLarge, Full, Lost, Failed}

// Keeper claims keys and keeps answers. It is safe for concurrent use.
type Keeper struct {
	o     Options
	calls chan struct{} // storeCalls places
	stop  context.CancelFunc
	done  sync.WaitGroup
	wake  chan struct{} // one place: there is no room

	mu       sync.Mutex
	limits   Limits                    // guarded by mu, as all below
	held     map[Mark]sluice.RequestID // claims of requests that run here
	has      map[sluice.TenantID]int64 // bytes, as of the last sweep and of what was kept here since
	total    int64
	buffered int64 // bytes of answers on their way
}

// New makes a Keeper. Start and Close it.
func New(o Options) *Keeper {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Told == nil {
		o.Told = func(Event) {}
	}
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	return &Keeper{
		o: o, limits: o.Limits.filled(), calls: make(chan struct{}, storeCalls), wake: make(chan struct{}, 1),
		held: make(map[Mark]sluice.RequestID), has: make(map[sluice.TenantID]int64),
	}
}

// Configure puts other limits in force. What is beyond them goes with the next sweep.
func (k *Keeper) Configure(l Limits) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits = l.filled()
}

// Start renews leases and sweeps, until Close.
func (k *Keeper) Start() {
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	k.done.Go(func() { k.run(ctx) })
}

// Close ends the goroutine. Requests have ended by then, and their claims with them.
func (k *Keeper) Close() {
	if k.stop != nil {
		k.stop()
	}
	k.done.Wait()
}

func (k *Keeper) run(ctx context.Context) {
	renew, sweep := time.NewTicker(renewEach), time.NewTimer(0)
	defer renew.Stop()
	defer sweep.Stop()
	var swept time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			k.renew(ctx)
			continue
		case <-k.wake:
			if left := sweepAgain - time.Since(swept); left > 0 {
				sweep.Reset(left)
				continue
			}
		case <-sweep.C:
		}
		swept = time.Now()
		k.sweep(ctx)
		sweep.Reset(sweepEach)
	}
}

// renew keeps the claims of requests that run.
func (k *Keeper) renew(ctx context.Context) {
	k.mu.Lock()
	held := make([]Held, 0, len(k.held))
	for m, id := range k.held {
		held = append(held, Held{m, id})
	}
	k.mu.Unlock()
	for len(held) > 0 {
		n := min(len(held), renewAtOne)
		some, cancel := context.WithTimeout(ctx, storeWait)
		err := k.o.Store.RenewKeys(some, held[:n], time.Now().Add(Lease))
		cancel()
		if err != nil && ctx.Err() == nil {
			k.o.Log.Warn("leases of idempotency keys could not be renewed: another replica may run their requests again", slog.Any("error", err))
			return
		}
		held = held[n:]
	}
}

func (k *Keeper) sweep(ctx context.Context) {
	has, err := k.o.Store.SweepKeys(ctx, time.Now(), k.bounds())
	if err != nil {
		if ctx.Err() == nil {
			k.o.Log.Warn("kept answers could not be swept", slog.Any("error", err))
		}
		return
	}
	total := int64(0)
	for n := range maps.Values(has) {
		total += n
	}
	k.mu.Lock()
	k.has, k.total = has, total
	k.mu.Unlock()
}

func (k *Keeper) bounds() Bounds {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Bounds{k.limits.PerTenant, k.limits.Total}
}

// room reports whether an answer of a tenant fits, and counts it if it does.
func (k *Keeper) room(t sluice.TenantID, n int64) bool {
	n += Overhead
	k.mu.Lock()
	fits := k.has[t]+n <= k.limits.PerTenant && k.total+n <= k.limits.Total
	if fits {
		k.has[t] += n
		k.total += n
	}
	k.mu.Unlock()
	if !fits {
		select {
		case k.wake <- struct{}{}:
		default: // it is awake
		}
	}
	return fits
}

// buffer takes memory for answers on their way; false if there is none.
func (k *Keeper) buffer(n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.buffered+int64(n) > k.o.Buffer {
		return false
	}
	k.buffered += int64(n)
	return true
}

func (k *Keeper) unbuffer(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buffered -= int64(n)
}

// Level is what is kept, and what runs.
type Level struct {
	Bytes   int64
	Tenants int
	Held    int // keys of requests that run here
}

// Level counts.
func (k *Keeper) Level() Level {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Level{Bytes: k.total, Tenants: len(k.has), Held: len(k.held)}
}

// ask calls the store for a request: within storeWait, and with storeCalls others at most.
func (k *Keeper) ask(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	select {
	case k.calls <- struct{}{}:
		defer func() { <-k.calls }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return f(ctx)
}
