package batch

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

const keyed = "Idempotency-Key"

// What makes something makes it once for a key: the same body gets what was made, another
// body or another project is refused, and another operation has keys of its own.
func TestOnceMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	other := "acme/app"
	input := r.upload(acme, chat("a", "hi")).ID
	theirs := r.upload(other, chat("a", "hi")).ID
	form := func(purpose, content string) func() (string, *bytes.Buffer) {
		return func() (string, *bytes.Buffer) { // of another boundary each time
			return form(part{"purpose", "", purpose}, part{"file", "once.jsonl", content})
		}
	}
	json := func(text string) func() (string, *bytes.Buffer) {
		return func() (string, *bytes.Buffer) { return "application/json", bytes.NewBufferString(text) }
	}
	body := `{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"%s}`
	list := `{"requests": [` + message("a", "hi") + `]}`
	for _, c := range []struct {
		path, count    string
		same, another  func() (string, *bytes.Buffer)
		elsewhere      func() (string, *bytes.Buffer)
		id             string
		deletedWithKey bool
	}{
		{"/v1/files", "/v1/files", form("batch", chat("a", "hi")), form("batch", chat("a", "ho")), form("batch", chat("a", "hi")), "file-", true},
		{"/v1/batches", "/v1/batches", json(fmt.Sprintf(body, input, "")), json(fmt.Sprintf(body, input, `,"metadata":{"a":"b"}`)), json(fmt.Sprintf(body, theirs, "")), "batch_", false},
		{"/v1/messages/batches", "/v1/messages/batches", json(list), json(`{"requests": [` + message("b", "hi") + `]}`), json(list), "msgbatch_", true},
	} {
		t.Run(c.path, func(t *testing.T) {
			post := func(who, key string, make func() (string, *bytes.Buffer)) got {
				kind, b := make()
				return r.do(who, "POST", c.path, b, "Content-Type", kind, keyed, key)
			}
			before := strings.Count(r.do(acme, "GET", c.count, nil).body, c.id)
			first := as[struct{ ID string }](t, post(acme, "k1", c.same), 200)
			g := post(acme, "k1", c.same)
			again := as[struct{ ID string }](t, g, 200)
			if again.ID != first.ID || !strings.HasPrefix(first.ID, c.id) || g.header.Get("Idempotent-Replayed") != "true" || !strings.HasPrefix(g.header.Get("Sluice-Original-Request"), "req_") {
				t.Errorf("made %s, then %s with %v", first.ID, again.ID, g.header)
			}
			for name, g := range map[string]got{"another body": post(acme, "k1", c.another), "another project": post(other, "k1", c.elsewhere)} {
				if g.status != 422 || !strings.Contains(g.body, "idempotency") {
					t.Errorf("%s: %d %s", name, g.status, g.body)
				}
			}
			if g := post("globex/web", "k1", c.another); g.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("another tenant got %+v", g)
			}
			if n := as[struct{ ID string }](t, post(acme, "k2", c.same), 200); n.ID == first.ID {
				t.Error("another key made nothing")
			}
			if n := strings.Count(r.do(acme, "GET", c.count, nil).body, `"id":"`+c.id) - before; c.path != "/v1/files" && n != 2 {
				t.Errorf("%d were made, want 2", n)
			}
			if !c.deletedWithKey {
				return
			}
			r.until("it is deleted", func() bool { return r.do(acme, "DELETE", c.path+"/"+first.ID, nil).status == 200 })
			if g := post(acme, "k1", c.same); g.status != 404 || !strings.Contains(g.body, "deleted since") {
				t.Errorf("what is deleted came again: %d %s", g.status, g.body)
			}
		})
	}
}

