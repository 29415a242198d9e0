package fakellm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"sluice/internal/wire"
)

// maxShelf bounds the answers that a provider stores; the oldest goes first.
const maxShelf = 2_000

// shelf is the stored answers of a provider: each belongs to the credential that it was
// asked for with.
type shelf struct {
	ctx  context.Context // of what is made though nobody waits for it
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	all   map[string]*shelved
	order []string
}

// shelved is one stored answer.
type shelved struct {
	id, owner  string
	background bool
	input      []obj
	cancel     context.CancelFunc // of one that is made in the background

	mu        sync.Mutex
	changed   chan struct{} // closed when anything below changes
	object    obj           // as it is by now
	events    [][]byte      // by sequence number
	over      bool
	cancelled bool
}

func newShelf() *shelf {
	s := &shelf{all: map[string]*shelved{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// close ends what is made in the background.
func (s *shelf) close() {
	s.stop()
	s.done.Wait()
}

func (s *shelf) add(k *shelved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[k.id] = k
	if s.order = append(s.order, k.id); len(s.order) > maxShelf {
		delete(s.all, s.order[0])
		s.order = s.order[1:]
	}
}

// get is what a credential has stored by that id, nil if it has not.
func (s *shelf) get(id, credential string) *shelved {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.all[id]; k != nil && k.owner == credential {
		return k
	}
	return nil
}

func (s *shelf) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
	s.order = slices.DeleteFunc(s.order, func(o string) bool { return o == id })
}

// note takes an event of the answer, and what the answer is by then.
func (k *shelved) note(kind string, data []byte, object obj) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, wire.AppendEvent(nil, kind, data))
	k.set(object)
}

// whole takes an answer that came in one piece.
func (k *shelved) whole(object obj) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(object)
}

// set takes what the answer is by now. REQUIRES: mu is held.
func (k *shelved) set(object obj) {
	if object != nil {
		k.object = object
		switch object["status"] {
		case "queued", "in_progress":
		default:
			k.over = true
		}
	}
	close(k.changed)
	k.changed = make(chan struct{})
}

// end says that no more comes: an answer that has not ended has failed, or was cancelled.
func (k *shelved) end() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	o := obj{}
	maps.Copy(o, k.object)
	kind := "response.failed"
	if o["status"], o["error"] = "failed", (obj{"code": "server_error", "message": "scripted failure"}); k.cancelled {
		o["status"], o["error"], kind = "cancelled", nil, "response.cancelled"
	}
	k.events = append(k.events, wire.AppendEvent(nil, kind, marshal(obj{"type": kind, "sequence_number": len(k.events), "response": o})))
	k.set(o)
}

// seen is the object, the events behind a number, whether that is all, and what tells of
// more.
func (k *shelved) seen(after int) (o obj, events [][]byte, over bool, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if after+1 < len(k.events) {
		events = k.events[after+1:]
	}
	return k.object, events, k.over, k.changed
}

