package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"sluice"
	"sluice/internal/admin"
)

// cached tells whose answer a request got that was answered without a backend.
func cached(w io.Writer, x *admin.Explanation) {
	if len(x.Steps) == 0 || x.Steps[len(x.Steps)-1].Cache == nil {
		return
	}
	c := x.Steps[len(x.Steps)-1].Cache
	if c.Request == "" {
		fmt.Fprintf(w, "%-11s%s: it got the answer of the same request, which was in flight\n", "cache", c.State)
		return
	}
	fmt.Fprintf(w, "%-11s%s: the answer to %s from %s, %s old, which took %d input + %d output tokens and cost %s\n", "cache", c.State, c.Request, c.Backend,
		span(float64(c.AgeMS)/1e3), c.Input, c.Output, sluice.Nano(c.Cost))
}

const cachePath = "/admin/v1/cache"

type cacheCmd struct {
	Status cacheStatusCmd `cmd:"" default:"1" help:"What is kept, by tenant, and what came of it since the gateway started."`
	Purge  cachePurgeCmd  `cmd:"" help:"Forget the kept answers of a tenant, or all."`
}

type cacheStatusCmd struct {
	connection
	output
}

// Run lists owners.
func (c *cacheStatusCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Owners []admin.CacheRow `json:"owners"`
	}
	if err := api.get(ctx, cachePath, nil, &out); err != nil {
		return err
	}
	v := view{data: out.Owners, columns: []string{"owner", "entries", "bytes", "hits", "misses", "coalesced", "bypasses", "saved tokens", "saved"}}
	for _, o := range out.Owners {
		v.rows = append(v.rows, []string{
			o.Owner, count(o.Entries), count(o.Bytes), count(o.Hits), count(o.Misses), count(o.Coalesced), count(o.Bypasses), count(o.SavedTokens), sluice.Nano(o.SavedNanodollars).String(),
		})
	}
	return c.print(env.Stdout, v)
}

type cachePurgeCmd struct {
	Tenant string `arg:"" optional:"" help:"Whose; with those of the tenants that it shares with."`
	All    bool   `help:"Everybody's."`
	connection
}

// Run purges.
func (c *cachePurgeCmd) Run(ctx context.Context, env *Env) error {
	if (c.Tenant == "") != c.All {
		return &codedError{code: exitUsage, msg: "name a tenant, or write --all"}
	}
	body := struct {
		Tenant string `json:"tenant,omitempty"`
		All    bool   `json:"all,omitempty"`
	}{c.Tenant, c.All}
	out, err := change[struct {
		Purged int `json:"purged"`
	}](ctx, &c.connection, request{http.MethodPost, cachePath + "/purge", false, body})
	if err != nil {
		return err
	}
	whose := "of everybody"
	if c.Tenant != "" {
		whose = "of " + c.Tenant
	}
	dryRun{}.said(env.Stderr, "%s", fmt.Sprintf("forgot %s %s", plural(out.Purged, "kept answer"), whose))
	return nil
}
