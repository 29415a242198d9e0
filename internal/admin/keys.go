package admin

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
)

// maxOverlap bounds how long a rotated secret stays valid.
const maxOverlap = 30 * 24 * time.Hour

// Key is a credential without its secret: neither the secret nor its hash has a
// field here.
type Key struct {
	ID            string    `json:"id" doc:"Public id, as it stands in the credential"`
	Tenant        string    `json:"tenant"`
	Project       string    `json:"project"`
	Env           string    `json:"env,omitempty"`
	Name          string    `json:"name,omitempty"`
	State         string    `json:"state" enum:"active,disabled,expired,revoked"`
	Models        []string  `json:"models,omitempty" doc:"Narrows the project's"`
	Limits        Limits    `json:"limits,omitempty" doc:"Each replaces the plan's per_key of the same name"`
	PerRun        RunLimits `json:"per_run,omitempty" doc:"Each replaces the plan's per_run of the same name"`
	InputCeiling  *int64    `json:"input_ceiling,omitempty" doc:"Lowers the plan's"`
	OutputCeiling *int64    `json:"output_ceiling,omitempty" doc:"Lowers the plan's"`
	Residency
	Expires  *time.Time   `json:"expires,omitempty"`
	Revoked  *time.Time   `json:"revoked,omitempty"`
	Secrets  []SecretInfo `json:"secrets" doc:"Newest first"`
	Declared string       `json:"declared,omitempty" doc:"file:line that owns it; empty when it can be changed here"`
	Created  *time.Time   `json:"created,omitempty"`
	Updated  *time.Time   `json:"updated,omitempty"`
	Warned
}

// SecretInfo is when one of a key's secrets ends.
type SecretInfo struct {
	Ends *time.Time `json:"ends,omitempty" doc:"Empty: with the key"`
}

// NewKey is a key with its credential, which is shown this once.
type NewKey struct {
	Key
	Credential string `json:"credential,omitempty" doc:"The whole key; it cannot be shown again. Empty in a dry run"`
}

// KeyFields is what can be said of a key. In an update, fields that are left out
// stay.
type KeyFields struct {
	Name          *string   `json:"name,omitempty" maxLength:"200" doc:"For humans"`
	Models        *[]string `json:"models,omitempty" maxItems:"1000" doc:"Narrows the project's; empty changes nothing"`
	Limits        Limits    `json:"limits,omitempty" doc:"Each replaces the plan's per_key of the same name"`
	PerRun        RunLimits `json:"per_run,omitempty" doc:"Each replaces the plan's per_run of the same name"`
	InputCeiling  *int64    `json:"input_ceiling,omitempty" minimum:"0" doc:"Lowers the plan's; 0 changes nothing"`
	OutputCeiling *int64    `json:"output_ceiling,omitempty" minimum:"0" doc:"Lowers the plan's; 0 changes nothing"`
	Residency
	Expires  *string `json:"expires,omitempty" doc:"A duration from now or a time; empty: never"`
	Disabled *bool   `json:"disabled,omitempty" doc:"Not admitted for now"`
}

func (a *API) keyView(k *auth.Key) Key {
	out := Key{
		ID: string(k.ID), Tenant: string(k.Tenant), Project: string(projectOf(k)), Env: k.Env, Name: k.Name,
		State: keyState(k, a.o.Now()), Limits: limitsOf(k.Limits), Expires: moment(k.NotAfter), Revoked: moment(k.Revoked),
		Declared: place(k.Origin), Created: moment(k.Created), Updated: moment(k.Updated), Secrets: []SecretInfo{},
	}
	out.PerRun, out.Residency = runLimitsOf(k.PerRun), residencyOf(k.Residency)
	out.InputCeiling, out.OutputCeiling = ceilings{&k.InputCeiling, &k.OutputCeiling}.told()
	if len(k.Models) > 0 {
		out.Models = words(k.Models)
	}
	for _, s := range k.Secrets {
		out.Secrets = append(out.Secrets, SecretInfo{Ends: moment(s.NotAfter)})
	}
	return out
}

func projectOf(k *auth.Key) sluice.ProjectID { return cmp.Or(k.Project, sluice.DefaultProject) }

func keyState(k *auth.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.NotAfter.IsZero() && !now.Before(k.NotAfter):
		return "expired"
	case k.Disabled:
		return "disabled"
	}
	return "active"
}

func (f *KeyFields) apply(k *auth.Key, now time.Time) (err error) {
	set(&k.Name, f.Name)
	set(&k.Disabled, f.Disabled)
	if f.Models != nil {
		k.Models = ids[sluice.ModelID](*f.Models)
	}
	f.Residency.apply(&k.Residency)
	if f.Expires != nil {
		if k.NotAfter, err = parseExpiry(*f.Expires, now); err != nil {
			return err
		}
	}
	ceilings{&k.InputCeiling, &k.OutputCeiling}.set(f.InputCeiling, f.OutputCeiling)
	if k.PerRun, err = f.PerRun.apply(k.PerRun, "per_run", false); err != nil {
		return err
	}
	k.Limits, err = f.Limits.apply(k.Limits, "limits")
	return err
}

func parseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return time.Time{}, hinted(sluice.Invalid("expires", "lies in the past"), "to end a key now, revoke it")
		}
		return now.Add(d).UTC(), nil
	}
	t, err := parseTime("expires", s, now)
	if err != nil {
		return t, hinted(sluice.Invalid("expires", "is neither a time nor a duration"), "write 720h (from now), 2027-01-31 or 2027-01-31T15:04:05Z")
	}
	if !t.After(now) {
		return t, hinted(sluice.Invalid("expires", "lies in the past"), "to end a key now, revoke it")
	}
	return t, nil
}

// The inputs and outputs of the key operations.
type (
	// KeyPath is the key that a path names.
	KeyPath struct {
		TenantPath
		Key string `path:"key" maxLength:"64"`
	}
	keyRef struct {
		KeyPath
		Mutation
	}
	createKeyIn struct {
		TenantPath
		Mutation
		Body struct {
			Project string `json:"project,omitempty" maxLength:"64" doc:"Empty: default"`
			Env     string `json:"env,omitempty" maxLength:"12" doc:"Label in the credential: 1 to 12 of a-z and 0-9"`
			KeyFields
		}
	}
	updateKeyIn struct {
		KeyPath
		Mutation
		Body KeyFields
	}
	rotateKeyIn struct {
		KeyPath
		Mutation
		Body struct {
			Overlap string `json:"overlap,omitempty" doc:"How long the secrets that it has now go on working, at most 720h; empty: 24h"`
		}
	}
	keyOut    struct{ Body Key }
	newKeyOut struct{ Body NewKey }
	keysOut   struct {
		Body struct {
			Keys []Key `json:"keys"`
		}
	}
)

func (a *API) registerKeys(api huma.API) {
	tags := []string{"keys"}
	const all, one = "/admin/v1/tenants/{tenant}/keys", "/admin/v1/tenants/{tenant}/keys/{key}"
	register(a, api, huma.Operation{OperationID: "list-keys", Method: http.MethodGet, Path: all, Summary: "List a tenant's keys", Tags: tags, Errors: []int{404}}, a.listKeys)
	register(a, api, huma.Operation{OperationID: "show-key", Method: http.MethodGet, Path: one, Summary: "Show a key", Tags: tags, Errors: []int{404}},
		func(ctx context.Context, in *KeyPath) (*keyOut, error) {
			k, err := a.records.key(ctx, sluice.TenantID(in.Tenant), sluice.KeyID(in.Key))
			return &keyOut{Body: a.keyView(&k)}, err
		})
	register(a, api, huma.Operation{OperationID: "create-key", Method: http.MethodPost, Path: all, Summary: "Create a key; its secret is shown this once", Tags: tags, DefaultStatus: 201, Errors: []int{404, 409}}, a.createKey)
	register(a, api, huma.Operation{OperationID: "update-key", Method: http.MethodPatch, Path: one, Summary: "Change a key", Tags: tags, Errors: []int{404, 409}}, a.updateKey)
	register(a, api, huma.Operation{OperationID: "rotate-key", Method: http.MethodPost, Path: one + "/rotate", Summary: "Give a key a new secret; the old ones end after the overlap", Tags: tags, Errors: []int{404, 409}}, a.rotateKey)
	register(a, api, huma.Operation{OperationID: "revoke-key", Method: http.MethodPost, Path: one + "/revoke", Summary: "End a key for ever, at once", Tags: tags, Errors: []int{404, 409}}, a.revokeKey)
}

