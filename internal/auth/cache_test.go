package auth

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
)

func TestOutputCacheReadsWhatItWrites(t *testing.T) {
	for _, o := range []*OutputCache{
		nil, {}, {TTL: 10 * time.Minute}, {TTL: time.Hour, Asked: true, Percent: 20, PerUser: true, Apart: true}, {TTL: time.Second, Percent: 100},
	} {
		got, err := ParseOutputCache(o.String())
		if err != nil || !cmp.Equal(got, o) {
			t.Errorf("%q: got %+v, %v", o, got, err)
		}
	}
	for _, s := range []string{"10m", "ttl", "ttl=x", "ttl=-1s", "ttl=9000h", "for=asked", "ttl=1m,for=none", "ttl=1m,price=20", "ttl=1m,price=101%", "ttl=1m,ttl=2m", "ttl=1m,per_user=maybe", "ttl=1m,coalesce", "ttl=1m,"} {
		if o, err := ParseOutputCache(s); err == nil {
			t.Errorf("%q is read as %+v", s, o)
		}
	}
}

func TestTenantsSayHowAnswersAreKeptInPlaceOfTheirPlan(t *testing.T) {
	plan := &Plan{OutputCache: &OutputCache{TTL: time.Hour, Percent: 20, PerUser: true}}
	for _, test := range []struct {
		tenant *OutputCache
		want   sluice.Policy
	}{
		{nil, sluice.Policy{CacheTTL: int64(time.Hour), CachePercent: 20, CachePerUser: true}},
		{&OutputCache{TTL: time.Minute, Asked: true}, sluice.Policy{CacheTTL: int64(time.Minute), CacheAsked: true}},
		{&OutputCache{}, sluice.Policy{}},
	} {
		got := policyOf(plan, &Tenant{OutputCache: test.tenant}, nil, &Key{})
		if got.CacheTTL != test.want.CacheTTL || got.CachePercent != test.want.CachePercent || got.CachePerUser != test.want.CachePerUser || got.CacheAsked != test.want.CacheAsked {
			t.Errorf("tenant %v: got %+v", test.tenant, got)
		}
	}
}
