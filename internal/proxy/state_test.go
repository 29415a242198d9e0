package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/fakellm"
	"sluice/internal/route"
	"sluice/internal/stateful"
	"sluice/internal/wire"
)

// rows is a store of what backends keep, in memory.
type rows struct {
	mu  sync.Mutex
	all []stateful.Record
}

func (s *rows) WriteState(_ context.Context, _ time.Time, ops []stateful.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range ops {
		s.all = slices.DeleteFunc(s.all, func(r stateful.Record) bool { return r.Mark == op.Mark && r.Pin == op.Pin })
		if !op.Drop {
			s.all = append(s.all, op.Record)
		}
	}
	return nil
}

func (s *rows) ReadState(_ context.Context, _ int64, _ time.Time, f func(stateful.Record)) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		f(r)
	}
	return 1, nil
}

func (s *rows) ForgetState(context.Context, time.Time) error { return nil }

// rival is another tenant's credential.
const rival = "slk_test_canary-of-the-rival"

// keeping is a gateway for two tenants that remembers what backends keep. The keeper lives
// as long as the test.
func keeping(s setup, store stateful.Store, state **stateful.Keeper, first func(t *testing.T, s *setup)) setup {
	s.places = slices.Clone(s.places)
	s.before = func(t *testing.T, s *setup) {
		k := stateful.New(stateful.Options{Store: store})
		if err := k.Load(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		k.Start(t.Context())
		s.state, *state = k, k
		if first != nil {
			first(t, s)
		}
	}
	s.options = func(o *Options) {
		own := o.Identify
		o.Identify = func(credential string) (sluice.Principal, error) {
			if credential != rival {
				return own(credential)
			}
			p, err := own(clientSecret)
			p.Tenant, p.Key = "globex", "theirs"
			return p, err
		}
	}
	return s
}

func (a ask) of(credential string) ask {
	a.header = http.Header{"Authorization": {"Bearer " + credential}}
	return a
}

var containerID = regexp.MustCompile(`container_[0-9a-f]+`)

func inContainer(stream bool, more string) ask {
	return ask{path: "/v1/messages", body: fmt.Sprintf(`{"model":"m","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"run it [[tokens=3]]"}],%s}`, stream, more)}
}

const codeTool = `"tools":[{"type":"code_execution_20250825","name":"code_execution"}]`

// Requests that name a container go to the replica that has it, or, at a hosted provider,
// go with the credential that it was made with; after a restart too. Elsewhere it is 404.
func TestStateIsWhereItWasMade(t *testing.T) {
	for _, replica := range []bool{true, false} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("replica=%v/stream=%v", replica, stream), func(t *testing.T) {
				places := make([]place, 3)
				for i := range places {
					places[i] = place{dialect: wire.Anthropic, replica: replica}
					if !replica {
						places[i].keys = []string{"k1", "k2", "k3"}
					}
				}
				store := &rows{}
				var state *stateful.Keeper
				var servers []*fakellm.Server
				s := keeping(setup{places: places}, store, &state, func(t *testing.T, s *setup) {
					for i := range s.places { // of the account all see the same containers
						if replica || i == 0 {
							made, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "up", Ratio: 1100, Output: 60}}, Seed: uint64(i)})
							if err != nil {
								t.Fatal(err)
							}
							servers = append(servers, made)
						}
						s.places[i].handler = servers[len(servers)-1]
					}
				})
				inBubble(t, s, func(t *testing.T, r *rig) {
					defer func() {
						for _, s := range servers {
							s.Close()
						}
					}()
					at := map[string]string{}
					for range 9 {
						g := r.do(inContainer(stream, codeTool))
						id := containerID.FindString(g.body)
						if g.status != 200 || id == "" {
							t.Fatalf("got %d %s", g.status, g.body)
						}
						at[id] = g.header.Get("Sluice-Backend")
					}
					check := func(r *rig) {
						t.Helper()
						for id, backend := range at {
							for i, ref := range []string{`"container":"` + id + `"`, `"container":{"id":"` + id + `","skills":[]},` + codeTool} {
								g := r.do(inContainer(stream, ref))
								if g.status != 200 || replica && g.header.Get("Sluice-Backend") != backend {
									t.Errorf("reference %d to %s of %s: %d from %s: %s", i, id, backend, g.status, g.header.Get("Sluice-Backend"), g.body)
								}
								if d := string(r.last().Final.Detail); !strings.Contains(d, `"refers_to":["container"],"kept_at":["`) || replica && !strings.Contains(d, `"left":"state"`) {
									t.Errorf("the ledger does not say so: %s", d)
								}
							}
							g := r.do(inContainer(stream, `"container":"`+id+`"`).of(rival))
							if g.status != 404 || !strings.Contains(g.body, "not_found_error") {
								t.Errorf("another tenant: %d %s", g.status, g.body)
							}
						}
					}
					check(r)
					if backends := slices.Compact(slices.Sorted(func(yield func(string) bool) {
						for _, b := range at {
							if !yield(b) {
								return
							}
						}
					})); len(backends) != 3 {
						t.Errorf("containers at %v: a choice that knows no better finds them too", backends)
					}
					state.Close()
					again := s
					again.before, again.places = nil, slices.Clone(places)
					for i := range again.places {
						again.places[i].handler = servers[min(i, len(servers)-1)]
					}
					again.state = stateful.New(stateful.Options{Store: store})
					if err := again.state.Load(t.Context(), store); err != nil {
						t.Fatal(err)
					}
					next := newRig(t, again)
					stop := next.serve(again)
					check(next)
					stop()
				})
			})
		}
	}
}

