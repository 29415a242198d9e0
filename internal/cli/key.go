package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"sluice/internal/admin"
	"sluice/internal/auth"
)

type keyCmd struct {
	List   keyListCmd   `cmd:"" help:"List keys, of one tenant or of all."`
	Show   keyShowCmd   `cmd:"" help:"Show a key; its secret cannot be shown."`
	Create keyCreateCmd `cmd:"" help:"Create a key and print it, this once."`
	Update keyUpdateCmd `cmd:"" help:"Change a key; what is not named stays."`
	Rotate keyRotateCmd `cmd:"" help:"Give a key a new secret and print it; the old one ends after the overlap."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key for ever, at once."`
	Mint   keyMintCmd   `cmd:"" help:"Print a new key for a configuration file to declare; it needs no gateway and none knows the key."`
}

type keyFields struct {
	Name          *string           `help:"A name for humans."`
	Model         []string          `help:"Allowed public model names, of those that the project is allowed." placeholder:"MODEL"`
	Limit         map[string]string `mapsep:"," help:"Replaces the plan's per-key limit of the same name; none lifts it, default takes the plan's." placeholder:"NAME=AMOUNT"`
	PerRun        map[string]string `mapsep:"," help:"Replaces the plan's bound of each run of the same name." placeholder:"NAME=AMOUNT"`
	InputCeiling  *int64            `help:"Lowers the plan's most input tokens of one request." placeholder:"N"`
	OutputCeiling *int64            `help:"Lowers the plan's most output tokens of one request." placeholder:"N"`
	residencyFlags
	Expires *string `help:"When it ends: 720h from now, 2027-01-31, or empty for never." placeholder:"WHEN"`
}

func (f *keyFields) fields() admin.KeyFields {
	return admin.KeyFields{
		Name: f.Name, Models: names(f.Model), Limits: limitsFlag(f.Limit), Expires: f.Expires,
		PerRun: admin.RunLimits(limitsFlag(f.PerRun)), InputCeiling: f.InputCeiling, OutputCeiling: f.OutputCeiling, Residency: f.residency(),
	}
}

type keyListCmd struct {
	Tenant string `arg:"" optional:"" help:"The tenant's id; without it all tenants."`
	connection
	output
}

// Run lists keys.
func (c *keyListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	tenants := []string{c.Tenant}
	if c.Tenant == "" {
		all, err := api.tenants(ctx)
		if err != nil {
			return err
		}
		tenants = tenants[:0]
		for i := range all {
			tenants = append(tenants, all[i].ID)
		}
	}
	keys := []admin.Key{}
	for _, t := range tenants {
		var out struct {
			Keys []admin.Key `json:"keys"`
		}
		if err := api.get(ctx, ofTenant{t}.keys(), nil, &out); err != nil {
			return err
		}
		keys = append(keys, out.Keys...)
	}
	v := view{data: keys, columns: []string{"key", "tenant", "project", "name", "state", "secrets", "expires", "created", "declared"}}
	for i := range keys {
		k := &keys[i]
		v.rows = append(v.rows, []string{k.ID, k.Tenant, k.Project, k.Name, k.State, count(len(k.Secrets)), stamp(k.Expires), stamp(k.Created), k.Declared})
	}
	return c.print(env.Stdout, v)
}

func keyRows(k *admin.Key) [][]string {
	rows := pairs("key", k.ID, "tenant", k.Tenant, "project", k.Project, "env", k.Env, "name", k.Name, "state", k.State,
		"models", strings.Join(k.Models, " "), "regions", join(k.Regions), "providers", join(k.Providers), "risk", deref(k.Risk), "limits", limitsText(k.Limits), "per run", limitsText(admin.Limits(k.PerRun)),
		"input ceiling", some(k.InputCeiling), "output ceiling", some(k.OutputCeiling), "expires", stamp(k.Expires), "revoked", stamp(k.Revoked))
	for i, s := range k.Secrets {
		ends := stamp(s.Ends)
		if ends == "" {
			ends = "ends with the key"
		} else {
			ends = "ends " + ends
		}
		rows = append(rows, []string{fmt.Sprintf("secret %d", i+1), ends})
	}
	return append(rows, pairs("declared", k.Declared, "created", stamp(k.Created), "updated", stamp(k.Updated))...)
}

type oneKey struct {
	ofTenant
	Key string `arg:"" help:"Its public id, the part after slk_ENV_."`
}

