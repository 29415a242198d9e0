package fair

import (
	"fmt"
	"testing"
	"time"

	"sluice"
	"sluice/internal/route"
)

// flood is how one tenant comes to want many times its share.
type flood struct {
	name  string
	load  func(rate float64, times int64) (Arrivals, Sizes)
	naive bool // a limit on requests per minute does not see it
}

var ordinary = Between(200, 1000, 20, 200)

var floods = []flood{
	{"more requests", func(rate float64, n int64) (Arrivals, Sizes) { return Poisson(rate * float64(n)), ordinary }, false},
	{"larger requests", func(rate float64, n int64) (Arrivals, Sizes) {
		k := sluice.Tokens(n)
		return Poisson(rate), Between(200*k, 1000*k, 20*k, 200*k)
	}, true},
}

var isolationPools = []struct {
	name    string
	machine func(sluice.BackendID) Machine
	of      route.Capacity
}{
	{"slots", hosted, route.Capacity{Concurrency: 16}},
	{"memory", replica, route.Capacity{Concurrency: 256, KVTokens: 40_000}},
}

// isolate is a tenant at 80 % of its share, half of the pool, beside one at so many
// times its own.
func isolate(at int, f flood, times int64, p Policy, length time.Duration) (wait, token, turn time.Duration, l *Log) {
	at0 := isolationPools[at]
	pools := pool(backend("b", at0.of))
	_, rate := saturated(pools, at0.machine, ordinary)
	arrivals, sizes := f.load(rate/2, times)
	const warm = time.Minute
	l = Run(&World{
		Pools: pools, Machine: at0.machine, Length: length + warm, Policy: p, Seed: 3,
		Clients: []Client{
			{Tenant: "good", Arrivals: Poisson(0.8 * rate / 2), Sizes: ordinary, PerMinute: int64(60 * rate)},
			{Tenant: "flood", Arrivals: arrivals, Sizes: sizes, PerMinute: int64(60 * rate)},
		},
	})
	place, first := l.Waits(0, warm)
	return Quantile(place, 990), Quantile(first, 990), Turn(l, 0, warm), l
}

// A tenant at 80 % of its share hardly notices that another of its class wants ten
// times its own: at the 99th percentile it waits at most one turn longer than
// beside one that wants its share, and has its first token within 1.25 times the
// time and a turn. A naive gateway makes it wait ten times that and more.
func TestIsolation(t *testing.T) {
	needsFairQueue(t)
	for i, p := range isolationPools {
		for _, f := range floods {
			t.Run(p.name+"/"+f.name, func(t *testing.T) {
				length := sized(5*time.Minute, 30*time.Minute)
				wait1, token1, _, _ := isolate(i, f, 1, Fair, length)
				for _, n := range []int64{3, 10} {
					wait, token, turn, l := isolate(i, f, n, Fair, length)
					judge(t, l)
					if wait > wait1+turn {
						t.Errorf("at %d times: wait p99 %v, at one %v, a turn is %v", n, wait, wait1, turn)
					}
					if most := token1*5/4 + turn; token > most {
						t.Errorf("at %d times: first token p99 %v, want at most %v", n, token, most)
					}
					t.Logf("at %d times: wait p99 %v, first token %v, turn %v; at one %v and %v", n, wait, token, turn, wait1, token1)
				}
			})
		}
	}
}

// The controls exceed those bounds by ten times and more.
func TestIsolationControl(t *testing.T) {
	for i, p := range isolationPools {
		for _, f := range floods {
			policy := FIFO
			if f.naive {
				policy = Naive
			}
			t.Run(fmt.Sprint(p.name, "/", f.name, "/", policy), func(t *testing.T) {
				wait1, token1, turn, _ := isolate(i, f, 1, policy, 5*time.Minute)
				wait, token, _, _ := isolate(i, f, 10, policy, 5*time.Minute)
				if wait < 10*(wait1+turn) || token < 10*(token1*5/4+turn) {
					t.Errorf("wait p99 %v, first token %v: within ten times %v and %v, a turn %v", wait, token, wait1, token1, turn)
				}
				t.Logf("at ten times: wait p99 %v, first token %v; at one %v and %v, a turn %v", wait, token, wait1, token1, turn)
			})
		}
	}
}
