package app

import (
	"cmp"
	"slices"
	"time"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/tabletop"
)

// What is taken of backends of which the past says nothing.
const (
	previewLatency   = 300 * time.Millisecond
	previewTokenTime = 20 * time.Millisecond
)

// fit is what entries say of how fast a backend is: sums, since how many it serves in a
// time goes by the mean of how long it takes for each, and not by the median.
type fit struct {
	n       int64         // answers
	tokens  int64         // of theirs, the first of each aside
	whole   time.Duration // that they took, from their place to their end
	least   time.Duration // of one
	streams int64         // of the answers, those whose first token was seen
	first   time.Duration // until that, of all streams
	spans   []span        // in which each ran
}

// span is when an attempt ran.
type span struct{ from, to time.Time }

// learn takes an answer that came whole at the first attempt.
func (r *rehearsal) learn(e *ledger.Entry, output sluice.Tokens) {
	took := e.Duration - e.Queued
	if e.Backend == "" || e.Attempt != 1 || e.Outcome != sluice.Completed || output < 1 || took <= 0 {
		return
	}
	f := r.fits[e.Backend]
	if f == nil {
		f = &fit{least: took}
		r.fits[e.Backend] = f
	}
	f.n, f.tokens, f.whole, f.least = f.n+1, f.tokens+int64(output)-1, f.whole+took, min(f.least, took)
	if first := e.FirstToken - e.Queued; e.FirstToken > 0 && first > 0 {
		f.streams, f.first = f.streams+1, f.first+first
	}
	f.spans = append(f.spans, span{e.At.Add(e.Queued), e.At.Add(e.Duration)})
}

// add takes another backend's.
func (f *fit) add(o *fit) {
	if f.n == 0 || o.least < f.least {
		f.least = o.least
	}
	f.n, f.tokens, f.whole, f.streams, f.first = f.n+o.n, f.tokens+o.tokens, f.whole+o.whole, f.streams+o.streams, f.first+o.first
}

// pace is a time until the first token and one for each after it, by which all answers
// together take as long as they did. What has no stream tells nothing of the first: there
// it is the least time that an answer took, or less.
func (f *fit) pace() (first, token time.Duration, ok bool) {
	if f == nil || f.n == 0 {
		return 0, 0, false
	}
	first = f.least
	if f.streams > 0 {
		first = f.first / time.Duration(f.streams)
	}
	first = min(first, f.whole/time.Duration(f.n))
	if f.tokens > 0 {
		token = (f.whole - time.Duration(f.n)*first) / time.Duration(f.tokens)
	}
	return first, max(token, time.Microsecond), true
}

// most is how many ran at a time.
func (f *fit) most() (most int64) {
	if f == nil {
		return 0
	}
	type edge struct {
		at time.Time
		by int64
	}
	edges := make([]edge, 0, 2*len(f.spans))
	for _, s := range f.spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	n := int64(0)
	for _, e := range edges {
		n += e.by
		most = max(most, n)
	}
	return most
}

// machines play the backends as the entries say that they are; those of which there are
// none, as the others.
func (r *rehearsal) machines(t *route.Table) (out []tabletop.Machine) {
	var all fit
	for _, f := range r.fits {
		all.add(f)
	}
	latency, every, ok := all.pace()
	if !ok {
		latency, every = previewLatency, previewTokenTime
	}
	seen := map[sluice.BackendID]bool{}
	for _, p := range t.Pools {
		for _, b := range p.Backends {
			if seen[b.ID] {
				continue
			}
			seen[b.ID] = true
			first, token, ok := r.fits[b.ID].pace()
			if !ok {
				first, token = latency, every
			}
			out = append(out, tabletop.Steady(b.ID, first, token))
		}
	}
	return out
}
