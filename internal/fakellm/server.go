package fakellm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxBody bounds a request body.
const maxBody = 64 << 20

// Server is a scripted provider. It is an http.Handler; Close ends its clocks.
type Server struct {
	mux        *http.ServeMux
	count      counter
	words      vocabulary
	seed       uint64
	minted     atomic.Uint64
	strict     bool
	key        string
	access     Access
	models     []*model // as configured; the first serves unknown names
	byName     map[string]*model
	book       *book
	script     *director
	started    time.Time
	containers containers
	batches    batches
	shelf      *shelf
	shelfDown  atomic.Int64 // requests that ask for stored answers and fail

	recordMu sync.Mutex
	record   int
	recorded []Recorded
}

// Recorded is one raw request, for tests.
type Recorded struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// New makes a provider.
func New(o Options) (*Server, error) {
	c, err := newCounter()
	if err != nil {
		return nil, err
	}
	if o.Models == nil {
		o.Models = DefaultModels()
	}
	if len(o.Models) == 0 {
		return nil, fmt.Errorf("a provider needs at least one model")
	}
	s := &Server{
		count: c, words: newVocabulary(c), seed: mix(o.Seed), strict: o.Strict, key: o.APIKey, access: o.Access,
		byName: map[string]*model{}, script: newDirector(mix(o.Seed + 1)), record: o.Record, started: time.Now(), shelf: newShelf(),
	}
	for _, m := range o.Models {
		if m.Name == "" || s.byName[m.Name] != nil {
			return nil, fmt.Errorf("model name %q is empty or given twice", m.Name)
		}
		served := newModel(m, o)
		s.models = append(s.models, served)
		s.byName[m.Name] = served
	}
	s.book = newBook(o.Book, func(name string) bool { return s.byName[name] != nil })
	if o.Script != nil {
		if err := o.Script.validate(); err != nil {
			return nil, err
		}
		if o.Script.Seed != 0 {
			s.script.seed = mix(o.Script.Seed)
		}
		for name, rules := range o.Script.Models {
			s.script.set(name, rules)
		}
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	for path, sf := range map[string]surface{
		"/v1/chat/completions": surfaceChat, "/v1/completions": surfaceCompletions, "/v1/embeddings": surfaceEmbeddings, "/v1/responses": surfaceResponses,
		"/v1/messages": surfaceMessages, "/v1/messages/count_tokens": surfaceCount, "/tokenize": surfaceTokenize,
	} {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.work(w, r, sf) })
	}
	for _, version := range []string{"/v1", "/v1beta"} {
		s.mux.HandleFunc("POST "+version+"/models/{rest...}", s.askGemini)
	}
	s.mux.HandleFunc("GET /v1beta/models", s.listGemini)
	s.shelfRoutes()
	for path, answer := range asides {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { s.aside(w, r, answer) })
	}
	for _, base := range []string{"", "/v1"} { // the simulated fleet is below /v1 for all its dialects
		for _, op := range []string{"converse", "converse-stream"} {
			s.mux.HandleFunc("POST "+base+"/model/{model}/"+op, func(w http.ResponseWriter, r *http.Request) { s.work(w, r, surfaceConverse) })
		}
	}
	s.batchRoutes()
	s.mux.HandleFunc("GET /v1/models", s.listModels)
	s.mux.HandleFunc("GET /v1/models/{model}", s.showModel)
	s.mux.HandleFunc("GET /metrics", s.metrics)
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.mux.HandleFunc("GET /fakellm/served", s.served)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends batches and the models' clocks; requests that wait for one are torn.
func (s *Server) Close() {
	s.batches.close()
	s.batches.work.Wait()
	s.shelf.close()
	for _, m := range s.models {
		if m.pace != nil {
			m.pace.close()
		}
	}
}

// Play replaces the rules of a model, "*" for those that have none. It panics
// on a fault that does not exist.
func (s *Server) Play(model string, rules ...Rule) {
	if err := (&Script{Models: map[string][]Rule{model: rules}}).validate(); err != nil {
		panic("fakellm: " + err.Error())
	}
	s.script.set(model, rules)
}

// Account is what the provider's book says.
func (s *Server) Account(f Filter) Account { return s.book.account(f) }

// Await blocks until ok is true of the totals of all requests; it returns the
// context's error if that ends first. A request is in the book from when it has
// been understood until its handler has returned, which is a moment after the
// client has the end of its answer.
func (s *Server) Await(ctx context.Context, ok func(Total) bool) error { return s.book.await(ctx, ok) }

// Requests are the raw requests kept, oldest first; see Options.Record.
func (s *Server) Requests() []Recorded {
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	return slices.Clone(s.recorded)
}

