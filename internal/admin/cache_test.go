package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/cache"
)

// keptAnswers is a cache of which little is known.
func keptAnswers() OutputCache {
	return OutputCache{
		Status: func(context.Context) ([]cache.Status, error) {
			return []cache.Status{{Level: cache.Level{Owner: "acme", Entries: 2, Bytes: 2048}, Counts: cache.Counts{Hits: 3, Tokens: 40, Saved: 50}}}, nil
		},
		Purge: func(_ context.Context, t sluice.TenantID) (int, error) {
			switch t {
			case "acme":
				return 2, nil
			case "down":
				return 0, errors.New("connection refused")
			}
			return 7, nil
		},
	}
}

func TestCacheIsShownAndPurged(t *testing.T) {
	b, _ := newRoutingBench(t)
	var shown struct{ Owners []CacheRow }
	b.do("GET", "/admin/v1/cache", "", 200, &shown)
	if len(shown.Owners) != 1 || shown.Owners[0] != (CacheRow{Owner: "acme", Entries: 2, Bytes: 2048, Hits: 3, SavedTokens: 40, SavedNanodollars: 50}) {
		t.Errorf("shown as %+v", shown)
	}
	var out struct{ Purged int }
	if b.do("POST", "/admin/v1/cache/purge", `{"tenant":"acme"}`, 200, &out); out.Purged != 2 {
		t.Errorf("purged %d", out.Purged)
	}
	if b.do("POST", "/admin/v1/cache/purge", `{"all":true}`, 200, &out); out.Purged != 7 {
		t.Errorf("purged %d of all", out.Purged)
	}
	b.do("POST", "/admin/v1/cache/purge", `{}`, 422, nil)
	b.do("POST", "/admin/v1/cache/purge", `{"tenant":"acme","all":true}`, 422, nil)
	if text := b.do("POST", "/admin/v1/cache/purge", `{"tenant":"down"}`, 503, nil); !strings.Contains(text, "does not answer") || strings.Contains(text, "refused") {
		t.Errorf("a store that is down: %s", text)
	}
	if !strings.Contains(b.log.String(), "output cache purged") {
		t.Error("a purge is not logged")
	}
}

func TestPlansSayHowAnswersAreKept(t *testing.T) {
	b, _ := newRoutingBench(t)
	var p Plan
	b.do("PATCH", "/admin/v1/plans/std", `{"output_cache":"ttl=10m,price=20%"}`, 200, &p)
	if p.OutputCache == nil || *p.OutputCache != "ttl=10m0s,price=20%" {
		t.Errorf("plan %+v", p.OutputCache)
	}
	b.do("PATCH", "/admin/v1/plans/std", `{"output_cache":"10m"}`, 422, nil)
	var tenant Tenant
	b.do("PATCH", "/admin/v1/tenants/acme", `{"output_cache":"ttl=0s"}`, 200, &tenant)
	if tenant.OutputCache == nil || *tenant.OutputCache != "ttl=0s" {
		t.Errorf("tenant %+v", tenant.OutputCache)
	}
	var none Tenant
	if b.do("PATCH", "/admin/v1/tenants/acme", `{"output_cache":""}`, 200, &none); none.OutputCache != nil {
		t.Errorf("tenant %+v", *none.OutputCache)
	}
}
