package tabletop

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/fleet"
)

// TestProperties holds any run to what must hold of each, while it goes on and at
// its end.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyWorld(t)
		o := Options{Policy: rapid.SampledFrom([]string{"sluice", "naive"}).Draw(t, "policy")}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		p, err := newPlay(testContext(), s, &o)
		if err != nil {
			t.Fatal(err)
		}
		for {
			if at, ok := p.next(); ok && at < p.now {
				t.Fatalf("at %v something is due at %v", p.now, at)
			}
			if !p.step() {
				break
			}
			openIsSound(t, p)
		}
		p.m.finish(p)
		p.close()
		endIsSound(t, p)
	})
}

// openIsSound holds what is open to causality, and to what machine and gateway say
// of it.
func openIsSound(t *rapid.T, p *play) {
	running := map[*machine]int{}
	calls := 0
	for q := p.roster.head; q != nil; q = q.next {
		r := &q.run
		if q.from > p.now || r.first > p.now || r.last > p.now || r.first > 0 && (r.first < q.from || r.last < r.first) {
			t.Fatalf("request %d at %v: from %v, first %v, last %v", q.number, p.now, q.from, r.first, r.last)
		}
		if r.seen > q.truth.output || r.seen > 0 && r.first == 0 {
			t.Fatalf("request %d has shown %d of %d tokens, the first at %v", q.number, r.seen, q.truth.output, r.first)
		}
		if q.call != nil {
			calls++
		}
		if (r.on != nil) != (q.call != nil && q.call.Running()) {
			t.Fatalf("request %d: it is on %v, and its call says running: %v", q.number, r.on != nil, q.call != nil && q.call.Running())
		}
		if r.on != nil {
			running[r.on]++
		}
		if h := q.hedge; h != nil {
			if h.of != q || h.hedge != nil || h.run.on == nil || h.run.first > 0 || r.first > 0 || !h.call.Running() || h.run.on == r.on {
				t.Fatalf("request %d: its hedge is %+v beside %+v", q.number, h.run, r)
			}
			calls++
			running[h.run.on]++
		}
	}
	if calls != p.gateway.Open() {
		t.Fatalf("%d requests are at the gateway, which has %d", calls, p.gateway.Open())
	}
	for _, m := range p.machines {
		waited := 0
		for _, q := range m.jobs {
			if q != nil {
				waited++
			}
		}
		if waited > running[m] {
			t.Fatalf("%s plays %d answers that are waited for, and %d requests are there", m.spec.Backend, waited, running[m])
		}
		l := m.sim.Load()
		if l.KVCapacity > 0 && l.KVUsed > l.KVCapacity || l.Running+l.Waiting != len(m.jobs) {
			t.Fatalf("%s: %+v with %d jobs", m.spec.Backend, l, len(m.jobs))
		}
	}
}

// endIsSound holds a run that is over to conservation.
func endIsSound(t *rapid.T, p *play) {
	r := &Result{Ended: p.now}
	p.m.result(p, r)
	r.Phases = append(r.Phases, p.m.phaseOf(p, 0, span{name: "warm-up", to: p.s.Warmup}))
	var requests int64
	for i := range r.Phases {
		ph := &r.Phases[i]
		for _, f := range append([]Named{{"all", ph.All}}, ph.Sources...) {
			if got := f.Completed + f.Failed + f.Cancelled + f.Rejected + f.Unfinished; got != f.Requests {
				t.Fatalf("phase %s, %s: %d requests, %d ends", ph.Name, f.Name, f.Requests, got)
			}
			if f.Good > f.Completed || f.Impatient+f.Left > f.Cancelled {
				t.Fatalf("phase %s, %s: %+v", ph.Name, f.Name, f)
			}
		}
		if b := ph.Books; b.Lost != 0 || b.Twice != 0 || b.Open != 0 || b.Settled != b.Admitted {
			t.Fatalf("phase %s: %+v", ph.Name, b)
		}
		requests += ph.All.Requests
	}
	if requests != p.numbers {
		t.Fatalf("%d requests came up, %d are in a phase", p.numbers, requests)
	}
	for _, m := range p.machines {
		tot, l := m.sim.Totals(), m.sim.Load()
		if tot.Submitted != tot.Done+tot.Cancelled+tot.Failed+int64(l.Running+l.Waiting) {
			t.Fatalf("%s: %+v, %+v", m.spec.Backend, tot, l)
		}
		left := 0
		for _, q := range m.jobs {
			if q != nil {
				left++
			}
		}
		if left > 0 || len(m.jobs) == 0 && l.KVUsed != 0 {
			t.Fatalf("%s still plays %d answers: %+v", m.spec.Backend, left, l)
		}
	}
}

