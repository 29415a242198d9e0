package cli

import (
	"context"
	"fmt"
	"net/http"

	"sluice/internal/admin"
)

const (
	backendsPath    = "/admin/v1/backends"
	credentialsPath = "/admin/v1/credentials"
)

type backendCmd struct {
	List        backendListCmd        `cmd:"" help:"List backends: load and health."`
	Drain       backendDrainCmd       `cmd:"" help:"Keep new requests from a backend until undrain, or until the gateway starts anew; weight: 0 in the configuration is for good."`
	Undrain     backendUndrainCmd     `cmd:"" help:"Give a drained backend requests again."`
	Credentials backendCredentialsCmd `cmd:"" help:"List credentials of providers: usable, cooling, parked or disabled, and until when."`
	Enable      backendEnableCmd      `cmd:"" help:"Use a credential at once that the provider refused, or whose allowance was spent."`
}

type backendListCmd struct {
	connection
	output
}

// Run lists backends.
func (c *backendListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Backends []admin.BackendRow `json:"backends"`
	}
	if err := api.get(ctx, backendsPath, nil, &out); err != nil {
		return err
	}
	v := view{data: out.Backends, columns: []string{"backend", "pool", "health", "running", "concurrency", "domain"}}
	for i := range out.Backends {
		b := &out.Backends[i]
		v.rows = append(v.rows, []string{b.Backend, b.Pool, healthText(&b.BackendStatus), count(b.Running), count(b.Concurrency), b.Domain})
	}
	return c.print(env.Stdout, v)
}

type backendCredentialsCmd struct {
	connection
	output
}

// Run lists credentials.
func (c *backendCredentialsCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Credentials []admin.CredentialRow `json:"credentials"`
	}
	if err := api.get(ctx, credentialsPath, nil, &out); err != nil {
		return err
	}
	v := view{data: out.Credentials, columns: []string{"credential", "state", "backend", "until"}}
	for _, k := range out.Credentials {
		v.rows = append(v.rows, []string{k.Credential, k.State, k.Backend, stamp(k.Until)})
	}
	return c.print(env.Stdout, v)
}

// ordered is what became of an order.
type ordered struct {
	Changed bool   `json:"changed"`
	Note    string `json:"note"`
}

// order gives one and says what became of it.
func order(ctx context.Context, conn *connection, env *Env, r request, done, already string) error {
	out, err := change[ordered](ctx, conn, r)
	if err != nil {
		return err
	}
	if !out.Changed {
		done = already
	}
	dryRun{}.said(env.Stderr, "%s", done)
	if out.Note != "" {
		fmt.Fprintln(env.Stderr, out.Note)
	}
	return nil
}

type backendDrainCmd struct {
	Backend string `arg:"" help:"Its name."`
	connection
}

// Run drains a backend.
func (c *backendDrainCmd) Run(ctx context.Context, env *Env) error {
	return order(ctx, &c.connection, env, request{http.MethodPost, backendsPath + "/" + seg(c.Backend) + "/drain", false, nil},
		"backend "+c.Backend+" takes no new requests", "backend "+c.Backend+" was drained already")
}

type backendUndrainCmd struct {
	Backend string `arg:"" help:"Its name."`
	connection
}

// Run undrains a backend.
func (c *backendUndrainCmd) Run(ctx context.Context, env *Env) error {
	return order(ctx, &c.connection, env, request{http.MethodPost, backendsPath + "/" + seg(c.Backend) + "/undrain", false, nil},
		"backend "+c.Backend+" takes requests again", "backend "+c.Backend+" was not drained")
}

type backendEnableCmd struct {
	Credential string `arg:"" help:"Its name, as credentials lists it."`
	Backend    string `help:"Where it was refused at this backend alone." placeholder:"NAME"`
	connection
}

// Run enables a credential.
func (c *backendEnableCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		Credential string `json:"credential"`
		Backend    string `json:"backend,omitempty"`
	}{c.Credential, c.Backend}
	return order(ctx, &c.connection, env, request{http.MethodPost, credentialsPath + "/enable", false, body},
		"credential "+c.Credential+" is used again", "credential "+c.Credential+" was usable already")
}
