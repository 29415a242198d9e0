package stateful

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice"
	"sluice/internal/route"
)

// The defaults of Options, and what is bounded whatever they say.
const (
	DefaultPerTenant = 20_000
	DefaultTotal     = 1_000_000
	DefaultKeep      = 30 * 24 * time.Hour
	DefaultRefresh   = 2 * time.Second

	MaxPending = 65_536 // changes that wait for the store

	batch     = 512 // changes that the store is told at a time
	retry     = time.Second
	sweepEach = 10 * time.Minute
	missWait  = time.Second           // that an unknown id waits for a reading of the store
	missEach  = 50 * time.Millisecond // between two readings for unknown ids
	lastWrite = 2 * time.Second       // that Close gives the store
)

// Options configures a Keeper. Store is required; zero fields take the defaults.
type Options struct {
	Store     Store
	Log       *slog.Logger  // nil discards
	PerTenant int           // ids remembered of each tenant
	Total     int           // ids remembered
	Keep      time.Duration // from the last use of an id
	Refresh   time.Duration // between two readings of what others have written
	Shared    func() bool   // others write to the store, too; nil is never
}

// Keeper remembers what backends keep. Its methods are safe for concurrent use.
type Keeper struct {
	o    Options
	stop context.CancelFunc
	done sync.WaitGroup
	wake chan struct{} // one place: there is something to write
	miss chan struct{} // one place: somebody waits for a reading

	mu   sync.Mutex
	book *book // guarded by mu
	keep time.Duration

	waiting sync.Mutex
	pending []Op          // guarded by waiting
	lost    int64         // guarded by waiting
	next    chan struct{} // guarded by waiting; closed when the next reading to begin has ended

	read int64 // position in the store; of the goroutine, and of Load before it
}

// New makes a Keeper that knows nothing. Load it, Start it and Close it.
func New(o Options) *Keeper {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refresh <= 0 {
		o.Refresh = DefaultRefresh
	}
	if o.Shared == nil {
		o.Shared = func() bool { return false }
	}
	k := &Keeper{o: o, wake: make(chan struct{}, 1), miss: make(chan struct{}, 1), next: make(chan struct{}), book: newBook(DefaultPerTenant, DefaultTotal), keep: DefaultKeep}
	k.Configure(o.PerTenant, o.Total, o.Keep)
	return k
}

// Configure puts other bounds into force; 0 takes the default. What is beyond them goes
// as further ids come.
func (k *Keeper) Configure(perTenant, total int, keep time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.book.perTenant, k.book.total, k.keep = DefaultPerTenant, DefaultTotal, DefaultKeep
	if perTenant > 0 {
		k.book.perTenant = perTenant
	}
	if total > 0 {
		k.book.total = total
	}
	if keep > 0 {
		k.keep = keep
	}
}

// Load reads what a store has: what Options.Store stands for. It is called before Start,
// until it succeeds.
func (k *Keeper) Load(ctx context.Context, from Store) error {
	now := time.Now()
	at, err := from.ReadState(ctx, k.read, now, func(r Record) { k.take(now, &r) })
	if err != nil {
		return err
	}
	k.read = at
	return nil
}

// take remembers what the store says.
func (k *Keeper) take(now time.Time, r *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.book.put(now, r, true)
}

// Keep remembers that a place keeps ids for a tenant: they are in an answer that is being
// delivered, or a request that refers to them was served there. Owned counts those that
// are another tenant's, and stay that.
func (k *Keeper) Keep(t sluice.TenantID, pin route.Pin, ids []route.State) (owned int) {
	return k.KeepOf("", t, pin, ids)
}

// KeepOf is Keep of what was made for a request for a model, which Find then tells.
func (k *Keeper) KeepOf(m sluice.ModelID, t sluice.TenantID, pin route.Pin, ids []route.State) (owned int) {
	if len(ids) == 0 {
		return 0
	}
	now := time.Now()
	var ops []Op
	k.mu.Lock()
	for _, id := range ids {
		r := Record{Mark: MarkOf(id), Tenant: t, Pin: pin, Model: m, Until: now.Add(k.keep)}
		write, taken := k.book.put(now, &r, false)
		if !taken {
			owned++
		}
		for _, d := range k.book.dropped {
			ops = append(ops, Op{Record: d, Drop: true})
		}
		if write && k.due(&r) {
			ops = append(ops, Op{Record: r})
		}
	}
	k.mu.Unlock()
	k.write(ops)
	return owned
}