// refs are the places in which a request refers to a file, a container or audio: the path,
// and the body around the id.
var refs = []struct{ path, before, after string }{
	{"/v1/messages", `{"model":"m","max_tokens":9,"container":"`, `","messages":[{"role":"user","content":"x"}]}`},
	{"/v1/messages", `{"model":"m","max_tokens":9,"container":{"skills":[],"id":"`, `"},"messages":[{"role":"user","content":"x"}]}`},
	{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"`, `"}}]}]}`},
	{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"file_id":"`, `","type":"container_upload"}]}]}`},
	{"/v1/messages", `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"file_id":"`, `","type":"file"}}]}]}]}`},
	{"/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"file","file_id":"`, `"}}]}}]}]}`},
	{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"`, `"}}]}]}`},
	{"/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","audio":{"id":"`, `"}},{"role":"user","content":"x"}]}`},
}

// kindsOf names an id as everything that a request may refer to.
func kindsOf(id string) (all []route.State) {
	for k := range route.NumStateKinds {
		all = append(all, route.State{Kind: route.StateKind(k), ID: id})
	}
	return all
}

// Whatever a tenant writes, what refers to another's id reaches no backend, and is told in
// the words of one that does not exist.
func TestStateWalls(t *testing.T) {
	var state *stateful.Keeper
	var calls atomic.Int64
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body := `{"id":"x","model":"up","choices":[{"index":0,"message":{"content":"y"},"finish_reason":"stop"}],"usage":` + usage(3, 1) + `}`
		if strings.HasPrefix(r.URL.Path, "/v1/messages") {
			body = `{"id":"x","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"y"}],"stop_reason":"end_turn","input_tokens":3,"usage":{"input_tokens":3,"output_tokens":1}}`
		}
		answers(200, body).ServeHTTP(w, r)
	})
	places := []place{{handler: ok, dialect: wire.Anthropic, keys: []string{"k"}}, {handler: ok, keys: []string{"k"}}}
	inBubble(t, keeping(setup{places: places}, &rows{}, &state, nil), func(t *testing.T, r *rig) {
		defer state.Close()
		for i := range 4 {
			state.Keep("acme", route.Pin{Provider: "p", Key: "k"}, kindsOf(fmt.Sprint("theirs-", i)))
			state.Keep("globex", route.Pin{Provider: "p", Key: "k"}, kindsOf(fmt.Sprint("mine-", i)))
		}
		ids := regexp.MustCompile(`(theirs|nobody)-\d|req_[0-9a-f-]+`)
		send := func(credential, id string, ref int) (got, int64) {
			was := calls.Load()
			g := r.do(ask{path: refs[ref].path, body: refs[ref].before + id + refs[ref].after}.of(credential))
			return g, calls.Load() - was
		}
		for i := range refs {
			if g, n := send(clientSecret, "theirs-1", i); g.status != 200 || n != 1 {
				t.Errorf("reference %d of its tenant: %d %s", i, g.status, g.body)
			}
			theirs, n := send(rival, "theirs-1", i)
			nobodys, m := send(rival, "nobody-1", i)
			if theirs.status != 404 || n+m > 0 {
				t.Errorf("reference %d of another tenant: %d %s, %d calls", i, theirs.status, theirs.body, n+m)
			}
			if a, b := ids.ReplaceAllString(theirs.body, ""), ids.ReplaceAllString(nobodys.body, ""); a != b {
				t.Errorf("reference %d: another's is told as %s, nobody's as %s", i, a, b)
			}
			for name := range theirs.header {
				if name != "Date" && !strings.HasSuffix(name, "Request-Id") && !slices.Equal(theirs.header[name], nobodys.header[name]) {
					t.Errorf("reference %d: %s differs: %q and %q", i, name, theirs.header[name], nobodys.header[name])
				}
			}
		}
		rnd := rand.New(rand.NewPCG(7, 7))
		one := func() bool { return rnd.IntN(2) == 0 }
		for range 400 {
			path := refs[rnd.IntN(len(refs))].path
			foreign := false
			id := func() string {
				id := [...]string{"mine-1", "mine-2", "mine-3", "mine-0", "theirs-1", "nobody-1"}[rnd.IntN(6)]
				foreign = foreign || !strings.HasPrefix(id, "mine")
				if one() {
					return fmt.Sprintf(`"\u00%02x%s"`, id[0], id[1:])
				}
				return `"` + id + `"`
			}
			var part func(depth int) string
			part = func(depth int) string {
				switch n := rnd.IntN(7); {
				case n == 0 && depth > 0:
					return `{"type":"tool_result","tool_use_id":"t","content":[` + part(depth-1) + `,` + part(depth-1) + `]}`
				case n == 1:
					return `{"type":"document","source":{"file_id":` + id() + `,"type":"file"}}`
				case n == 2:
					return `{"file_id":` + id() + `,"type":"container_upload"}`
				case n == 3:
					return `{"type":"file","file":{"filename":"f","file_id":` + id() + `}}`
				case n == 4 && depth > 0:
					return `{"source":{"content":[` + part(depth-1) + `],"type":"content"},"type":"document"}`
				case n == 5:
					return `{"file_id":` + id() + `,"type":"image","source":{"type":"file","file_id":` + id() + `}}`
				}
				return `{"type":"text","text":"theirs-1 file_id"}`
			}
			body := `{"messages":[{"role":"user","content":[` + part(3) + `,` + part(3) + `]}`
			if path == "/v1/chat/completions" && one() {
				body += `,{"role":"assistant","audio":{"id":` + id() + `}}`
			}
			body += `],"max_tokens":9,"model":"m"`
			if path != "/v1/chat/completions" && one() {
				body += `,"container":` + id()
			}
			was := calls.Load()
			g := r.do(ask{path: path, body: body + "}"}.of(rival))
			if n := calls.Load() - was; foreign && (n > 0 || g.status != 404) || !foreign && (n != 1 || g.status != 200) {
				t.Errorf("%s %s\n%d %s, %d calls", path, body, g.status, g.body, n)
				return
			}
		}
	})
}

