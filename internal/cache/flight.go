package cache

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"sluice"
	"sluice/internal/exchange"
)

// flightKey is which requests are made one: those of one tenant, whoever it shares its
// kept answers with, that wait alike.
type flightKey struct {
	key    Key
	tenant sluice.TenantID
	class  sluice.Class
}

// window is how much of an answer that is not kept whole waits for the slowest of those
// who read it.
const window = 64 << 10

// flight is one run of a request whose answer goes to all who asked for the same
// meanwhile. It is the client of its exchange, which writes into it, and its readers read
// from it at their own pace.
//
// As long as all of the answer fits into the bounds it is kept whole, nobody waits for
// anybody, and others may join. Beyond them nobody joins any more, what all have read is
// let go, and the backend is read no faster than the slowest reader, whose own client has
// a deadline for each write.
type flight struct {
	limit    int           // bytes that are kept
	buffered *atomic.Int64 // by all flights; at most budget
	budget   int64
	leader   exchange.Client      // of the request that runs
	cancel   func(error)          // ends the run
	done     chan struct{}        // closed when the run has ended
	mu       sync.Mutex           // guards what follows
	space    sync.Cond            // a reader has read on, or left
	head     *exchange.Head       // nil while there is no content
	stream   bool                 //
	body     []byte               // from base on, or the answer in one piece
	base     int                  // bytes that were let go
	over     bool                 // it is not kept whole
	closed   bool                 // nobody joins any more
	ended    bool                 // res is set
	res      exchange.Result      // of the run
	readers  map[*reader]struct{} //
}

// reader is one of those who get the answer.
type reader struct {
	pos  int           // bytes that it has been given
	wake chan struct{} // there may be more; one place
}

var _ exchange.Client = (*flight)(nil)

// newFlight makes one with its first reader, whose request runs.
func newFlight(limit int, buffered *atomic.Int64, budget int64, leader exchange.Client) (*flight, *reader) {
	f := &flight{limit: limit, buffered: buffered, budget: budget, leader: leader, done: make(chan struct{}), readers: make(map[*reader]struct{})}
	f.space.L = &f.mu
	first := &reader{wake: make(chan struct{}, 1)}
	f.readers[first] = struct{}{}
	return f, first
}

// join adds a reader; nil where nobody can join any more.
func (f *flight) join() *reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.over || f.ended && f.res.Err != nil {
		return nil
	}
	r := &reader{wake: make(chan struct{}, 1)}
	f.readers[r] = struct{}{}
	return r
}

// leave takes a reader out. With the last one the run has nobody to run for, and ends.
func (f *flight) leave(r *reader, why error) {
	f.mu.Lock()
	_, was := f.readers[r]
	delete(f.readers, r)
	last := was && len(f.readers) == 0 && !f.ended
	f.closed = f.closed || last
	f.space.Broadcast()
	f.mu.Unlock()
	if last {
		f.cancel(why)
	}
}

// finish says how the run has ended.
func (f *flight) finish(res exchange.Result) {
	f.mu.Lock()
	f.res, f.ended = res, true
	f.wake()
	f.mu.Unlock()
	close(f.done)
}

// drop lets the buffer go, once nobody can join any more. Those who still read have what
// they need.
func (f *flight) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.stream && !f.over {
		f.buffered.Add(-int64(len(f.body)))
	}
}

// wake tells all readers. REQUIRES: mu is held.
func (f *flight) wake() {
	for r := range f.readers {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// Committed implements exchange.Client: it is what the client of the request that runs has.
func (f *flight) Committed() bool { return f.leader.Committed() }

// Events implements exchange.Client.
func (f *flight) Events(h *exchange.Head, p []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(h, true)
	if !f.over && (len(f.body)+len(p) > f.limit || f.buffered.Load()+int64(len(p)) > f.budget) {
		f.over = true
		f.buffered.Add(-int64(len(f.body)))
	}
	if f.over && !f.room() {
		return errNobody
	}
	if !f.over {
		f.buffered.Add(int64(len(p)))
	}
	f.body = append(f.body, p...)
	f.wake()
	return nil
}

// errNobody ends the run of a request that nobody waits for any more.
var errNobody = &sluice.Error{Kind: sluice.KindCancelled, Reason: sluice.ClientGone, Msg: "the client left"}

// room lets go what all have read, and waits until the slowest has not more than a window
// to read. It is false when all have left. REQUIRES: mu is held, and over.
func (f *flight) room() bool {
	for len(f.readers) > 0 {
		least := f.base + len(f.body)
		for r := range f.readers {
			least = min(least, r.pos)
		}
		if n := least - f.base; n > 0 { // what is being read stays where it is
			f.body, f.base = bytes.Clone(f.body[n:]), least
		}
		if len(f.body) <= window {
			return true
		}
		f.space.Wait()
	}
	return false
}

// Answer implements exchange.Client.
func (f *flight) Answer(h *exchange.Head, body []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(h, false)
	f.body, f.over = body, len(body) > f.limit
	f.wake()
	return nil
}

// begin notes what is told of the answer. REQUIRES: mu is held.
func (f *flight) begin(h *exchange.Head, stream bool) {
	if f.head == nil {
		head := *h
		f.head, f.stream = &head, stream
	}
}

// headFor is the head for one reader's client, which says of the cache what is given.
func (f *flight) headFor(told string) *exchange.Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := *f.head
	h.Cache = told
	return &h
}

// state is how far a flight is, for one of its readers.
type state struct {
	content bool
	ended   bool
	res     *exchange.Result // once ended
	left    error            // why the reader's own request has ended
}

// await waits until there is content, or with whole until the end, or until ctx ends.
func (f *flight) await(ctx context.Context, r *reader, whole bool) state {
	for {
		f.mu.Lock()
		s := state{content: f.head != nil, ended: f.ended}
		if s.ended {
			s.res = &f.res
		}
		f.mu.Unlock()
		if s.ended || s.content && !whole {
			return s
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			s.left = context.Cause(ctx)
			return s
		}
	}
}

// follow gives a reader's client what there is of the answer, and what comes, up to its
// end. head is made with the first content. The error is why the client takes no more.
func (f *flight) follow(ctx context.Context, r *reader, c exchange.Client, head func() *exchange.Head) error {
	var h *exchange.Head
	for {
		f.mu.Lock()
		have, stream, ended := f.head != nil, f.stream, f.ended
		var part []byte
		if have {
			part = f.body[r.pos-f.base:]
			part = part[:len(part):len(part)]
		}
		f.mu.Unlock()
		if have && h == nil {
			h = head()
		}
		switch {
		case have && !stream:
			return c.Answer(h, part)
		case len(part) > 0:
			if err := c.Events(h, part); err != nil {
				return err
			}
			f.mu.Lock()
			r.pos += len(part)
			f.space.Broadcast()
			f.mu.Unlock()
			continue
		case ended:
			return nil
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// whole is the answer of a flight that has ended well and was kept whole.
func (f *flight) whole() (head *exchange.Head, stream bool, body []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended || f.res.Err != nil || f.head == nil || f.over {
		return nil, false, nil, false
	}
	return f.head, f.stream, f.body, true
}