func (a *API) listKeys(ctx context.Context, in *TenantPath) (*keysOut, error) {
	all, err := a.records.keys(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	out := &keysOut{}
	out.Body.Keys = make([]Key, 0, len(all))
	for i := range all {
		out.Body.Keys = append(out.Body.Keys, a.keyView(&all[i]))
	}
	return out, nil
}

func (a *API) createKey(ctx context.Context, in *createKeyIn) (*newKeyOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	t, err := a.records.tenant(ctx, sluice.TenantID(in.Tenant))
	if err != nil {
		return nil, err
	}
	project := sluice.ProjectID(cmp.Or(in.Body.Project, string(sluice.DefaultProject)))
	if _, ok := find(t.Projects, project, projectID); !ok && project != sluice.DefaultProject {
		return nil, hinted(sluice.Invalid("project", "names %q, which tenant %q does not have", project, t.ID), "create it first")
	}
	minted, err := auth.Mint(cmp.Or(in.Body.Env, a.o.Env))
	if err != nil {
		return nil, err
	}
	k := auth.Key{
		ID: minted.Ref.ID, Env: minted.Ref.Env, Tenant: t.ID, Project: project,
		Secrets: []auth.SecretHash{{Hash: minted.Ref.Hash(a.o.Hasher)}},
	}
	if err := in.Body.KeyFields.apply(&k, a.o.Now()); err != nil {
		return nil, err
	}
	if in.DryRun {
		view := a.keyView(&k)
		view.Warned = a.unknownModels(in.Body.Models)
		return &newKeyOut{Body: NewKey{Key: view}}, nil
	}
	if err := a.o.Keys.CreateKey(ctx, k); err != nil {
		return nil, err
	}
	out, err := a.shownOnce(ctx, &k, minted, "key created")
	if err == nil {
		out.Body.Warned = a.unknownModels(in.Body.Models)
	}
	return out, err
}

// changeable finds a key that may be changed here and has not been revoked.
func (a *API) changeable(ctx context.Context, in *KeyPath) (auth.Key, error) {
	k, err := a.records.key(ctx, sluice.TenantID(in.Tenant), sluice.KeyID(in.Key))
	if err != nil {
		return k, err
	}
	if err := owned("key", in.Key, k.Origin); err != nil {
		return k, err
	}
	if !k.Revoked.IsZero() {
		return k, &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.KeyRevoked, Msg: "the key has been revoked, which is for ever", Hint: "create a new key"}
	}
	return k, nil
}

// shownOnce makes a new secret take effect and answers it. It is answered even
// if the gateway could not read it back yet: it is stored and can never be shown
// again.
func (a *API) shownOnce(ctx context.Context, k *auth.Key, m auth.Minted, what string) (*newKeyOut, error) {
	if err := a.keyChanged(ctx, k, what); err != nil {
		a.o.Log.LogAttrs(ctx, slog.LevelWarn, "new key not in force yet", slog.String("id", string(k.ID)), slog.Any("error", err))
	}
	return &newKeyOut{Body: NewKey{Key: a.keyView(k), Credential: m.Key.Reveal()}}, nil
}

// keyChanged makes a change take effect and reads what the store has now.
func (a *API) keyChanged(ctx context.Context, k *auth.Key, what string) error {
	if err := a.changed(ctx, what, string(k.ID)); err != nil {
		return err
	}
	now, err := a.records.key(ctx, k.Tenant, k.ID)
	if err == nil {
		*k = now
	}
	return err
}

// storeKey replaces a key, unless it is a dry run, and reads it again. The store
// finds a change by somebody else in between by k.Updated.
func (a *API) storeKey(ctx context.Context, k *auth.Key, dry bool, what string) error {
	if dry {
		return nil
	}
	if err := a.o.Keys.UpdateKey(ctx, *k); err != nil {
		return err
	}
	return a.keyChanged(ctx, k, what)
}

func (a *API) updateKey(ctx context.Context, in *updateKeyIn) (*keyOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	k, err := a.changeable(ctx, &in.KeyPath)
	if err != nil {
		return nil, err
	}
	if err := in.Body.apply(&k, a.o.Now()); err != nil {
		return nil, err
	}
	if err := a.storeKey(ctx, &k, in.DryRun, "key updated"); err != nil {
		return nil, err
	}
	view := a.keyView(&k)
	view.Warned = a.unknownModels(in.Body.Models)
	return &keyOut{Body: view}, nil
}

func (a *API) rotateKey(ctx context.Context, in *rotateKeyIn) (*newKeyOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	overlap, err := parseDuration("overlap", cmp.Or(in.Body.Overlap, "24h"))
	if err == nil && overlap > maxOverlap {
		err = sluice.Invalid("overlap", "is longer than %s", maxOverlap)
	}
	if err != nil {
		return nil, err
	}
	k, err := a.changeable(ctx, &in.KeyPath)
	if err != nil {
		return nil, err
	}
	minted, err := auth.MintSecret(k.Env, k.ID)
	if err != nil {
		return nil, err
	}
	k.Rotate(minted.Ref.Hash(a.o.Hasher), a.o.Now().UTC(), overlap)
	if in.DryRun {
		return &newKeyOut{Body: NewKey{Key: a.keyView(&k)}}, nil
	}
	if err := a.o.Keys.UpdateKey(ctx, k); err != nil {
		return nil, err
	}
	return a.shownOnce(ctx, &k, minted, "key rotated")
}

// revokeKey ends a key. Revoking again changes nothing and succeeds.
func (a *API) revokeKey(ctx context.Context, in *keyRef) (*keyOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	k, err := a.records.key(ctx, sluice.TenantID(in.Tenant), sluice.KeyID(in.Key))
	if err != nil {
		return nil, err
	}
	if err := owned("key", in.Key, k.Origin); err != nil {
		return nil, err
	}
	if k.Revoked.IsZero() {
		k.Revoked = a.o.Now().UTC()
		if err := a.storeKey(ctx, &k, in.DryRun, "key revoked"); err != nil {
			return nil, err
		}
	}
	return &keyOut{Body: a.keyView(&k)}, nil
}
