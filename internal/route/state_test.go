package route_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/route"
)

// TestPin holds that a request goes only where what it refers to is kept: to the replica
// that made it, or to a backend that is called with the account that did.
func TestPin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		backend := func(name string) *route.Backend {
			b := &route.Backend{
				ID: sluice.BackendID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, name)), Provider: sluice.ProviderID(rapid.SampledFrom([]string{"p", "q"}).Draw(t, name+"'s provider")),
				Site: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, name+"'s site"), Replica: rapid.Bool().Draw(t, name+" is a replica"), Dialect: "openai", Weight: 1,
			}
			for _, k := range []string{"k1", "k2"} {
				if rapid.Bool().Draw(t, name+" has "+k) {
					b.Keys = append(b.Keys, route.Key{ID: k})
				}
			}
			return b
		}
		maker, other := backend("maker"), backend("other")
		key := string(maker.ID) // as an attempt without a credential is called
		if len(maker.Keys) > 0 {
			key = rapid.SampledFrom(maker.Keys).Draw(t, "key").ID
		}
		pin := route.PinOf(maker, key)
		if !pin.Holds(maker) {
			t.Fatalf("%v is not where it was made", &pin)
		}
		want := maker.Provider == other.Provider && maker.Replica == other.Replica
		if maker.Replica {
			want = want && maker.ID == other.ID
		} else {
			same := len(maker.Keys) == 0 && len(other.Keys) == 0 || len(maker.Keys) > 0 && slices.ContainsFunc(other.Keys, func(k route.Key) bool { return k.ID == key })
			want = want && maker.Site == other.Site && same
		}
		if got := pin.Holds(other); got != want {
			t.Fatalf("%v holds %+v: got %v", &pin, other, got)
		}
		left := route.Eligible(other, &route.Ask{Dialect: "openai", Free: true, Pin: &pin})
		if (left == route.LeftState) == want {
			t.Fatalf("left %q, holds %v", left, want)
		}
	})
}

// TestPinnedCredential holds that what must go with one credential goes with no other, and
// waits for that alone.
func TestPinnedCredential(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b := &route.Backend{ID: "b", Weight: 1, Keys: []route.Key{{ID: "k1"}, {ID: "k2"}}, Capacity: route.Capacity{Concurrency: 8, Rates: route.Rates{route.RateRequests: 2}}}
	p := &route.Place{Backend: b}
	only := route.Need{Only: "k2"}
	for i := range 3 {
		if got := p.Usable(noon, &only); (got == route.Chosen) != (i < 2) {
			t.Fatalf("request %d: %q", i, got)
		}
		if i == 2 {
			break
		}
		taken := take(p, noon, only)
		if taken.Key() != "k2" {
			t.Errorf("it goes with %s", taken.Key())
		}
		p.Give(&taken)
	}
	if got := p.Usable(noon, &route.Need{}); got != route.Chosen {
		t.Errorf("any other request: %q", got)
	}
	if at := p.RoomAt(noon, only); !at.After(noon) {
		t.Errorf("there is room at %v, with another credential", at)
	}
	p.Refused(noon, "k2", false)
	if got := p.FitWith(noon, "k2"); got != route.LeftParked {
		t.Errorf("with a credential that is refused: %q", got)
	}
	if until, cooling := p.CoolingWith(noon, "k2"); !cooling || until.Sub(noon) != route.DisabledFor {
		t.Errorf("cooling until %v: %v", until, cooling)
	}
	if got := p.Fit(noon); got != route.Chosen {
		t.Errorf("with the other: %q", got)
	}
	if got := p.FitWith(noon, "k3"); got != route.LeftParked {
		t.Errorf("with one that is gone: %q", got)
	}
}
