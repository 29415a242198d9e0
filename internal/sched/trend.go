package sched

import (
	"math/bits"
	"slices"
	"time"

	"sluice"
)

// lot is the latest values of a window, with their weights.
type lot struct {
	of [64]struct{ v, weight int64 }
	n  int64 // seen, of which the latest are kept
}

func (q *lot) add(v, weight int64) {
	q.of[q.n%int64(len(q.of))] = struct{ v, weight int64 }{v, weight}
	q.n++
}

// mean counts what is far above the middle as three times that: a client that
// reads slowly is not the backend's doing.
func (q *lot) mean() int64 {
	var sorted [len(q.of)]int64
	kept := q.of[:min(q.n, int64(len(q.of)))]
	for i, x := range kept {
		sorted[i] = x.v
	}
	slices.Sort(sorted[:len(kept)])
	most := 3*sorted[len(kept)/2] + int64(time.Millisecond)
	sum, weights := int64(0), int64(0)
	for _, x := range kept {
		w := min(x.weight, 1<<10)
		sum += min(x.v, most) * w
		weights += w
	}
	return sum / weights
}

// trend is the line through points that is least wrong about their y.
type trend struct {
	x, y          int64 // means
	spread, joint int64 // variance of x, covariance
	seen          int64 // up to lineMemory
}

const (
	lineMemory  = 64
	lineWarm    = 8
	leastSpread = 64 * 64
	mostInput   = 1 << 20
	mostMicros  = int64(time.Hour / time.Microsecond)
)

// delay is by how much a first token came later than an idle backend would have
// sent it, in ns, never negative. The line of (uncached input, time) learns from
// what an idle backend shows, and from what comes sooner than it says.
func (p *trend) delay(prefill sluice.Tokens, first time.Duration, idle bool) int64 {
	x := int64(min(max(prefill, 0), mostInput))
	y := min(int64(first/time.Microsecond), mostMicros)
	if idle || p.seen < lineWarm || y < p.at(x) {
		p.learn(x, y)
	}
	return max(0, y-p.at(x)) * int64(time.Microsecond)
}

func (p *trend) learn(x, y int64) {
	p.seen = min(p.seen+1, lineMemory)
	dx, dy := x-p.x, y-p.y
	p.x += dx / p.seen
	p.y += dy / p.seen
	p.spread += (dx*(x-p.x) - p.spread) / p.seen
	p.joint += (dx*(y-p.y) - p.joint) / p.seen
}

// at is the line's y at x, from 0 to mostMicros: the mean where the points lie
// too close together for a line, or y does not grow with x.
func (p *trend) at(x int64) int64 {
	y := p.y
	if p.spread > leastSpread && p.joint > 0 {
		if d := x - p.x; d >= 0 {
			y += scaled(d, p.joint, p.spread)
		} else {
			y -= scaled(-d, p.joint, p.spread)
		}
	}
	return min(max(y, 0), mostMicros)
}

// scaled is a × b ÷ c, rounded towards zero, from 0 to 2⁶⁰. c is above 0.
func scaled(a, b, c int64) int64 {
	const most = 1 << 60
	if a <= 0 || b <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, most))
}
