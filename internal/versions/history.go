package versions

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Bounds of what a History remembers: the newest two versions, and of those before
// them so many and so many bytes.
const (
	maxRemembered = 32
	maxHeldBytes  = 64 << 20
)

// Defaults of Options.
const (
	defaultRetry   = time.Second
	defaultTimeout = 500 * time.Millisecond
)

// Options configures a History. Store is required.
type Options struct {
	Store   Store
	Log     *slog.Logger  // nil discards
	Retry   time.Duration // between two tries at a store that takes nothing; 0 is 1 s
	Timeout time.Duration // of the first try, for which the caller waits; 0 is 500 ms
}

// History is what has been in force in this process, newest last, and the store that
// keeps it. Its methods are safe for concurrent use.
type History struct {
	o    Options
	wake chan struct{} // one place: something waits
	stop context.CancelFunc
	done sync.WaitGroup

	turn sync.Mutex // held while versions are offered, so that they go in order; taken before mu

	mu    sync.Mutex
	known []Version // guarded by mu; those without a number have yet to be taken
}

// New makes a History without anything in it. Start and Close it.
func New(o Options) *History {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &History{o: o, wake: make(chan struct{}, 1)}
}

// Start begins to offer the store what it has not taken.
func (h *History) Start(ctx context.Context) {
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.done.Go(func() {
		for {
			select {
			case <-h.wake:
			case <-ctx.Done():
				return
			}
			for !h.offer(ctx) {
				select {
				case <-time.After(h.o.Retry):
				case <-ctx.Done():
					return
				}
			}
		}
	})
}

// Close ends it. What the store has not taken by then is offered a last time.
func (h *History) Close() {
	if h.stop == nil {
		return
	}
	h.stop()
	h.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), h.o.Timeout)
	defer cancel()
	if !h.offer(ctx) {
		h.o.Log.Warn("the history of the configuration lacks what the store did not take before the end", slog.Int("versions", h.waiting()))
	}
}

// Add notes that a version is in force from now on, and returns it with its number,
// 0 if the store does not take it at once.
func (h *History) Add(ctx context.Context, v Version) Version {
	h.mu.Lock()
	h.known = append(h.known, v)
	h.forget()
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	if !h.offer(ctx) {
		h.Wake()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.known {
		if h.known[i].ID == v.ID {
			return h.known[i]
		}
	}
	return v
}

// Wake has the store tried again soon, such as when it is there.
func (h *History) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// forget drops the oldest beyond the bounds. REQUIRES: mu is held.
func (h *History) forget() {
	var size int64
	for i := range h.known {
		size += h.known[i].Size()
	}
	for len(h.known) > 2 && (len(h.known) > maxRemembered || size > maxHeldBytes) {
		if v := &h.known[0]; v.Number == 0 {
			h.o.Log.Error("the history of the configuration loses a version that the store never took", slog.String("version", v.Hash), slog.Time("at", v.At))
		}
		size -= h.known[0].Size()
		h.known = slices.Delete(h.known, 0, 1)
	}
}

// offer gives the store what it has not taken, in order. It reports whether nothing
// is left.
func (h *History) offer(ctx context.Context) bool {
	h.turn.Lock()
	defer h.turn.Unlock()
	for {
		v, ok := h.next()
		if !ok {
			return true
		}
		n, err := h.o.Store.AddVersion(ctx, v)
		if err != nil {
			h.o.Log.Debug("the store does not take a version of the configuration yet", slog.String("version", v.Hash), slog.Any("error", err))
			return false
		}
		h.mu.Lock()
		for i := range h.known {
			if h.known[i].ID == v.ID {
				h.known[i].Number = n
			}
		}
		h.mu.Unlock()
	}
}

// next is the oldest version that the store has not taken.
func (h *History) next() (Version, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.known {
		if h.known[i].Number == 0 {
			return h.known[i], true
		}
	}
	return Version{}, false
}

func (h *History) waiting() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.known {
		if h.known[i].Number == 0 {
			n++
		}
	}
	return n
}

// Current is the version in force; false before the first Add.
func (h *History) Current() (Version, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) == 0 {
		return Version{}, false
	}
	return h.known[len(h.known)-1], true
}

// Previous is the newest version that means something else than the one in force: of
// this process, else of the store. Missing if there is none.
func (h *History) Previous(ctx context.Context) (Version, error) {
	current, ok := h.Current()
	if !ok {
		return Version{}, Missing(Ref{})
	}
	if v, ok := h.remembered(func(v *Version) bool { return v.Hash != current.Hash }); ok {
		return v, nil
	}
	before := int64(0)
	for {
		page, err := h.o.Store.ListVersions(ctx, before, 100)
		if err != nil {
			return Version{}, err
		}
		for i := range page {
			if page[i].Hash != current.Hash {
				return h.o.Store.FindVersion(ctx, Ref{Number: page[i].Number})
			}
			before = page[i].Number
		}
		if len(page) == 0 {
			return Version{}, Missing(Ref{Hash: "before " + current.Hash})
		}
	}
}

// remembered is the newest version of this process that meets a condition.
func (h *History) remembered(meets func(*Version) bool) (Version, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range slices.Backward(h.known) {
		if meets(&v) {
			return v, true
		}
	}
	return Version{}, false
}

// Find is a version by name: of this process, else of the store.
func (h *History) Find(ctx context.Context, r Ref) (Version, error) {
	if v, ok := h.remembered(r.Names); ok {
		return v, nil
	}
	return h.o.Store.FindVersion(ctx, r)
}

// List is a page of versions, newest first, without what they are made of. Those that
// the store has not taken stand first on the first page. While the store is down the
// page is what this process remembers, and partial is why it is no more.
func (h *History) List(ctx context.Context, before int64, limit int) (page []Version, partial error) {
	stored, partial := h.o.Store.ListVersions(ctx, before, limit)
	h.mu.Lock()
	for _, v := range slices.Backward(h.known) {
		taken := func(s Version) bool { return s.ID == v.ID } // and its answer was lost
		if v.Number == 0 && before == 0 && !slices.ContainsFunc(stored, taken) || partial != nil && (before == 0 || v.Number < before) {
			v.Text, v.Changes = "", ""
			page = append(page, v)
		}
	}
	h.mu.Unlock()
	page = append(page, stored...)
	return page[:min(len(page), limit)], partial
}