// TestSameSeedSameBytes: nothing depends on how many threads there are, on the order
// of maps, or on what ran before.
func TestSameSeedSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyWorld(t)
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		one, err := s.Run(testContext(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GOMAXPROCS(4)
		two, err := s.Run(testContext(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := asJSON(t, one), asJSON(t, two); a != b {
			t.Fatalf("the same seed gave\n%s\nand\n%s", a, b)
		}
	})
}

// TestDrawsAreOfTheRequest: a policy, and what other sources do, leaves a source's
// requests as they are.
func TestDrawsAreOfTheRequest(t *testing.T) {
	a, b := tenant("a", 8, 0, 0), tenant("b", 8, 0, 0)
	for _, x := range []*Source{&a, &b} {
		x.Input = Lengths{Shape: LogNormal, P50: 500, P99: 8000}
		x.Output = Lengths{Shape: LogNormal, P50: 200, P99: 2000}
		x.Prefix = Prefix{Tokens: 100, Groups: 10}
	}
	s := world(1, fleet.Llama7BOnA10G(), a, b)
	base := drawn(t, s, "sluice", "a")
	if got := drawn(t, s, "naive", "a"); got != base {
		t.Error("another policy gave other requests")
	}
	b.Arrivals.Rate, b.Output = 20, Lengths{Mean: 5}
	if got := drawn(t, world(1, fleet.Llama7BOnA10G(), a, b), "sluice", "a"); got != base {
		t.Error("another source changed this one's requests")
	}
	if got := drawn(t, world(3, fleet.Llama7BOnA10G(), b, a), "sluice", "a"); got != base {
		t.Error("the order of sources changed this one's requests")
	}
	if drawn(t, s, "sluice", "b") == base {
		t.Error("two sources have the same requests")
	}
	a.Input = Lengths{Mean: 7}
	c := world(1, fleet.Llama7BOnA10G(), a, b)
	if got := drawn(t, c, "sluice", "a"); got == base {
		t.Error("another law gave the same requests")
	}
}

// drawn is a hash of when a source's requests came and of their lengths.
func drawn(t *testing.T, s *Scenario, policy, name string) uint64 {
	t.Helper()
	p, err := newPlay(t.Context(), s, &Options{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	h, n := uint64(0), 0
	p.watched = watched{number: -1, to: func(st Step) {
		if _, what, ok := strings.Cut(st.Text, " comes up: "); ok && strings.Contains(what, "tenant "+name+",") {
			n++
			_, what, _ = strings.Cut(what, "class") // what follows does not name the source
			h = mix(h ^ hashName(fmt.Sprint(st.At, what)))
		}
	}}
	p.loop()
	if n < 400 {
		t.Fatalf("%d requests of %s", n, name)
	}
	return h
}

// TestDice: what is drawn depends on seed, source, request and purpose, and on
// nothing else.
func TestDice(t *testing.T) {
	a, b := newDice(1), newDice(2)
	seen := map[uint64]string{}
	for _, d := range []*dice{a, b} {
		for source := range uint64(4) {
			for n := range int64(50) {
				for purpose := range uint64(6) {
					what := fmt.Sprint(d.seed, source, n, purpose)
					v := d.of(source, n, purpose).Uint64()
					if was, ok := seen[v]; ok {
						t.Fatalf("%s draws what %s did", what, was)
					}
					seen[v] = what
				}
			}
		}
	}
	first := a.of(3, 9, 2).Uint64()
	a.of(3, 9, 2).NormFloat64()
	a.stream(3, 2).Uint64()
	if again := newDice(1).of(3, 9, 2).Uint64(); again != first || a.of(3, 9, 2).Uint64() != first {
		t.Error("the same draw twice gave two things")
	}
}
