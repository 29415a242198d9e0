package admin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/cache"
)

// OutputCache shows and purges kept answers. The zero value has none.
type OutputCache struct {
	Status func(ctx context.Context) ([]cache.Status, error)
	// Purge forgets what is kept of a tenant, and of those it shares with, or with an
	// empty one of everybody.
	Purge func(ctx context.Context, t sluice.TenantID) (int, error)
}

// CacheRow is what is kept of a tenant, or of tenants that share, and what came of it.
type CacheRow struct {
	Owner            string `json:"owner" doc:"The tenant, or group:NAME of tenants that share"`
	Entries          int64  `json:"entries"`
	Bytes            int64  `json:"bytes" doc:"512 of each entry beside its own"`
	Hits             int64  `json:"hits" doc:"Since the gateway started, as those that follow"`
	Misses           int64  `json:"misses"`
	Bypasses         int64  `json:"bypasses"`
	Coalesced        int64  `json:"coalesced" doc:"Requests that got the answer of the same one in flight"`
	Stored           int64  `json:"stored"`
	SavedTokens      int64  `json:"saved_tokens" doc:"Input and output that hits did not take"`
	SavedNanodollars int64  `json:"saved_nanodollars"`
}

type cacheOut struct {
	Body struct {
		Owners []CacheRow `json:"owners"`
	}
}

type purgeIn struct {
	Mutation
	Body struct {
		Tenant string `json:"tenant,omitempty" doc:"Whose kept answers are forgotten, with those of the tenants that it shares with"`
		All    bool   `json:"all,omitempty" doc:"Everybody's, in place of a tenant's"`
	}
}

type purgeOut struct {
	Body struct {
		Purged int `json:"purged" doc:"Entries"`
	}
}

func (a *API) registerCache(api huma.API) {
	if a.o.Cache.Status == nil || a.o.Cache.Purge == nil {
		return
	}
	tags := []string{"operate"}
	register(a, api, huma.Operation{OperationID: "show-cache", Method: http.MethodGet, Path: "/admin/v1/cache", Summary: "Answers that are kept, by tenant, and what came of them", Tags: tags}, a.showCache)
	register(a, api, huma.Operation{OperationID: "purge-cache", Method: http.MethodPost, Path: "/admin/v1/cache/purge", Summary: "Forget the kept answers of a tenant, or all; what is on its way is not kept", Tags: tags}, a.purgeCache)
}

func (a *API) showCache(ctx context.Context, _ *struct{}) (*cacheOut, error) {
	all, err := a.o.Cache.Status(ctx)
	if err != nil {
		return nil, cacheDown(err)
	}
	out := &cacheOut{}
	out.Body.Owners = make([]CacheRow, 0, min(len(all), maxRows))
	for _, s := range all[:min(len(all), maxRows)] {
		out.Body.Owners = append(out.Body.Owners, CacheRow{
			Owner: s.Owner, Entries: s.Entries, Bytes: s.Bytes, Hits: s.Hits, Misses: s.Misses, Bypasses: s.Bypasses, Coalesced: s.Coalesced, Stored: s.Stored,
			SavedTokens: int64(s.Tokens), SavedNanodollars: int64(s.Saved),
		})
	}
	return out, nil
}

func (a *API) purgeCache(ctx context.Context, in *purgeIn) (*purgeOut, error) {
	if in.DryRun {
		return nil, hinted(sluice.Invalid("dry_run", "is not known here"), "GET /admin/v1/cache shows what there is")
	}
	if (in.Body.Tenant == "") != in.Body.All {
		return nil, sluice.Invalid("tenant", "is needed: name one, or write all: true")
	}
	n, err := a.o.Cache.Purge(ctx, sluice.TenantID(in.Body.Tenant))
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, "output cache purged", slog.String("by", operatorOf(ctx).ID), slog.String("tenant", in.Body.Tenant), slog.Int("entries", n))
	if err != nil {
		return nil, cacheDown(err)
	}
	out := &purgeOut{}
	out.Body.Purged = n
	return out, nil
}

func cacheDown(err error) error {
	return &sluice.Error{Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Msg: "the store of kept answers does not answer", Hint: "requests go on without it; try again", Err: err}
}

// outputCacheOf is a record's as the API shows it; nil where it says nothing.
func outputCacheOf(o *auth.OutputCache) *string {
	if o == nil {
		return nil
	}
	s := o.String()
	return &s
}

// applyOutputCache sets a record's where the fields name one.
func applyOutputCache(to **auth.OutputCache, f *string) (err error) {
	if f != nil {
		*to, err = auth.ParseOutputCache(*f)
	}
	return err
}

// CacheUse is that a request was answered without a backend of its own.
type CacheUse struct {
	State   string `json:"state" enum:"hit,coalesced" doc:"hit: with a kept answer; coalesced: with that of the same request in flight"`
	Request string `json:"request,omitempty" doc:"The request that it was the answer to, of the same tenant or group"`
	AgeMS   int64  `json:"age_ms,omitempty"`
	Backend string `json:"backend,omitempty" doc:"That answered it"`
	Input   int64  `json:"input,omitempty" doc:"Tokens that it took then"`
	Output  int64  `json:"output,omitempty"`
	Cost    int64  `json:"cost,omitempty" doc:"What it cost then, in nano-dollars"`
}
