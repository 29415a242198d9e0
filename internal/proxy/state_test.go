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
	"time"

	"sluice"
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
								if d := string(r.last().Final.Detail); !strings.Contains(d, `"refers_to":["container"],"kept_at":{"`) || replica && !strings.Contains(d, `"left":"state"`) {
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

// hostedRefs are those in tools, items and addresses.
var hostedRefs = []struct{ path, before, after string }{
	toolBody(`{"type":"code_interpreter","container":"`, `"}`),
	toolBody(`{"type":"code_interpreter","container":{"type":"auto","file_ids":["`, `"]}}`),
	toolBody(`{"type":"shell","environment":{"type":"container_reference","container_id":"`, `"}}`),
	toolBody(`{"type":"file_search","vector_store_ids":["`, `"]}`),
	toolBody(`{"type":"image_generation","input_image_mask":{"file_id":"`, `"}}`),
	toolBody(`{"type":"unheard_of","in":[{"containerId":"`, `"}]}`),
	{responsesAt, `{"model":"m","prompt":{"id":"`, `"}}`},
	{responsesAt, `{"model":"m","input":[{"type":"code_interpreter_call","id":"ci","code":"1","container_id":"`, `"},{"role":"user","content":"x"}]}`},
	{responsesAt, `{"model":"m","input":[{"type":"item_reference","id":"`, `"},{"role":"user","content":"x"}]}`},
	{responsesAt, `{"model":"m","input":[{"id":"`, `"},{"role":"user","content":"x"}]}`},
	{responsesAt, `{"model":"m","input":[{"type":"reasoning","summary":[],"id":"`, `","encrypted_content":null},{"role":"user","content":"x"}]}`},
	{responsesAt, `{"model":"m","input":[{"type":"input_file","file_id":"`, `"}]}`},
	{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"previous_response_id":"`, `"}`},
	{"/v1/messages", `{"model":"m","max_tokens":9,"container":{"skills":[{"type":"custom","skill_id":"`, `"}]},"messages":[{"role":"user","content":"x"}]}`},
	geminiBody(`"tools":[{"fileSearch":{"fileSearchStoreNames":["`, `"]}}]`),
	geminiBody(`"tools":[{"file_search":{"file_search_store_names":["`, `"]}}]`),
	fileBody(`https://generativelanguage.googleapis.com/v1beta/files/`),
	fileBody(`HTTP://GenerativeLanguage.GoogleAPIs.com.:443/v1/files/`),
	fileBody(`/v1beta/files/`),
	fileBody(`Files/`),
	fileBody(`GS://bucket/`),
	fileBody(`https://storage.googleapis.com/bucket/`),
}

// toolBody is a request of the Responses operation around a tool.
func toolBody(before, after string) struct{ path, before, after string } {
	return struct{ path, before, after string }{responsesAt, `{"model":"m","input":"x","tools":[` + before, after + `]}`}
}

// geminiBody is a request around a member, and fileBody one that has a file by an address.
func geminiBody(before, after string) struct{ path, before, after string } {
	return struct{ path, before, after string }{geminiAt, `{"contents":[{"role":"user","parts":[{"text":"x"}]}],` + before, after + `}`}
}

func fileBody(address string) struct{ path, before, after string } {
	return geminiBody(`"systemInstruction":{"parts":[{"fileData":{"fileUri":"`+address, `"}}]}`)
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
		switch {
		case strings.HasSuffix(r.URL.Path, "/responses"):
			body = aResponse
		case strings.Contains(r.URL.Path, ":generateContent"):
			body = geminiSays
		}
		answers(200, body).ServeHTTP(w, r)
	})
	refs := slices.Concat(refs, hostedRefs)
	places := []place{{handler: ok, dialect: wire.Anthropic, keys: []string{"k"}}, {handler: ok, keys: []string{"k"}}, {handler: ok, dialect: wire.Gemini, keys: []string{"k"}}}
	inBubble(t, keeping(setup{places: places}, &rows{}, &state, nil), func(t *testing.T, r *rig) {
		defer state.Close()
		for i := range 4 {
			for _, at := range []string{"", "files/", "gs://bucket/"} {
				state.Keep("acme", route.Pin{Provider: "p", Key: "k"}, kindsOf(fmt.Sprint(at, "theirs-", i)))
				state.Keep("globex", route.Pin{Provider: "p", Key: "k"}, kindsOf(fmt.Sprint(at, "mine-", i)))
			}
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
			path := refs[rnd.IntN(len(refs)-len(hostedRefs))].path
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
