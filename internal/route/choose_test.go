package route_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// pool is places with a chooser.
type pool struct {
	route.Chooser
	places []*route.Place
	left   []route.Left
}

func newPool(rule route.Choice, a route.Affinity, weights ...int64) *pool {
	p := &pool{places: places(weights...)}
	for _, pl := range p.places {
		pl.Backend.Capacity.PrefillRate = 16_000
	}
	p.left = make([]route.Left, len(p.places))
	p.Configure(rule, a, p.places)
	return p
}

// choose chooses among all places but those that are out, and notes the choice.
func (p *pool) choose(a route.Asking, out ...int) (i int, cached sluice.Tokens) {
	clear(p.left)
	for _, o := range out {
		p.left[o] = route.LeftFull
	}
	i = p.Choose(start, p.left, &a)
	return i, p.Took(i, &a)
}

// take puts the request there.
func (p *pool) take(i int, a route.Asking, cached sluice.Tokens) route.Taken {
	return take(p.places[i], start, route.Need{KV: a.Input, Prefill: a.Input - cached, Input: a.Input})
}

// blocks is a prompt of n blocks, of which the first are those of other prompts.
func blocks(n int, id uint64, first ...uint64) []uint64 {
	out := append([]uint64(nil), first...)
	for len(out) < n {
		out = append(out, id<<16+uint64(len(out))+1)
	}
	return out
}

func asking(n int, tenant string, prompt []uint64) route.Asking {
	return route.Asking{
		ID: sluice.RequestID(fmt.Sprint("r", n)), Tenant: sluice.TenantID(tenant), Input: sluice.Tokens(512 * len(prompt)),
		Prefix: route.Prefix{Blocks: prompt, Tokens: 512},
	}
}

func TestRequestsGoWhereTheirPrefixIs(t *testing.T) {
	p := newPool(route.ByAffinity, route.Affinity{}, 1, 1, 1, 1, 1, 1, 1, 1)
	where := map[uint64]int{}
	for n := range 64 {
		id := uint64(n % 16)
		a := asking(n, "acme", blocks(4+n/16, id+1))
		i, cached := p.choose(a)
		if n < 16 {
			where[id] = i
			continue
		}
		if i != where[id] || cached < 512*sluice.Tokens(3+n/16)-1 {
			t.Errorf("turn %d of conversation %d goes to %d with %d tokens cached, want %d with all of the turn before", n/16, id, i, cached, where[id])
		}
	}
	if c := p.Counts(); c.Warm != 48 || c.Cold != 16 {
		t.Errorf("counts %+v, want 48 warm and 16 cold", c)
	}
}

// A place that is too busy is passed by, and one that is not usable is no choice.
func TestStickyUntilSaturated(t *testing.T) {
	p := newPool(route.ByAffinity, route.Affinity{Stick: 2 * time.Second}, 1, 1)
	a := asking(0, "acme", blocks(8, 1))
	first, cached := p.choose(a)
	p.take(first, a, cached)
	for n := 1; ; n++ {
		busy := p.places[first].Prefill()
		a := asking(n, "acme", blocks(40, uint64(n+1), blocks(8, 1)...))
		i, cached := p.choose(a)
		if i != first {
			if later := time.Duration(busy) * time.Second / 16_000; later < 1500*time.Millisecond || later > 5*time.Second {
				t.Errorf("it went elsewhere when its place was %v late, want about 2 s", later)
			}
			break
		}
		p.take(i, a, cached)
	}
	b := asking(99, "acme", blocks(8, 1))
	if i, _ := p.choose(b, first); i == first {
		t.Error("a place that is full was chosen")
	}
}

// What all prompts have in common draws none of them.
func TestCommonBlocksDrawNothing(t *testing.T) {
	p := newPool(route.ByAffinity, route.Affinity{}, 1, 1, 1, 1)
	common := blocks(6, 999)
	got := make([]int, 4)
	for n := range 1000 {
		i, _ := p.choose(asking(n, "acme", blocks(10, uint64(n+1), common...)))
		if n >= 200 {
			got[i]++
		}
	}
	for i, n := range got {
		if n < 150 || n > 250 {
			t.Errorf("place %d got %d of 800 prompts that have nothing of their own anywhere, want about 200", i, n)
		}
	}
}

// A session keeps to its place though its prompts have nothing in common, and is its
// tenant's alone.
func TestSessionsKeepToTheirPlace(t *testing.T) {
	p := newPool(route.ByAffinity, route.Affinity{}, 1, 1, 1, 1, 1, 1, 1, 1)
	ask := func(n int, tenant string) int {
		a := asking(n, tenant, blocks(3, uint64(n+1)))
		a.Session = route.SessionOf("t", "run-1")
		i, _ := p.choose(a)
		return i
	}
	first := ask(0, "acme")
	for n := 1; n < 50; n++ {
		if i := ask(n, "acme"); i != first {
			t.Fatalf("request %d of the session went to %d, want %d", n, i, first)
		}
	}
	elsewhere := 0
	for n := 100; n < 108; n++ {
		a := asking(n, fmt.Sprint("other-", n), blocks(3, uint64(n+1)))
		a.Session = route.SessionOf("t", "run-1")
		if i, _ := p.choose(a); i != first {
			elsewhere++
		}
	}
	if elsewhere == 0 {
		t.Error("the sessions of eight other tenants, of the same name, all went to the same place")
	}
}

