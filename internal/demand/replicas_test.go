package demand

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRatios(t *testing.T) {
	t.Parallel()
	const one = 1_000_000
	r := Rates{Requests: 10 * one, Input: 3000 * one, Uncached: 2000 * one, Output: 500 * one, KV: 40_000 * one}
	s := Supply{Slots: 64, KV: 400_000, Prefill: 10_000, Decode: 2000, PerMinute: [4]int64{1200, 0, 0, 420_000}}
	got := Of(r, 4*time.Second, Use{Slots: 10, KV: 300_000}, &s)
	want := Ratios{
		Slots: 625_000, KVTokens: 750_000, Prefill: 200_000, Decode: 250_000, Engine: 450_000,
		RequestsPerMinute: 500_000, InputPerMinute: -1, OutputPerMinute: -1, TokensPerMinute: 500_000,
	}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if d, n, ok := got.Most(); d != KVTokens || n != 750_000 || !ok {
		t.Errorf("%v binds with %d, want kv_tokens", d, n)
	}
	none := Of(r, 0, Use{}, &Supply{})
	if _, _, ok := none.Most(); ok {
		t.Errorf("of no supply, %v", none)
	}
}

func TestDesire(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		policy Policy
		of     Replicas
		engine int64 // millionths
		young  bool
		want   int64
	}{
		{"what is in use stays", Policy{}, Replicas{Listed: 16, Serving: 8}, 790_000, false, 8},
		{"above the target one more", Policy{}, Replicas{Listed: 16, Serving: 8}, 810_000, false, 9},
		{"ten times as much, and all there are", Policy{}, Replicas{Listed: 16, Serving: 8}, 8_000_000, false, 16},
		{"more than are listed", Policy{Max: 100}, Replicas{Listed: 16, Serving: 8}, 8_000_000, false, 80},
		{"just below one less is tolerated", Policy{}, Replicas{Listed: 16, Serving: 8}, 690_000, false, 8},
		{"a tenth below it goes", Policy{}, Replicas{Listed: 16, Serving: 8}, 629_000, false, 7},
		{"not before a window has been seen", Policy{}, Replicas{Listed: 16, Serving: 8}, 100_000, true, 8},
		{"none without a demand", Policy{}, Replicas{Listed: 16, Serving: 8}, 0, false, 0},
		{"but the least", Policy{Min: 2}, Replicas{Listed: 16, Serving: 8}, 0, false, 2},
		{"from none, by what one would supply", Policy{}, Replicas{Listed: 16}, 2_500_000, false, 4},
		{"what is out before one that serves counts", Policy{}, Replicas{Listed: 16, Serving: 6, Ahead: 2}, 800_000, false, 8},
		{"a target of one's own", Policy{Target: 500}, Replicas{Listed: 16, Serving: 8}, 800_000, false, 13},
	} {
		ratios := Of(Rates{}, 0, Use{}, &Supply{})
		ratios[Engine] = test.engine
		if got := test.policy.Desire(test.of, &ratios, false, !test.young); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// Slots that grow by themselves ask for no replica where memory or time is known.
func TestFoundSlotsDoNotBind(t *testing.T) {
	t.Parallel()
	ratios := Of(Rates{}, 0, Use{}, &Supply{})
	ratios[Slots], ratios[KVTokens] = 3_000_000, 400_000
	of := Replicas{Listed: 10, Serving: 2}
	if got := (Policy{}).Desire(of, &ratios, true, true); got != 2 {
		t.Errorf("%d replicas for slots that are found, want 2", got)
	}
	if got := (Policy{}).Desire(of, &ratios, false, true); got != 8 {
		t.Errorf("%d replicas for slots that are configured, want 8", got)
	}
}

// What is desired holds the demand at the target, and one less does not.
func TestDesireIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 500).Draw(t, "serving")
		u := rapid.Int64Range(0, 20_000_000).Draw(t, "ratio")
		target := rapid.Int64Range(1, 1000).Draw(t, "target")
		ratios := Of(Rates{}, 0, Use{}, &Supply{})
		ratios[Engine] = u
		got := Policy{Target: target, Max: 1 << 40}.Desire(Replicas{Listed: n, Serving: n}, &ratios, false, true)
		if u*n > got*target*1000 {
			t.Errorf("%d replicas are above the target", got)
		}
		if got > n && u*n <= (got-1)*target*1000 {
			t.Errorf("one less than %d would do", got)
		}
	})
}

// plant is a pool of replicas that start within a minute, followed as a controller
// would: its demand is a rate of output tokens, in requests of 100.
func plant(t *testing.T, demand func(time.Duration) float64, length time.Duration) (changes int, least, most int64) {
	t.Helper()
	const each = 1000 // tokens per second of a replica
	var m Meter
	policy := Policy{Max: 100, Min: 1}.WithDefaults()
	m.Stabilise(start, policy.Stable)
	rnd := rand.New(rand.NewPCG(3, 4))
	serving, ready, ordered := int64(8), time.Duration(0), int64(8)
	least, most = serving, serving
	looked := time.Duration(0)
	for at := time.Duration(0); at < length; {
		at += time.Duration(rnd.ExpFloat64() / (demand(at) / 100) * float64(time.Second))
		w := Work{Requests: 1, Output: 100}
		m.Offer(start.Add(at), Urgent, &w)
		m.Leave(start.Add(at), Urgent, &w)
		if at-looked < 5*time.Second {
			continue
		}
		looked = at
		if at >= ready {
			serving = ordered
		}
		rates, whole := m.Peak(start.Add(at), false)
		ratios := Of(rates, 0, Use{}, &Supply{Decode: each * serving, Prefill: 1 << 40})
		if n := policy.Desire(Replicas{Listed: 100, Serving: serving}, &ratios, false, whole); n != ordered && at >= ready {
			changes, ordered, ready = changes+1, n, at+time.Minute
			least, most = min(least, n), max(most, n)
		}
	}
	return changes, least, most
}

// A demand that stays, and one that swings within the stabilisation window, as a
// Poisson stream each, hardly moves anything; one that grows is followed.
func TestDesireDoesNotFlap(t *testing.T) {
	t.Parallel()
	steady, _, most := plant(t, func(time.Duration) float64 { return 6000 }, 4*time.Hour)
	if steady > 3 || most > 10 {
		t.Errorf("a steady demand of 6,000 tokens a second changes the replicas %d times, to at most %d", steady, most)
	}
	swing, least, most := plant(t, func(at time.Duration) float64 {
		if at/(2*time.Minute)%2 == 0 {
			return 12_000
		}
		return 3_000
	}, 4*time.Hour)
	if swing > 5 || least < 8 || most > 20 {
		t.Errorf("a demand that swings every two minutes changes the replicas %d times, between %d and %d", swing, least, most)
	}
	_, _, most = plant(t, func(at time.Duration) float64 { return 4000 + 20_000*at.Hours() }, time.Hour)
	if most < 29 || most > 36 {
		t.Errorf("a demand that grows to 24,000 tokens a second ends at %d replicas, want 30 or a few more", most)
	}
}
