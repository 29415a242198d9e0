package proxy

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/front"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// The defaults of Options.
const (
	DefaultMaxBody        = 32 << 20 // bytes
	DefaultBodyRate       = 16 << 10 // bytes per second
	DefaultBodyGrace      = 10 * time.Second
	DefaultKeepAliveAfter = 15 * time.Second
	DefaultWriteStall     = 30 * time.Second
)

// Options is what a Proxy works with. The first three are needed; zero fields
// below take the defaults.
type Options struct {
	Run exchange.Runner // exchange.Exchange.Run, or what stands in front of it
	// Identify finds who a credential belongs to. Its error is a *sluice.Error.
	Identify func(credential string) (sluice.Principal, error)
	Table    func() *route.Table
	// Look finds an open request, for its own caller (admit.Gate.Look); nil has
	// none.
	Look func(z engine.Zoom, limit int) engine.View

	Log   func(*Record) // called once for each request, at its end
	Ready func() bool   // what readiness depends on beside LameDuck; nil is always
	// Panic is told of a handler that panicked; nil is silent. The exchange tells
	// of its own.
	Panic func(id sluice.RequestID, value any, stack []byte)

	MaxBody        int64         // bytes of a request body
	BodyRate       int64         // least bytes per second of a body, after BodyGrace
	BodyGrace      time.Duration // before BodyRate counts
	KeepAliveAfter time.Duration // silence of a stream before a comment is sent
	WriteStall     time.Duration // how long a write may wait for the client
	MaxConns       int           // connections at a time; further ones wait to be accepted. 0 is no bound

	Mounts []Mount // what other faces serve below the same address
	// Later takes a request that is answered later; nil answers all at once.
	Later func(ctx context.Context, r *exchange.Request) (Deferred, error)

	NewID func() sluice.RequestID // nil mints UUIDv7
}

// Proxy is the data plane.
type Proxy struct {
	o    Options
	lame atomic.Bool

	base   context.Context // ends when requests must end
	cancel context.CancelCauseFunc
	front  *front.Server
	server *http.Server // of what is not plain
	bodies bodies
}

// New makes a Proxy. It serves once its Server does.
func New(o Options) *Proxy {
	def := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.BodyGrace, DefaultBodyGrace)
	def(&o.KeepAliveAfter, DefaultKeepAliveAfter)
	def(&o.WriteStall, DefaultWriteStall)
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.BodyRate <= 0 {
		o.BodyRate = DefaultBodyRate
	}
	if o.NewID == nil {
		o.NewID = mint
	}
	if o.Log == nil {
		o.Log = func(*Record) {}
	}
	p := &Proxy{o: o}
	p.base, p.cancel = context.WithCancelCause(context.Background())
	handler, operations := p.routes()
	p.server, p.front = p.newServer(handler), p.newFront(operations)
	return p
}

func mint() sluice.RequestID {
	return sluice.RequestID("req_" + uuid.Must(uuid.NewV7()).String())
}

// Handler is the routes of the data plane.
func (p *Proxy) Handler() http.Handler {
	all, _ := p.routes()
	return all
}

// routes are all of the data plane, and those of POST to a path that is an operation's.
func (p *Proxy) routes() (all http.Handler, operations map[string]http.HandlerFunc) {
	mux := http.NewServeMux()
	operations = map[string]http.HandlerFunc{}
	for _, op := range []wire.Operation{
		wire.Chat, wire.Completions, wire.Embeddings, wire.Responses, wire.Messages, wire.CountTokens,
		wire.ImageGenerations, wire.ImageEdits, wire.ImageVariations, wire.Speech, wire.Transcriptions, wire.Translations, wire.Moderations, wire.Rerank,
	} {
		operations["/v1"+op.Path()] = func(w http.ResponseWriter, r *http.Request) {
			p.handle(w, r, op, prefer(op), (*call).serve)
		}
		mux.HandleFunc("POST /v1"+op.Path(), operations["/v1"+op.Path()])
		mux.HandleFunc("/v1"+op.Path(), func(w http.ResponseWriter, r *http.Request) {
			p.handle(w, r, op, prefer(op), wrongMethod(http.MethodPost))
		})
	}
	p.serveStored(mux)
	mux.HandleFunc("GET /v1/models", p.unread((*call).listModels))
	mux.HandleFunc("GET /v1/models/{id...}", p.unread((*call).oneModel))
	for _, version := range geminiVersions {
		mux.HandleFunc("POST "+version+"/models/{rest...}", p.gemini)
	}
	mux.HandleFunc("GET /v1beta/models", p.unread((*call).listModels))
	mux.HandleFunc("GET /v1beta/models/{id...}", p.unread((*call).oneModel))
	mux.HandleFunc("/v1beta/models/{id...}", p.unread(wrongMethod("GET, POST")))
	mux.HandleFunc("GET /v1/sluice/requests/{id}", p.unread((*call).openRequest))
	mux.HandleFunc("/v1/sluice/requests/{id}", p.unread(wrongMethod(http.MethodGet)))
	mux.HandleFunc("/v1/models", p.unread(wrongMethod(http.MethodGet)))
	mux.HandleFunc("/v1/models/{id...}", p.unread(wrongMethod(http.MethodGet)))
	p.mount(mux)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", p.readyz)
	notFound := p.unread((*call).notFound)
	mux.HandleFunc("/", notFound)
	wrong := p.unread(wrongMethod("GET, POST"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.RawPath == "" { // nearly all are, and need no search
			if serve := operations[r.URL.Path]; serve != nil {
				serve(w, r)
				return
			}
		}
		switch { // what the mux would answer by itself, in no dialect
		case r.Method == http.MethodConnect:
			wrong(w, r)
		case !clean(r.URL.Path):
			notFound(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	}), operations
}

// clean reports whether a path is one that the mux does not redirect.
func clean(p string) bool {
	return p == "/" || path.Clean("/"+strings.TrimSuffix(p, "/")) == strings.TrimSuffix(p, "/")
}

// unread serves a request that has no body, in the dialect that its headers
// speak.
func (p *Proxy) unread(f func(*call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.handle(w, r, wire.Models, preferIn(spoken(r)), f)
	}
}

// spoken is the dialect of a request whose path does not tell: all serve
// /v1/models.
func spoken(r *http.Request) wire.Dialect {
	switch {
	case len(r.Header["Anthropic-Version"]) > 0:
		return wire.Anthropic
	case isGemini(r):
		return wire.Gemini
	}
	return wire.OpenAI
}

func prefer(op wire.Operation) auth.Prefer {
	if op.Dialect() == wire.Anthropic {
		return auth.PreferAPIKey
	}
	return auth.PreferAuthorization
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(text + "\n"))
}

func (p *Proxy) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case p.lame.Load():
		plain(w, http.StatusServiceUnavailable, "shutting down")
	case p.o.Ready != nil && !p.o.Ready():
		plain(w, http.StatusServiceUnavailable, "not ready")
	default:
		plain(w, http.StatusOK, "ok")
	}
}
