package cli

import (
	"context"
	"net/http"

	"sluice/internal/admin"
)

type configReloadCmd struct {
	connection
	output
}

// Run has the gateway reload. What is wrong with the file is told as check tells
// it, and the exit code is 2.
func (c *configReloadCmd) Run(ctx context.Context, env *Env) error {
	r, err := change[admin.Reloaded](ctx, &c.connection, request{http.MethodPost, "/admin/v1/config/reload", false, nil})
	if err != nil {
		return err
	}
	warn(env, r.Warnings)
	changed := "no"
	if r.Changed {
		changed = "yes"
	}
	return c.print(env.Stdout, view{data: r, columns: fieldColumns, rows: pairs("version", r.Version, "changed", changed)})
}