func (o oneKey) path() string { return o.keys() + "/" + seg(o.Key) }

type keyShowCmd struct {
	oneKey
	connection
	output
}

// Run shows a key.
func (c *keyShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var k admin.Key
	if err := api.get(ctx, c.path(), nil, &k); err != nil {
		return err
	}
	return c.print(env.Stdout, view{data: k, columns: fieldColumns, rows: keyRows(&k)})
}

type keyCreateCmd struct {
	ofTenant
	Project string `help:"The project that it belongs to (default: default)." placeholder:"PROJECT"`
	Env     string `help:"Label in the key, such as prod or test." placeholder:"LABEL"`
	keyFields
	dryRun
	connection
	output
}

// Run creates a key. As a table the data is the credential alone, so that
// KEY=$(sluice key create acme) works.
func (c *keyCreateCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		Project string `json:"project,omitempty"`
		Env     string `json:"env,omitempty"`
		admin.KeyFields
	}{c.Project, c.Env, c.fields()}
	k, err := change[admin.NewKey](ctx, &c.connection, request{http.MethodPost, c.keys(), c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "key %s of tenant %s created; it is shown this once", k.ID, k.Tenant)
	warn(env, k.Warnings)
	return c.print(env.Stdout, newKeyView(&k))
}

func newKeyView(k *admin.NewKey) view {
	rows := append(keyRows(&k.Key), pairs("credential", k.Credential)...)
	v := view{data: k, columns: fieldColumns, rows: rows}
	if k.Credential != "" {
		v.text = k.Credential + "\n"
	}
	return v
}

type keyUpdateCmd struct {
	oneKey
	Disabled *bool `negatable:"" help:"Do not admit it for now."`
	keyFields
	dryRun
	connection
	output
}

// Run changes a key.
func (c *keyUpdateCmd) Run(ctx context.Context, env *Env) error {
	f := c.fields()
	f.Disabled = c.Disabled
	k, err := change[admin.Key](ctx, &c.connection, request{http.MethodPatch, c.path(), c.DryRun, f})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "key %s updated", k.ID)
	warn(env, k.Warnings)
	return c.print(env.Stdout, view{data: k, columns: fieldColumns, rows: keyRows(&k)})
}

type keyRotateCmd struct {
	oneKey
	Overlap string `default:"24h" help:"How long the secret that it has now goes on working (${default})." placeholder:"D"`
	dryRun
	connection
	output
}

// Run gives a key a new secret.
func (c *keyRotateCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		Overlap string `json:"overlap"`
	}{c.Overlap}
	k, err := change[admin.NewKey](ctx, &c.connection, request{http.MethodPost, c.path() + "/rotate", c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "key %s has a new secret, which is shown this once; the old one ends in %s", k.ID, c.Overlap)
	return c.print(env.Stdout, newKeyView(&k))
}

type keyMintCmd struct {
	Env string `default:"live" help:"Label in the key, such as prod or test: 1 to 12 of a-z and 0-9 (${default})." placeholder:"LABEL"`
	output
}

// mintedKey is a key that nobody knows yet.
type mintedKey struct {
	ID         string `json:"id"`
	Env        string `json:"env"`
	Credential string `json:"credential"`
}

// Run mints a key. As a table the data is the credential alone, as with create.
func (c *keyMintCmd) Run(env *Env) error {
	minted, err := auth.Mint(c.Env)
	if err != nil {
		return err
	}
	k := mintedKey{ID: string(minted.Ref.ID), Env: minted.Ref.Env, Credential: minted.Key.Reveal()}
	fmt.Fprintf(env.Stderr, "key %s is kept nowhere: put it into the environment or a file, and declare it as secret: ${NAME} or file:/path\n", k.ID)
	return c.print(env.Stdout, view{
		data: k, columns: fieldColumns, rows: pairs("key", k.ID, "env", k.Env, "credential", k.Credential), text: k.Credential + "\n",
	})
}

type keyRevokeCmd struct {
	oneKey
	dryRun
	connection
	output
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(ctx context.Context, env *Env) error {
	k, err := change[admin.Key](ctx, &c.connection, request{http.MethodPost, c.path() + "/revoke", c.DryRun, nil})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "key %s revoked", k.ID)
	return c.print(env.Stdout, view{data: k, columns: fieldColumns, rows: keyRows(&k)})
}