// Forget forgets a tenant's ids: what they stood for is no longer kept.
func (k *Keeper) Forget(t sluice.TenantID, ids []route.State) {
	var ops []Op
	k.mu.Lock()
	for _, id := range ids {
		if r, ok := k.book.forget(t, MarkOf(id)); ok {
			ops = append(ops, Op{Record: r, Drop: true})
		}
	}
	k.mu.Unlock()
	k.write(ops)
}

// due reports whether the store is to be told of a record: it is new, or a sixteenth of its
// time has gone since the store was told. The record is then of the model that made it
// first. REQUIRES: mu is held.
func (k *Keeper) due(r *Record) bool {
	for i := k.book.marks[r.Mark]; i != 0; i = k.book.entries[i].next {
		e := &k.book.entries[i]
		if e.shelf.tenant != r.Tenant {
			continue
		}
		if e.until-e.told < (k.keep / 16).Microseconds() {
			return false
		}
		e.told, r.Model = e.until, e.place.model
	}
	return true
}

// write has the store told of changes soon.
func (k *Keeper) write(ops []Op) {
	if len(ops) == 0 {
		return
	}
	k.waiting.Lock()
	k.pending = append(k.pending, ops...)
	if over := len(k.pending) - MaxPending; over > 0 {
		k.pending = append(k.pending[:0:0], k.pending[over:]...)
		k.lost += int64(over)
	}
	k.waiting.Unlock()
	signal(k.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Found is where ids of a request are.
type Found struct {
	Pin     *route.Pin     // the place of those that are known; nil if none is
	Model   sluice.ModelID // that was asked for when the first of them was made; empty where that is not known
	Unknown *route.State   // the first that is not the tenant's, nil if all are
	Owned   bool           // some such is another tenant's
	Split   *route.State   // the first that is kept at another place than one before it, nil if all are at one
}

// Find is where ids are kept for a tenant. Where other replicas write to the store, one
// that is unknown waits until what they have written by now is read, a second at most.
func (k *Keeper) Find(ctx context.Context, t sluice.TenantID, ids []route.State) Found {
	f := k.find(t, ids)
	if f.Unknown != nil && k.o.Shared() && k.await(ctx) {
		f = k.find(t, ids)
	}
	return f
}

func (k *Keeper) find(t sluice.TenantID, ids []route.State) (f Found) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range ids {
		m := MarkOf(ids[i])
		at, owned := k.book.find(now, t, m), k.book.owned(now, m)
		switch {
		case at == nil:
			f.Owned = f.Owned || owned
			if f.Unknown == nil {
				f.Unknown = &ids[i]
			}
		case f.Pin == nil:
			f.Pin, f.Model = &at.pin, at.model
		case *f.Pin != at.pin && f.Split == nil:
			f.Split = &ids[i]
		}
	}
	return f
}

// await waits for a reading of the store that begins from now on. It reports whether there
// was one.
func (k *Keeper) await(ctx context.Context) bool {
	k.waiting.Lock()
	read := k.next
	k.waiting.Unlock()
	signal(k.miss)
	most := time.NewTimer(missWait)
	defer most.Stop()
	select {
	case <-read:
		return true
	case <-most.C:
	case <-ctx.Done():
	}
	return false
}

// Stats is what a Keeper has and what it has to do.
type Stats struct {
	IDs     int   // remembered
	Tenants int   // that have any
	Pending int   // changes that wait for the store
	Lost    int64 // changes that the store was never told, for want of room
}

// Stats counts.
func (k *Keeper) Stats() Stats {
	k.mu.Lock()
	s := Stats{IDs: k.book.len(), Tenants: len(k.book.shelves)}
	k.mu.Unlock()
	k.waiting.Lock()
	defer k.waiting.Unlock()
	s.Pending, s.Lost = len(k.pending), k.lost
	return s
}