// follow writes the events behind a number as they come.
func (k *shelved) follow(w http.ResponseWriter, r *http.Request, after int) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	rc := http.NewResponseController(w)
	for {
		_, events, over, changed := k.seen(after)
		for _, e := range events {
			if _, err := w.Write(e); err != nil {
				return
			}
			after++
		}
		_ = rc.Flush()
		if over && len(events) == 0 {
			return
		}
		if over {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// shelve stores the answer to a request that is about to be made.
func (s *Server) shelve(t *turn, a *ask) {
	if a.unstored && !a.background {
		return
	}
	a.shelved = &shelved{id: "resp_" + t.id, owner: credentialOf(t.r.Header), background: a.background, input: a.stored, changed: make(chan struct{})}
	a.shelved.object = newResponses(nil, a, t.id).frame("queued")
	s.shelf.add(a.shelved)
}

// unanswered reports whether there is no answer but a refusal, or none at all.
func (b *Behaviour) unanswered() bool { return b.Status != 0 || b.HangHeaders || b.Reset || b.Redirect }

// behind makes an answer that the client does not wait for, or follows as it is made.
func (s *Server) behind(t *turn, a *ask) {
	ctx, cancel := context.WithCancel(s.shelf.ctx)
	k, follows := a.shelved, a.stream
	k.cancel = cancel
	for i, kind := range []string{"response.created", "response.queued"} {
		k.note(kind, marshal(obj{"type": kind, "sequence_number": i, "response": k.object}), nil)
	}
	own := &turn{s: s, w: &unread{h: http.Header{}}, r: t.r.Clone(ctx), id: t.id, surface: t.surface, began: t.began}
	a.stream = true
	s.shelf.done.Go(func() {
		defer cancel()
		defer k.end()
		defer func() { _ = recover() }() // a torn connection: there is none
		own.run(a, nil)
	})
	if follows {
		k.follow(t.w, t.r, -1)
		return
	}
	o, _, _, _ := k.seen(-1)
	writeJSON(t.w, http.StatusOK, o)
}

// unread is where an answer is written to that nobody waits for.
type unread struct{ h http.Header }

func (u *unread) Header() http.Header         { return u.h }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) WriteHeader(int)             {}
func (u *unread) FlushError() error           { return nil }

func (s *Server) shelfRoutes() {
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, *shelved){
		"GET /v1/responses/{id}": s.showStored, "DELETE /v1/responses/{id}": s.deleteStored,
		"POST /v1/responses/{id}/cancel": s.cancelStored, "GET /v1/responses/{id}/input_items": s.listStored,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			t := &turn{s: s, w: w, r: r, id: s.mint(), surface: surfaceResponses}
			t.headers()
			s.remember(r, nil)
			k := s.shelf.get(r.PathValue("id"), credentialOf(r.Header))
			switch {
			case !s.authorised(r):
				t.write(&refusal{http.StatusUnauthorized, "", "invalid_api_key", "Incorrect API key provided"})
			case s.shelfDown.Load() > 0:
				s.shelfDown.Add(-1)
				t.write(&refusal{status: http.StatusInternalServerError, msg: "scripted failure"})
			case k == nil:
				t.write(&refusal{http.StatusNotFound, "invalid_request_error", "", fmt.Sprintf("Response with id '%s' not found.", r.PathValue("id"))})
			default:
				serve(w, r, k)
			}
		})
	}
}

// FailStored has the next n requests that ask for stored answers fail.
func (s *Server) FailStored(n int64) { s.shelfDown.Store(n) }

func (s *Server) showStored(w http.ResponseWriter, r *http.Request, k *shelved) {
	o, events, _, _ := k.seen(-1)
	if r.URL.Query().Get("stream") != "true" {
		writeJSON(w, http.StatusOK, o)
		return
	}
	if len(events) == 0 {
		writeJSON(w, http.StatusBadRequest, openaiError("invalid_request_error", "", "this response was not streamed"))
		return
	}
	after := -1
	if v := r.URL.Query().Get("starting_after"); v != "" {
		after, _ = strconv.Atoi(v)
	}
	k.follow(w, r, after)
}

func (s *Server) deleteStored(w http.ResponseWriter, _ *http.Request, k *shelved) {
	s.shelf.remove(k.id)
	writeJSON(w, http.StatusOK, obj{"id": k.id, "object": "response", "deleted": true})
}

func (s *Server) cancelStored(w http.ResponseWriter, _ *http.Request, k *shelved) {
	if !k.background {
		writeJSON(w, http.StatusBadRequest, openaiError("invalid_request_error", "", "Cannot cancel a synchronous response."))
		return
	}
	k.mu.Lock()
	k.cancelled = !k.over
	k.mu.Unlock()
	k.cancel()
	k.end()
	o, _, _, _ := k.seen(-1)
	writeJSON(w, http.StatusOK, o)
}

func (s *Server) listStored(w http.ResponseWriter, r *http.Request, k *shelved) {
	q := r.URL.Query()
	items := slices.Clone(k.input)
	if q.Get("order") != "asc" {
		slices.Reverse(items)
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(o obj) bool { return o["id"] == after })
		items = items[i+1:]
	}
	limit := 20
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = min(n, 100)
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	o := obj{"object": "list", "data": items, "has_more": more, "first_id": nil, "last_id": nil}
	if len(items) > 0 {
		o["first_id"], o["last_id"] = items[0]["id"], items[len(items)-1]["id"]
	}
	writeJSON(w, http.StatusOK, o)
}

// storedInput is the items of a request as they are listed: each has an id.
func storedInput(raw json.RawMessage, id string) (out []obj) {
	var items []obj
	if json.Unmarshal(raw, &items) != nil {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil
		}
		items = []obj{{"type": "message", "role": "user", "content": []obj{{"type": "input_text", "text": text}}}}
	}
	for i, o := range items {
		if o["type"] == nil {
			o["type"] = "message"
		}
		if text, ok := o["content"].(string); ok {
			o["content"] = []obj{{"type": "input_text", "text": text}}
		}
		if o["type"] == "message" {
			o["status"] = "completed"
		}
		if o["id"] == nil {
			o["id"] = fmt.Sprintf("msg_in%s%d", id, i)
		}
		out = append(out, o)
	}
	return out
}