func (s *Server) remember(r *http.Request, body []byte) {
	if s.record <= 0 {
		return
	}
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	if len(s.recorded) == s.record {
		s.recorded = slices.Delete(s.recorded, 0, 1)
	}
	s.recorded = append(s.recorded, Recorded{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
}

func (s *Server) lookup(name string) (*model, bool) {
	if m, ok := s.byName[name]; ok {
		return m, true
	}
	return s.models[0], !s.strict
}

func (s *Server) scripted(name string) string { return s.script.next(name) }

// mint makes an id that is unique for this server.
func (s *Server) mint() string {
	n := s.minted.Add(1)
	return fmt.Sprintf("%016x%08x", mix(s.seed^n), n)
}

// authorised reports whether a request bears the key; of those that are signed see work.
func (s *Server) authorised(r *http.Request) bool {
	return s.access.KeyID != "" && strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") || s.key == "" || r.Header.Get("Authorization") == "Bearer "+s.key ||
		r.Header.Get("x-api-key") == s.key || r.Header.Get("x-goog-api-key") == s.key
}

// work takes one request of a surface that does work.
func (s *Server) work(w http.ResponseWriter, r *http.Request, sf surface) {
	s.take(w, r, sf, func(raw []byte) ([]byte, *refusal) { return raw, nil })
}

// take takes one whose body is put into the words of the others.
func (s *Server) take(w http.ResponseWriter, r *http.Request, sf surface, words func([]byte) ([]byte, *refusal)) {
	t := &turn{s: s, w: w, r: r, id: s.mint(), surface: sf}
	t.headers()
	if !s.authorised(r) {
		t.refuse(&refusal{http.StatusUnauthorized, "", "invalid_api_key", "Incorrect API key provided"})
		return
	}
	raw, early, err := readBody(w, r)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		t.refuse(&refusal{http.StatusRequestEntityTooLarge, "", "", "the body is too large"})
		return
	}
	if err != nil {
		t.refuse(&refusal{http.StatusBadRequest, "invalid_request_error", "", "the body could not be read"})
		return
	}
	s.remember(r, raw)
	if s.access.KeyID != "" && sf == surfaceConverse && !signed(r, raw, s.access.KeyID, s.access.Secret, time.Now()) {
		t.refuse(&refusal{http.StatusForbidden, "InvalidSignatureException", "", "The request signature we calculated does not match the signature you provided."})
		return
	}
	raw, refused := words(raw)
	if refused != nil {
		t.refuse(refused)
		return
	}
	a, refused := s.read(sf, r, raw)
	if refused == nil && sf == surfaceResponses && !a.b.unanswered() {
		s.shelve(t, a)
	}
	if refused == nil && a.shelved != nil && a.background {
		s.behind(t, a)
		return
	}
	if a != nil {
		defer a.shelved.end()
	}
	t.run(a, refused)
	if early {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	}
}

// peek is how much of a body is read to find the model's faults.
const peek = 4 << 10

// readBody reads the whole body, unless its first part names a model that
// answers early: then a minimal body with the same model stands for it.
func readBody(w http.ResponseWriter, r *http.Request) (raw []byte, early bool, err error) {
	head := make([]byte, peek)
	n := 0
	for n < peek && !bytes.Contains(head[:n], []byte("!early")) {
		k, err := r.Body.Read(head[n:])
		n += k
		if err == io.EOF {
			return head[:n], false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	if raw, ok := standIn(head[:n]); ok {
		return raw, true, http.NewResponseController(w).EnableFullDuplex()
	}
	rest, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	return append(head[:n:n], rest...), false, err
}

// standIn makes the body that an early answer is based on.
func standIn(head []byte) ([]byte, bool) {
	_, after, ok := bytes.Cut(head, []byte(`"model"`))
	if !ok {
		return nil, false
	}
	parts := bytes.SplitN(after, []byte(`"`), 3)
	if len(parts) < 3 || !bytes.Contains(parts[1], []byte("!early")) {
		return nil, false
	}
	return marshal(obj{
		"model": string(parts[1]), "stream": true, "stream_options": obj{"include_usage": true}, "max_tokens": 1 << 20,
		"messages": []obj{{"role": "user", "content": "early"}}, "prompt": "early", "input": "early",
	}), true
}

// served answers GET /fakellm/served.
func (s *Server) served(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := Filter{Model: q.Get("model"), End: q.Get("end"), ID: q.Get("id")}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			http.Error(w, "limit: write a number", http.StatusBadRequest)
			return
		}
		f.Limit = n
	}
	if v := q.Get("since"); v != "" {
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			http.Error(w, "since: write a time such as 2026-01-02T15:04:05Z", http.StatusBadRequest)
			return
		}
		f.Since = t
	}
	writeJSON(w, http.StatusOK, s.Account(f))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
