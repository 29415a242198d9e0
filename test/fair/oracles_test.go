package fair

import (
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
)

// script builds a log by hand: every request costs 100 and its flow is its client.
type script struct {
	log *Log
	now time.Duration
}

func newScript(weights ...int64) *script {
	s := &script{log: &Log{Cost: Cost{1, 2}}}
	for i, w := range weights {
		s.log.Clients = append(s.log.Clients, Client{Tenant: sluice.TenantID(rune('a' + i)), Weight: w})
	}
	p := pool(backend("b", route.Capacity{Concurrency: 2}))
	s.log.Tables = []*route.Table{{Pools: map[sluice.PoolID]*route.Pool{"p": p[0]}}}
	s.add(Event{Kind: Capacity})
	return s
}

func (s *script) add(e Event) {
	e.At = s.now
	s.log.Events = append(s.log.Events, e)
	s.log.Ended = s.now
}

// ask is n requests of a client that wait.
func (s *script) ask(client, n int) (first int) {
	first = len(s.log.Requests)
	for range n {
		c := s.log.Clients[client]
		id := len(s.log.Requests)
		s.log.Requests = append(s.log.Requests, Request{Client: client, Tenant: c.Tenant, Project: "default", Pool: "p", At: s.now, Work: sluice.Work{Input: 100}, True: Size{In: 100}})
		s.add(Event{Kind: Arrive, Req: id})
		s.add(Event{Kind: Enqueue, Req: id})
	}
	return first
}

func (s *script) start(id int) { s.add(Event{Kind: Dispatch, Req: id, Backend: "b", Cost: 100}) }
func (s *script) end(id int)   { s.add(Event{Kind: End, Req: id, Backend: "b"}) }
func (s *script) later()       { s.now += time.Second }

// serve runs requests one after another.
func (s *script) serve(ids ...int) {
	for _, id := range ids {
		s.start(id)
		s.later()
		s.end(id)
	}
}

// Fairness measures what can be counted by hand: with one request in flight the
// bound is 2·(100+100), and a run of n requests of one flow is a difference of
// 100·n.
func TestFairnessCounts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		weights []int64
		order   []int // of clients
		of      float64
		fails   bool
	}{
		{"in turn", []int64{1, 1}, []int{0, 1, 0, 1, 0, 1}, 100, false},
		{"four in a row", []int64{1, 1}, []int{0, 1, 0, 0, 0, 0, 1}, 400, false},
		{"five in a row", []int64{1, 1}, []int{0, 0, 0, 0, 0, 1}, 500, true},
		{"a run that begins and ends in the middle", []int64{1, 1}, []int{1, 1, 0, 0, 0, 0, 0, 1, 1}, 500, true},
		{"by weight", []int64{1, 2}, []int{0, 1, 1, 0, 1, 1, 0, 1, 1}, 100, false},
		{"against the weights", []int64{1, 2}, []int{0, 0, 0, 0, 0, 0, 1}, 600, true},
	} {
		s := newScript(tt.weights...)
		next := []int{s.ask(0, 20), s.ask(1, 20)}
		for _, c := range tt.order {
			s.serve(next[c])
			next[c]++
		}
		got, err := Fairness(s.log, Tenants, 0)
		if got.Of != tt.of || (err != nil) != tt.fails {
			t.Errorf("%s: got %v, %v, want a difference of %.0f", tt.name, got, err, tt.of)
		}
	}
}

// What a flow does not want is nobody's debt: a span ends when a queue is empty.
func TestFairnessSpans(t *testing.T) {
	s := newScript(1, 1)
	a := s.ask(0, 30)
	b := s.ask(1, 1)
	s.serve(b, a, a+1, a+2, a+3, a+4, a+5, a+6, a+7)
	b = s.ask(1, 10)
	s.serve(a+8, b, a+9, b+1)
	if got, err := Fairness(s.log, Tenants, 0); err != nil || got.Judged != 2 {
		t.Errorf("got %v, %v, want two spans that are fair", got, err)
	}
	if _, err := BoundedWait(s.log, 0); err != nil {
		t.Error(err)
	}
	s = newScript(1, 1)
	a, b = s.ask(0, 30), s.ask(1, 1)
	s.serve(a, a+1, a+2, a+3, a+4, a+5, a+6, a+7, a+8, a+9, b)
	if got, err := BoundedWait(s.log, 0); err == nil {
		t.Errorf("a head that ten others pass waits a bounded time: %v", got)
	}
}

// Conservation sees every line that is missing, or there twice, in a log that is
// right as it is.
func TestConservationSees(t *testing.T) {
	w := unequal(FIFO, 5*time.Second)
	w.Gauges, w.Drain = true, true
	l := Run(w)
	if err := Conservation(l); err != nil {
		t.Fatal(err)
	}
	sees := []Kind{Arrive, Enqueue, Dispatch, End}
	for _, kind := range sees {
		at := slices.IndexFunc(l.Events, func(e Event) bool { return e.Kind == kind && e.At > time.Second })
		events := l.Events
		l.Events = slices.Delete(slices.Clone(events), at, at+1)
		if Conservation(l) == nil {
			t.Errorf("a %v is missing and nobody sees it", kind)
		}
		l.Events = slices.Insert(slices.Clone(events), at, events[at])
		if Conservation(l) == nil {
			t.Errorf("a %v is there twice and nobody sees it", kind)
		}
		l.Events = events
	}
	s := newScript(1)
	first := s.ask(0, 3)
	s.start(first)
	s.start(first + 1)
	s.start(first + 2)
	if Conservation(s.log) == nil {
		t.Error("three run on two slots and nobody sees it")
	}
}

func TestWorkConservingSees(t *testing.T) {
	s := newScript(1, 1)
	a, b := s.ask(0, 2), s.ask(1, 1)
	s.start(a)
	s.start(a + 1)
	s.later()
	s.end(a)
	s.start(b)
	s.later()
	s.end(a + 1)
	if err := WorkConserving(s.log); err != nil {
		t.Error(err)
	}
	c := s.ask(0, 1)
	s.later()
	s.start(c)
	if WorkConserving(s.log) == nil {
		t.Error("a request waits beside a free slot and nobody sees it")
	}
}

func TestTurnCounts(t *testing.T) {
	s := newScript(1, 1)
	a := s.ask(0, 2)
	s.start(a)
	s.start(a + 1)
	b := s.ask(1, 1) // at 0, the first of its flow
	s.later()
	s.later()
	s.end(a)
	s.later()
	s.start(b) // the turn ended a second ago
	s.end(a + 1)
	s.end(b)
	if got, want := Turn(s.log, 1, 0), 2*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The measure of the published runs, by hand: one request of 100 over two seconds
// and nothing for the other client.
func TestAccumulatedDifferenceCounts(t *testing.T) {
	s := newScript(1, 1)
	a := s.ask(0, 1)
	s.start(a)
	s.add(Event{Kind: First, Req: a, Backend: "b", Seen: 1})
	s.later()
	s.later()
	s.add(Event{Kind: End, Req: a, Backend: "b", Seen: 50})
	s.later()
	b := s.ask(1, 1)
	s.start(b)
	s.add(Event{Kind: First, Req: b, Backend: "b", Seen: 1})
	s.later()
	s.later()
	s.add(Event{Kind: End, Req: b, Backend: "b", Seen: 50})
	s.later()
	s.ask(0, 1)
	if got, want := s.log.AccumulatedDifference(time.Second/2), 200.0; got < want-0.01 || got > want+0.01 {
		t.Errorf("got %v, want %v", got, want)
	}
}
