package cli

import (
	"context"
	"net/http"

	"sluice/internal/admin"
)

type configReloadCmd struct {
	Author string `help:"Who has it read again; the name of the admin token if left out." placeholder:"NAME"`
	Reason string `help:"Why, for whoever reads the history." placeholder:"TEXT"`
	Follow bool   `help:"Put what the file says in force although a rollback or a change of routes holds."`
	connection
	output
}

// Run has the gateway reload. What is wrong with the file is told as check tells
// it, and the exit code is 2.
func (c *configReloadCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		Author string `json:"author,omitempty"`
		Reason string `json:"reason,omitempty"`
		Follow bool   `json:"follow,omitempty"`
	}{c.Author, c.Reason, c.Follow}
	r, err := change[admin.Reloaded](ctx, &c.connection, request{http.MethodPost, "/admin/v1/config/reload", false, body})
	if err != nil {
		return err
	}
	warn(env, r.Warnings)
	changed := "no"
	if r.Changed {
		changed = "yes"
	}
	number := ""
	if r.Number > 0 {
		number = count(r.Number)
	}
	return c.print(env.Stdout, view{data: r, columns: fieldColumns, rows: pairs("version", r.Version, "number", number, "changed", changed)})
}
