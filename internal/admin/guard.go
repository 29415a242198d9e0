package admin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
)

// The bounds of one request.
const (
	maxBody        = 1 << 20          // bytes
	requestTimeout = 60 * time.Second // for a handler; ledger verification is the longest
)

// Route is one registered route and whether it is open to anybody.
type Route struct {
	Method, Path string
	Open         bool
}

// router is an http.ServeMux that remembers what was registered and which
// patterns are open. It satisfies humago.Mux.
type router struct {
	*http.ServeMux
	open   map[string]bool // by pattern
	routes []Route
}

func newRouter() *router {
	return &router{ServeMux: http.NewServeMux(), open: make(map[string]bool)}
}

// HandleFunc registers a route that needs a token: the default.
func (r *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	method, path, _ := strings.Cut(pattern, " ")
	r.routes = append(r.routes, Route{Method: method, Path: path})
	r.ServeMux.HandleFunc(pattern, h)
}

// handleOpen registers a route that anybody may read.
func (r *router) handleOpen(pattern string, h http.HandlerFunc) {
	method, path, _ := strings.Cut(pattern, " ")
	r.routes = append(r.routes, Route{Method: method, Path: path, Open: true})
	r.open[pattern] = true
	r.ServeMux.HandleFunc(pattern, h)
}

// operator is the context key of the token that a request came with.
type operator struct{}

// operatorOf is whose token made the request.
func operatorOf(ctx context.Context) auth.AdminToken {
	t, _ := ctx.Value(operator{}).(auth.AdminToken)
	return t
}

// guard is the one door: origin, bounds, token, then the router. What the router
// does not know needs a token too, so that nobody can map the API without one.
func (a *API) guard(mux *router) http.Handler {
	door := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		_, pattern := mux.Handler(r)
		if !mux.open[pattern] {
			token, err := a.authorize(r)
			if err != nil {
				w.Header().Set("WWW-Authenticate", `Bearer realm="sluice admin"`)
				problemOf(err).write(w)
				return
			}
			r = r.WithContext(context.WithValue(ctx, operator{}, token))
		}
		if pattern == "" {
			notFound(mux, w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	cop := http.NewCrossOriginProtection()
	cop.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problemOf(&sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied,
			Msg: "a page of another origin may not change anything here",
		}).write(w)
	}))
	return cop.Handler(door)
}

// authorize finds whose token the request carries.
func (a *API) authorize(r *http.Request) (auth.AdminToken, error) {
	token, err := auth.Credential(r.Header, auth.PreferAuthorization)
	if err != nil {
		e := *sluice.AsError(err)
		e.Msg = strings.Replace(e.Msg, "API key", "admin token", 1)
		e.Hint = "send Authorization: Bearer sla_…; it was printed at the first start and is in the data directory's admin-token file"
		return auth.AdminToken{}, &e
	}
	if strings.HasPrefix(token, auth.KeyPrefix+"_") {
		return auth.AdminToken{}, &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied,
			Msg: "a tenant's key does not open the admin API", Hint: "use an admin token, which starts with sla_",
		}
	}
	return a.o.Admin(token, a.o.Now())
}

// notFound answers what no route matches: 405 with Allow where another method
// would, else 404.
func notFound(mux *router, w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = m
		if _, p := mux.Handler(probe); p != "" {
			allow = append(allow, m)
		}
	}
	p := problemOf(&sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no such path", Hint: "see /openapi.json"})
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
		p.Kind, p.Reason = sluice.KindInvalid.String(), sluice.MethodNotAllowed.String()
		p.Detail, p.Hint = "the path does not take this method", "use "+strings.Join(allow, " or ")
	}
	p.write(w)
}

// register adds one operation. Errors of the handler become Problems; those
// that are not for the client are logged here, once.
func register[I, O any](a *API, api huma.API, op huma.Operation, h func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	op.BodyReadTimeout = 10 * time.Second
	op.Security = []map[string][]string{{"token": {}}}
	op.Errors = slices.Concat(op.Errors, []int{401, 403, 422, 503})
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err == nil {
			return out, nil
		}
		p := problemOf(err)
		if p.Status >= 500 && ctx.Err() == nil {
			a.o.Log.LogAttrs(ctx, slog.LevelError, "admin request failed", slog.String("operation", op.OperationID), slog.Any("error", err))
		}
		return nil, p
	})
}

// changed logs a change and makes it take effect.
func (a *API) changed(ctx context.Context, what, id string) error {
	a.o.Log.LogAttrs(ctx, slog.LevelInfo, what, slog.String("id", id), slog.String("by", operatorOf(ctx).ID))
	if a.o.Changed == nil {
		return nil
	}
	if err := a.o.Changed(ctx); err != nil {
		return &sluice.Error{
			Kind: sluice.KindOverloaded, Reason: sluice.NotReady, Err: err,
			Msg: "the change is stored, but the gateway could not read it back yet", Hint: "it takes effect within 5 s of the store answering again",
		}
	}
	return nil
}