// A place that is out is waited for or told of: the request goes nowhere else, whatever
// fallback there is, is neither hedged nor copied, and is tried again only there.
func TestStateOfAPlaceThatIsOut(t *testing.T) {
	var state *stateful.Keeper
	calls := make([]atomic.Int64, 4)
	counted := func(i int, h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls[i].Add(1)
			h.ServeHTTP(w, r)
		})
	}
	down := atomic.Bool{}
	flaky := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			answers(503, `{"error":{"message":"down"}}`).ServeHTTP(w, r)
			return
		}
		talk{before: 5 * time.Second, chunks: 1, usage: usage(3, 1)}.ServeHTTP(w, r)
	})
	up := talk{chunks: 1, usage: usage(3, 1)}
	var skipped []route.Skip
	var told []string
	s := keeping(setup{
		places:  []place{{handler: counted(0, flaky), replica: true, domain: "a"}, {handler: counted(1, up), replica: true, domain: "b"}, {handler: counted(2, up), replica: true, fallback: true, domain: "c"}, {handler: counted(3, up), next: true}},
		hedge:   &route.Hedging{After: time.Second, Classes: [sluice.NumClasses]bool{true, true, true}},
		shadows: []route.Shadow{{Pool: "next", Share: route.CanaryParts, Limits: []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 9}}}},
		hooks: exchange.Hooks{
			Skipped: func(_ sluice.ModelID, _ sluice.PoolID, why route.Skip) { skipped = append(skipped, why) },
			State:   func(k route.StateKind, result string) { told = append(told, k.String()+" "+result) },
		},
	}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		state.Keep("acme", route.Pin{Provider: "p", Backend: "b0"}, kindsOf("it"))
		state.Keep("acme", route.Pin{Provider: "p", Backend: "b1"}, kindsOf("other"))
		state.Keep("acme", route.Pin{Provider: "p", Backend: "gone"}, kindsOf("lost"))
		named := func(ids ...string) ask {
			var parts []string
			for _, id := range ids {
				parts = append(parts, `{"type":"file","file":{"file_id":"`+id+`"}}`)
			}
			return ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[` + strings.Join(parts, ",") + `]}]}`}
		}
		if g := r.do(named("it")); g.status != 200 || g.took != 5*time.Second {
			t.Errorf("late: %d after %v: %s", g.status, g.took, g.body)
		}
		if len(skipped) != 1 || skipped[0] != route.SkipEffects {
			t.Errorf("it was copied, or not for its reference: %q", skipped)
		}
		down.Store(true)
		for i := range 12 {
			g := r.do(named("it"))
			if g.status != 503 && g.status != 502 {
				t.Errorf("request %d: %d %s", i, g.status, g.body)
			}
			if i == 11 && !strings.Contains(g.body, "is kept at one place, which is not available now") {
				t.Errorf("with its breaker open: %d %s", g.status, g.body)
			}
		}
		if n := calls[0].Load(); n < 5 || n > 13 {
			t.Errorf("%d calls of the place", n)
		}
		if g := r.do(named("lost")); g.status != 400 || !strings.Contains(g.body, "not served where") {
			t.Errorf("of a place that is gone: %d %s", g.status, g.body)
		}
		if g := r.do(named("it", "other")); g.status != 400 || !strings.Contains(g.body, "at another place") {
			t.Errorf("of two places: %d %s", g.status, g.body)
		}
		for i := 1; i < 4; i++ {
			if n := calls[i].Load(); n > 0 {
				t.Errorf("%d calls of b%d, which has nothing of it", n, i)
			}
		}
		synctest.Wait()
		if told[0] != "file pinned" || told[len(told)-1] != "file split" {
			t.Errorf("told %q", told)
		}
	})
}

// A tenant that may refer to what nobody here has finds out from the provider, makes it its
// own by that, and gets nothing of another tenant's.
func TestForeignState(t *testing.T) {
	var state *stateful.Keeper
	up := talk{chunks: 1, usage: usage(3, 1)}
	s := keeping(setup{places: []place{{handler: up, replica: true}, {handler: up, replica: true}}, policy: sluice.Policy{ForeignState: true}}, &rows{}, &state, nil)
	inBubble(t, s, func(t *testing.T, r *rig) {
		defer state.Close()
		named := func(id string) ask {
			return ask{body: `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"` + id + `"}}]}]}`}
		}
		first := r.do(named("uploaded"))
		if first.status != 200 {
			t.Fatalf("got %d %s", first.status, first.body)
		}
		for range 8 {
			if g := r.do(named("uploaded")); g.header.Get("Sluice-Backend") != first.header.Get("Sluice-Backend") {
				t.Errorf("it went to %s, and before that to %s", g.header.Get("Sluice-Backend"), first.header.Get("Sluice-Backend"))
			}
		}
		if g := r.do(named("uploaded").of(rival)); g.status != 404 {
			t.Errorf("another tenant, which may do so too: %d %s", g.status, g.body)
		}
	})
}