// What a key has made is found though what it was made of has gone; a key that has made
// nothing says what is missing.
func TestOnceInputGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	input := r.upload(acme, chat("a", "hi")).ID
	post := func(key, more string) got { return r.do(acme, "POST", "/v1/batches", create(input, more), keyed, key) }
	first := as[batch](t, post("k", ""), 200)
	r.finished(acme, first.ID)
	as[struct{ Deleted bool }](t, r.do(acme, "DELETE", "/v1/files/"+string(input), nil), 200)
	g := post("k", "")
	again := as[batch](t, g, 200)
	if again.ID != first.ID || again.Status != jobs.Completed || g.header.Get("Idempotent-Replayed") != "true" || g.header.Get("Sluice-Original-Request") != "req_k1" {
		t.Errorf("made %s, then %s %s with %v", first.ID, again.ID, again.Status, g.header)
	}
	if g := post("k", `,"metadata":{"a":"b"}`); g.status != 422 || !strings.Contains(g.body, "idempotency") {
		t.Errorf("another body: %d %s", g.status, g.body)
	}
	for _, key := range []string{"", "new"} {
		if g := post(key, ""); g.status != 404 || !strings.Contains(g.body, "input_file_id") {
			t.Errorf("the key %q: %d %s", key, g.status, g.body)
		}
	}
}

// A request that is answered later is taken once for a key, and what runs has no key.
func TestOnceLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	n := 0
	later := func(key, text string) (Deferred, error) {
		n++
		body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`)
		head, err := wire.Scan(wire.Chat, body)
		if err != nil {
			t.Fatal(err)
		}
		return r.face.Defer(t.Context(), &exchange.Request{
			ID: sluice.RequestID(fmt.Sprint("req_l", n)), Principal: sluice.Principal{Tenant: "acme", Project: "web", Key: "k"}, Head: head, Body: body,
			Header: http.Header{"Prefer": {"respond-async"}, keyed: {key}},
		})
	}
	first, err := later("k1", "hi")
	if err != nil || first.Replayed != "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	again, err := later("k1", "hi")
	if err != nil || again.Location != first.Location || again.Replayed != "req_l1" {
		t.Errorf("again: got %+v, %v", again, err)
	}
	if _, err := later("k1", "ho"); err == nil || sluice.AsError(err).Reason != sluice.IdempotencyMismatch {
		t.Errorf("another body: %v", err)
	}
	r.until("it is answered", func() bool { return r.do(acme, "GET", first.Location, nil).status == 200 })
	ended, err := later("k1", "hi")
	if err != nil || ended.Location != first.Location || !strings.Contains(string(ended.Body), `"status":"ended"`) {
		t.Errorf("when it has ended: %s, %v", ended.Body, err)
	}
}

// Of many that ask at once with one key, one makes something; a batch that is refused
// gives its key back.
func TestOnceOfMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{})
	var mu sync.Mutex
	made := map[string]int{}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			g := r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "hi")), keyed, "k")
			mu.Lock()
			defer mu.Unlock()
			if g.status == 409 && strings.Contains(g.body, "still running") && g.header.Get("Retry-After") != "" {
				return // it is being checked
			}
			made[string(as[messageBatch](t, g, 200).ID)]++
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Errorf("made %v", made)
	}
	wrong := messages(`{"custom_id":"","params":{}}`)
	if g := r.do(acme, "POST", "/v1/messages/batches", wrong, keyed, "w"); g.status != 400 {
		t.Fatalf("got %+v", g)
	}
	as[messageBatch](t, r.do(acme, "POST", "/v1/messages/batches", messages(message("a", "hi")), keyed, "w"), 200)
}

// A file whose key is taken leaves nothing behind.
func TestOnceLeavesNoFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobs.Bounds{TenantBytes: 400})
	content := chat("a", "hi")
	for i := range 20 { // of which more than two would not fit
		kind, body := form(part{"purpose", "", "batch"}, part{"file", "in.jsonl", content})
		if g := r.do(acme, "POST", "/v1/files", body, "Content-Type", kind, keyed, "k"); g.status != 200 {
			t.Fatalf("upload %d: %+v", i, g)
		}
	}
}