func TestLostPlacesHoldNothing(t *testing.T) {
	p := newPool(route.ByAffinity, route.Affinity{}, 1, 1)
	a := asking(0, "acme", blocks(8, 1))
	i, _ := p.choose(a)
	p.Lost(p.places[i])
	if _, cached := p.choose(asking(1, "acme", blocks(8, 1))); cached != 0 {
		t.Errorf("%d tokens are believed cached at a place that was lost", cached)
	}
	i, _ = p.choose(asking(2, "acme", blocks(8, 1)))
	gone, stays := p.places[i], p.places[1-i]
	p.places = []*route.Place{stays}
	p.left = p.left[:1]
	p.Configure(route.ByAffinity, route.Affinity{}, p.places)
	p.Lost(gone) // it is known no more
	if c := p.Counts(); c.Holds > 8 {
		t.Errorf("%d holds, want those of the place that stays", c.Holds)
	}
}

// Over any run of prompts, no tenant finds what another has sent, the same run gives the
// same choices, and stickiness never takes what a tenant has brought one place further
// than a quantum and one prompt beyond what it has brought the place with least.
func TestAffinityProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "places")
		quantum := sluice.Tokens(rapid.IntRange(1, 40).Draw(t, "quantum")) * 1000
		weights := make([]int64, n)
		for i := range weights {
			weights[i] = 1
		}
		p, q := newPool(route.ByAffinity, route.Affinity{Quantum: quantum}, weights...), newPool(route.ByAffinity, route.Affinity{Quantum: quantum}, weights...)
		sent := map[string]map[uint64]bool{"a": {}, "b": {}}
		given := map[string][]sluice.Tokens{"a": make([]sluice.Tokens, n), "b": make([]sluice.Tokens, n)}
		var largest sluice.Tokens
		for k := range rapid.IntRange(1, 120).Draw(t, "requests") {
			tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")
			root := uint64(rapid.IntRange(1, 3).Draw(t, "root"))
			own := rapid.IntRange(0, 20).Draw(t, "own")
			prompt := blocks(6+own, uint64(k+10), blocks(6, root)...)
			a := asking(k, tenant, prompt)
			i, cached := p.choose(a)
			if j, other := q.choose(a); i != j || cached != other {
				t.Fatalf("the same run chose %d and %d", i, j)
			}
			known := sluice.Tokens(0)
			for _, b := range prompt {
				if !sent[tenant][b] {
					break
				}
				known += 512
			}
			if cached > known {
				t.Fatalf("%d tokens of tenant %s are believed cached, it has sent %d of them before", cached, tenant, known)
			}
			for _, b := range prompt {
				sent[tenant][b] = true
			}
			g := given[tenant]
			g[i] += a.Input - cached
			largest = max(largest, a.Input)
			least := g[0]
			for _, x := range g {
				least = min(least, x)
			}
			if lead := g[i] - least; p.Note(i).Kept && lead > quantum+largest {
				t.Fatalf("tenant %s has brought place %d %d tokens more than another by keeping to it: want at most %d", tenant, i, lead, quantum+largest)
			}
		}
	})
}

// Where nothing runs and nothing is known two choices share by weight, to what chance
// leaves; where all places are alike, none is far from the mean.
func TestTwoChoicesShareByWeight(t *testing.T) {
	p := newPool(route.ByCost, route.Affinity{}, 1, 2, 4)
	got := make([]int, 3)
	for n := range 7000 {
		i, _ := p.choose(route.Asking{ID: sluice.RequestID(fmt.Sprint(n)), Input: 100})
		run(p.places[i])
		got[i]++
	}
	for i, want := range []int{1000, 2000, 4000} {
		if n := got[i]; n < want*85/100 || n > want*115/100 {
			t.Errorf("place %d got %d, want about %d", i, n, want)
		}
	}
}

// BenchmarkChoose64 chooses among 64 backends, all of which hold the beginning of a
// prompt of 24 blocks, and three of them more of it.
func BenchmarkChoose64(b *testing.B) {
	for _, rule := range []route.Choice{route.ByLoad, route.ByCost, route.ByAffinity} {
		b.Run(rule.String(), func(b *testing.B) {
			weights := make([]int64, 64)
			for i := range weights {
				weights[i] = 1
			}
			p := newPool(rule, route.Affinity{}, weights...)
			common, own := blocks(4, 1), blocks(24, 2, blocks(4, 1)...)
			for i := range p.places {
				out := make([]int, 0, 64)
				for j := range p.places {
					if j != i {
						out = append(out, j)
					}
				}
				prompt := blocks(24, uint64(i+10), common...)
				if i < 3 {
					prompt = own
				}
				a := asking(i, "acme", prompt)
				_, cached := p.choose(a, out...)
				p.take(i, a, cached)
			}
			a := asking(1000, "acme", own)
			b.ReportAllocs()
			for b.Loop() {
				clear(p.left)
				p.Choose(start, p.left, &a)
			}
		})
	}
}
