package demand

import (
	"math"
	"math/bits"
	"time"
)

// Axis is one thing that a request asks for.
type Axis uint8

// The axes.
const (
	Requests Axis = iota
	Input         // input tokens, cached or not
	Uncached      // input tokens to be computed
	Output        // expected output tokens
	KV            // tokens of memory, with the room for the answer

	NumAxes = 5
)

// Work is what a request asks for, by axis.
type Work [NumAxes]int64

func (w *Work) add(o *Work, sign int64) {
	for i, n := range o {
		w[i] += sign * n
	}
}

// Rates is work per second, in millionths.
type Rates [NumAxes]int64

// Kind is who asks.
type Kind uint8

// The kinds.
const (
	Urgent Kind = iota // interactive and standard
	Batch

	numKinds = 2
)

// The windows, to which the part of a second is added that is under way.
const (
	Short = 10 * time.Second // of ratios
	Long  = time.Minute      // of replicas

	bucket  = time.Second
	buckets = int64(Long/bucket) + 1
)

// Meter adds up what is offered to a pool. The zero value is ready.
type Meter struct {
	begun bool
	base  time.Time // of buckets
	now   time.Duration
	at    int64 // the bucket under way
	kinds [numKinds]tally
	peaks peaks
}

// tally is what was offered since the beginning, and what left the queue.
type tally struct {
	offered, left Work
	marks         [buckets]Work // left, at the beginning of each of the last buckets
}

// Tick takes the time. All other calls do too.
func (m *Meter) Tick(now time.Time) {
	if now.IsZero() { // nothing has happened yet
		return
	}
	if !m.begun {
		m.begun, m.base = true, now
		m.peaks.start(0)
	}
	m.now = max(m.now, now.Sub(m.base))
	next := int64(m.now / bucket)
	if next == m.at {
		return
	}
	if skipped := next - m.at - buckets; skipped > 0 { // all that is kept is the same from here on
		m.roll(buckets)
		m.at += skipped
		m.peaks.at(time.Duration(m.at) * bucket)
	}
	m.roll(next - m.at)
}

// roll begins so many buckets.
func (m *Meter) roll(n int64) {
	for ; n > 0; n-- {
		m.at++
		for k := range m.kinds {
			t := &m.kinds[k]
			t.marks[m.at%buckets] = t.left
		}
		begun := time.Duration(m.at) * bucket
		m.peaks.at(begun)
		for k := range m.kinds {
			r := m.rates(Kind(k), Long, begun)
			m.peaks.add(Kind(k), &r)
		}
	}
}

// Offer counts work that joins the pool's queue, or that was refused for want of room:
// then Leave follows at once.
func (m *Meter) Offer(now time.Time, k Kind, w *Work) {
	m.Tick(now)
	m.kinds[k].offered.add(w, 1)
}

// Leave notes that offered work waits no more: it runs, or it was given up.
func (m *Meter) Leave(now time.Time, k Kind, w *Work) {
	m.Tick(now)
	m.kinds[k].left.add(w, 1)
}

// Retract takes back work that was offered and waits, as if it had not been.
func (m *Meter) Retract(now time.Time, k Kind, w *Work) {
	m.Tick(now)
	m.kinds[k].offered.add(w, -1)
}

// Correct lowers what was offered, and has left, to what it turned out to be: REQUIRES
// that each is at most what was counted of it.
func (m *Meter) Correct(now time.Time, k Kind, less *Work) {
	m.Tick(now)
	m.kinds[k].offered.add(less, -1)
	m.kinds[k].left.add(less, -1)
}

// Rates is what is offered over a window, Short or Long: of both kinds, or without
// batch.
func (m *Meter) Rates(now time.Time, window time.Duration, batch bool) Rates {
	m.Tick(now)
	r := m.rates(Urgent, window, m.now)
	if batch {
		r.add(m.rates(Batch, window, m.now))
	}
	return r
}

// rates is what a kind was offered per second from the beginning of the bucket that is
// the window away until a moment in the bucket under way.
func (m *Meter) rates(k Kind, window, until time.Duration) (r Rates) {
	t := &m.kinds[k]
	from := max(m.at-int64(window/bucket), 0)
	passed := max(until-time.Duration(from)*bucket, window) // what was before the beginning counts as nothing
	mark := &t.marks[from%buckets]
	for i := range r {
		r[i] = mulDiv(t.offered[i]-mark[i], 1_000_000*int64(time.Second), int64(passed))
	}
	return r
}

func (r *Rates) add(o Rates) {
	for i, n := range o {
		r[i] = saturating(r[i], n)
	}
}

func saturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// mulDiv is a·b÷c, rounded down, of what is not negative; at most MaxInt64.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	quo, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(quo, math.MaxInt64))
}
