package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sluice"
	"sluice/internal/auth"
)

// records reads and changes tenants, keys and plans in both of their places.
type records struct {
	o  *Options
	mu sync.Mutex // serialises read-modify-write
}

// declared is what the configuration file owns.
func (r *records) declared() auth.Records {
	if r.o.Declared == nil {
		return auth.Records{}
	}
	return r.o.Declared()
}

// owned refuses a change of what a file declares.
func owned(what, id string, o auth.Origin) error {
	if !o.Declared() {
		return nil
	}
	return &sluice.Error{
		Kind: sluice.KindConflict, Reason: sluice.InvalidRequest,
		Msg:  fmt.Sprintf("%s %q is declared in %s:%d and read-only here", what, id, o.File, o.Line),
		Hint: "change the file and reload the configuration",
	}
}

func missing(what, id string) error {
	return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no %s %q", what, id)}
}

func exists(what, id string) error {
	return &sluice.Error{Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Msg: fmt.Sprintf("%s %q exists already", what, id)}
}

// merge puts the declared records first and drops the stored ones that they
// shadow, ordered by id.
func merge[T any, K ~string](declared, stored []T, id func(*T) K) []T {
	out := slices.Clone(declared)
	for i := range stored {
		shadowed := slices.ContainsFunc(declared, func(d T) bool { return id(&d) == id(&stored[i]) })
		if !shadowed {
			out = append(out, stored[i])
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(string(id(&a)), string(id(&b))) })
	return out
}

func find[T any, K ~string](all []T, want K, id func(*T) K) (T, bool) {
	for i := range all {
		if id(&all[i]) == want {
			return all[i], true
		}
	}
	var none T
	return none, false
}

func planID(p *auth.Plan) sluice.PlanID          { return p.ID }
func tenantID(t *auth.Tenant) sluice.TenantID    { return t.ID }
func keyID(k *auth.Key) sluice.KeyID             { return k.ID }
func projectID(p *auth.Project) sluice.ProjectID { return p.ID }
func ofTenant(t sluice.TenantID) func(auth.Key) bool {
	return func(k auth.Key) bool { return k.Tenant != t }
}

func (r *records) plans(ctx context.Context) ([]auth.Plan, error) {
	stored, err := r.o.Plans.Plans(ctx)
	if err != nil {
		return nil, err
	}
	return merge(r.declared().Plans, stored, planID), nil
}

func (r *records) plan(ctx context.Context, id sluice.PlanID) (auth.Plan, error) {
	if p, ok := find(r.declared().Plans, id, planID); ok {
		return p, nil
	}
	return r.o.Plans.Plan(ctx, id)
}

func (r *records) tenants(ctx context.Context) ([]auth.Tenant, error) {
	stored, err := r.o.Tenants.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	return merge(r.declared().Tenants, stored, tenantID), nil
}

func (r *records) tenant(ctx context.Context, id sluice.TenantID) (auth.Tenant, error) {
	if t, ok := find(r.declared().Tenants, id, tenantID); ok {
		return t, nil
	}
	return r.o.Tenants.Tenant(ctx, id)
}

// keys lists the keys of one tenant, which must exist.
func (r *records) keys(ctx context.Context, t sluice.TenantID) ([]auth.Key, error) {
	if _, err := r.tenant(ctx, t); err != nil {
		return nil, err
	}
	stored, err := r.o.Keys.Keys(ctx, t)
	if err != nil {
		return nil, err
	}
	declared := slices.DeleteFunc(slices.Clone(r.declared().Keys), ofTenant(t))
	return merge(declared, stored, keyID), nil
}

func (r *records) key(ctx context.Context, t sluice.TenantID, id sluice.KeyID) (auth.Key, error) {
	if k, ok := find(r.declared().Keys, id, keyID); ok {
		if k.Tenant != t {
			return auth.Key{}, missing("key", string(id))
		}
		return k, nil
	}
	return r.o.Keys.Key(ctx, t, id)
}

// writable is tenant, refusing one that a file owns: its projects are declared
// there too. Keys can be added to it here.
func (r *records) writable(ctx context.Context, id sluice.TenantID) (auth.Tenant, error) {
	t, err := r.tenant(ctx, id)
	if err != nil {
		return t, err
	}
	return t, owned("tenant", string(id), t.Origin)
}
