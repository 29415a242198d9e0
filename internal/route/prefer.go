package route

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"sluice"
	"sluice/internal/sched"
)

// Prefer is what of a model's first pools comes first, and of a pool's backends.
type Prefer uint8

// What may be preferred.
const (
	PreferNone    Prefer = iota // the order of the table
	PreferLatency               // where an answer is expected to be whole first
	PreferPrice                 // where it is expected to cost least
)

var preferWords = []string{"", "latency", "price"}

// String is the word of the configuration, empty for none.
func (p Prefer) String() string { return preferWords[p] }

// PreferNamed is what a word of the configuration stands for; PreferNone if it is none.
func PreferNamed(word string) Prefer { return Prefer(max(slices.Index(preferWords, word), 0)) }

// Preferences are the words of the configuration.
func Preferences() []string { return preferWords[1:] }

// Figure is what a preference goes by, of a backend or of the best one of a pool.
type Figure struct {
	Time  time.Duration // until the answer is whole, waiting included
	Known bool          // something has been learned of how soon it answers
	Price sluice.Nano   // of what the request is expected to take
}

// The band within which times are alike: a quarter of the least, and what the network
// alone may make of a difference. Expectations are learned from few answers and move
// with each; a band keeps them from turning requests to and fro.
const (
	alikePart = 4
	alikeTime = 25 * time.Millisecond
)

// Best is the figure that others are held against. What nobody knows anything of is
// taken to be as good as the best that is known, so that it is tried.
func (p Prefer) Best(figures []Figure) Figure {
	best := Figure{Time: math.MaxInt64, Price: math.MaxInt64}
	for _, f := range figures {
		best.Price = min(best.Price, f.Price)
		if f.Known || p != PreferLatency {
			best.Time, best.Known = min(best.Time, f.Time), true
		}
	}
	return best
}

// Worse reports whether f is so much worse than the best that it comes after.
func (p Prefer) Worse(f, best Figure) bool {
	switch p {
	case PreferLatency:
		return f.Known && best.Known && f.Time-best.Time > best.Time/alikePart+alikeTime
	case PreferPrice:
		return f.Price > best.Price
	}
	return false
}

// Left is the word for what is left out since another is better.
func (p Prefer) Left() Left {
	if p == PreferPrice {
		return LeftPricier
	}
	return LeftSlower
}

// Sort puts what figures are of into the order of a preference, by swapping. What is
// alike keeps its order.
func (p Prefer) Sort(figures []Figure, swap func(i, j int)) {
	for from := range figures {
		best := p.Best(figures[from:])
		at := from
		for p.Worse(figures[at], best) {
			at++
		}
		for ; at > from; at-- {
			figures[at], figures[at-1] = figures[at-1], figures[at]
			swap(at, at-1)
		}
	}
}

// PaceKept is how long what was learned of a backend's pace counts. After that it is
// as one of which nothing is known, so that one which has become faster is found.
const PaceKept = 5 * time.Minute

// pace is what is learned of how soon a backend answers.
type pace struct {
	first mean // beyond the prefill of what was there, in nanoseconds
	token mean // of an output token, in nanoseconds
}

// mean is a running mean of the last eight or so.
type mean struct {
	at int64
	n  int64 // observations, at most meanOf
	v  int64
}

const meanOf = 8

func (m *mean) observe(now, v int64) {
	if now-m.at > int64(PaceKept) {
		m.n = 0
	}
	if m.n < meanOf {
		m.n++
	}
	if m.n == 1 {
		m.v = 0
	}
	m.at = now
	if m.n == meanOf { // most often, and a constant divides sooner
		m.v += (v - m.v) / meanOf
	} else {
		m.v += (v - m.v) / m.n
	}
}

func (m *mean) known(now int64) bool { return m.n > 0 && now-m.at <= int64(PaceKept) }

// Expected is when an answer to so much uncached input, of so much output, is expected
// to be whole: prefill of what is there already and of its own at the configured rate, if
// there is one, the time to the first token beyond that, and the output, both as
// learned.
//
//	(P + u)/R + first + n · token
func (p *Place) Expected(now time.Time, input, output sluice.Tokens) Figure {
	p.tick(now)
	f := Figure{Known: p.pace.first.known(p.at) || p.pace.token.known(p.at)}
	t := p.prefillTime(input)
	if p.pace.first.known(p.at) {
		t += p.pace.first.v
	}
	if p.pace.token.known(p.at) {
		hi, lo := bits.Mul64(uint64(max(output, 0)), uint64(max(p.pace.token.v, 0)))
		if hi > 0 || lo > math.MaxInt64>>2 {
			lo = math.MaxInt64 >> 2
		}
		t += int64(lo)
	}
	f.Time = time.Duration(t)
	return f
}

// prefillTime is how long the backend computes what it has and so much more, by the rate
// that is configured; 0 without one.
func (p *Place) prefillTime(input sluice.Tokens) int64 {
	if p.Backend.Capacity.PrefillRate <= 0 {
		return 0
	}
	return spread(int64(p.prefill+max(input, 0)), int64(time.Second), p.Backend.Capacity.PrefillRate)
}

// learn takes what was seen of an attempt.
func (p *Place) learn(now time.Time, t *Taken, s *sched.Sample) {
	if s.First > 0 {
		p.pace.first.observe(p.at, max(0, int64(s.First)-t.expected))
	}
	if s.Tokens > 0 && s.Took > 0 {
		p.pace.token.observe(p.at, int64(s.Took)/int64(s.Tokens))
	}
	if !p.steady() {
		p.limit.Observe(now, *s)
	}
}
