package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// BackendRow is one backend of one pool.
type BackendRow struct {
	Pool string `json:"pool"`
	BackendStatus
}

// CredentialRow is one credential of a provider, and what it may be used for.
type CredentialRow struct {
	Credential string     `json:"credential" doc:"Its name in the configuration"`
	Backend    string     `json:"backend,omitempty" doc:"Where the state holds at one backend alone"`
	State      string     `json:"state" enum:"usable,cooling,parked,disabled" doc:"cooling: the provider limited its rate there; parked: its allowance is spent; disabled: the provider refuses it"`
	Until      *time.Time `json:"until,omitempty" doc:"When one request tries it again; of cooling, when it may be used"`
}

type (
	backendsOut struct {
		Body struct {
			Backends []BackendRow `json:"backends"`
		}
	}
	credentialsOut struct {
		Body struct {
			Credentials []CredentialRow `json:"credentials" doc:"Those of backends that have names for them, and others that are out; at most 1000 of each state"`
		}
	}
	backendIn struct {
		Mutation
		Backend string `path:"backend" maxLength:"64"`
	}
	enableIn struct {
		Mutation
		Body struct {
			Credential string `json:"credential" minLength:"1" maxLength:"256" doc:"Its name, as the list has it"`
			Backend    string `json:"backend,omitempty" maxLength:"64" doc:"Where it was refused at this backend alone; wherever it was, if left out"`
		}
	}
	orderOut struct {
		Body struct {
			Changed bool   `json:"changed" doc:"Whether it was otherwise before"`
			Note    string `json:"note,omitempty" doc:"What else is to be known"`
		}
	}
)

func (a *API) registerBackends(api huma.API) {
	if a.o.View == nil || a.o.Operate == nil {
		return
	}
	tags := []string{"operate"}
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: tags}
	}
	register(a, api, op("list-backends", http.MethodGet, "/admin/v1/backends", "Backends, their load and health"), a.backends)
	register(a, api, op("list-credentials", http.MethodGet, "/admin/v1/credentials", "Credentials of providers: what each may be used for, and until when it is out"), a.credentials)
	register(a, api, op("drain-backend", http.MethodPost, "/admin/v1/backends/{backend}/drain", "Keep new attempts from a backend until it is undrained or the gateway starts anew; what runs there ends there"),
		func(ctx context.Context, in *backendIn) (*orderOut, error) {
			return a.operate(ctx, "backend drained", &in.Mutation, engine.Order{Backend: sluice.BackendID(in.Backend), Drain: true})
		})
	register(a, api, op("undrain-backend", http.MethodPost, "/admin/v1/backends/{backend}/undrain", "Give a drained backend attempts again"),
		func(ctx context.Context, in *backendIn) (*orderOut, error) {
			return a.operate(ctx, "backend undrained", &in.Mutation, engine.Order{Backend: sluice.BackendID(in.Backend), Undrain: true})
		})
	register(a, api, op("enable-credential", http.MethodPost, "/admin/v1/credentials/enable", "Use a credential at once that was disabled or parked"),
		func(ctx context.Context, in *enableIn) (*orderOut, error) {
			return a.operate(ctx, "credential enabled", &in.Mutation, engine.Order{Backend: sluice.BackendID(in.Body.Backend), Enable: in.Body.Credential})
		})
}

// operate carries out an order and logs who gave it.
func (a *API) operate(ctx context.Context, what string, in *Mutation, o engine.Order) (*orderOut, error) {
	if in.DryRun {
		return nil, hinted(sluice.Invalid("dry_run", "is not known here"), "GET /admin/v1/backends and /admin/v1/credentials show what there is")
	}
	changed, err := a.o.Operate(o)
	if err != nil {
		return nil, err
	}
	out := &orderOut{}
	out.Body.Changed = changed
	attrs := []slog.Attr{slog.String("by", operatorOf(ctx).ID), slog.Bool("changed", changed)}
	if o.Backend != "" {
		attrs = append(attrs, slog.String("backend", string(o.Backend)))
	}
	if o.Enable != "" {
		attrs = append(attrs, slog.String("credential", o.Enable))
	}
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, what, attrs...)
	return out, nil
}

func (a *API) backends(context.Context, *struct{}) (*backendsOut, error) {
	out := &backendsOut{}
	out.Body.Backends = []BackendRow{}
	v := a.o.View(maxRows)
	for i := range v.Pools {
		p := poolView(&v.Pools[i], maxRows)
		for _, b := range p.Backends {
			out.Body.Backends = append(out.Body.Backends, BackendRow{Pool: p.Pool, BackendStatus: b})
		}
	}
	return out, nil
}

func (a *API) credentials(context.Context, *struct{}) (*credentialsOut, error) {
	out := &credentialsOut{}
	out.Body.Credentials = []CredentialRow{}
	now := a.o.Now().UTC()
	add := func(c *engine.CredentialView, state string) {
		row := CredentialRow{Credential: c.ID, Backend: string(c.Backend), State: state}
		if state != string(route.CredentialUsable) {
			until := now.Add(c.RetryIn)
			row.Until = &until
		}
		out.Body.Credentials = append(out.Body.Credentials, row)
	}
	v := a.o.View(maxRows)
	for i := range v.Credentials {
		add(&v.Credentials[i], string(v.Credentials[i].State))
	}
	for i := range v.Cooling {
		if v.Cooling[i].State == route.CredentialUsable { // else it stands there already
			add(&v.Cooling[i], "cooling")
		}
	}
	return out, nil
}
