package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/route"
	"sluice/internal/stateful"
)

var responseID = regexp.MustCompile(`resp_[0-9a-f]+`)

// shelves is a gateway in front of one provider that stores answers.
type shelves struct {
	*rig
	fake  *fakellm.Server
	state *stateful.Keeper
}

// inShelves runs f with the gateway, whose other places serve nothing that is stored.
func inShelves(t *testing.T, s setup, f func(t *testing.T, r *shelves)) {
	t.Helper()
	out := &shelves{}
	if len(s.places) == 0 {
		s.places = []place{{keys: []string{"k1", "k2"}}}
	}
	s = keeping(s, &rows{}, &out.state, func(t *testing.T, s *setup) {
		fake, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: "up", Ratio: 1100, Output: 60}}, Record: 100})
		if err != nil {
			t.Fatal(err)
		}
		out.fake = fake
		for i := range s.places {
			if s.places[i].handler == nil {
				s.places[i].handler = fake
			}
		}
	})
	inBubble(t, s, func(t *testing.T, r *rig) {
		out.rig = r
		defer out.state.Close()
		defer out.fake.Close()
		f(t, out)
	})
}

// make makes a stored response and tells its id.
func (r *shelves) make(more string) (id string, g got) {
	r.t.Helper()
	g = r.do(ask{path: responsesAt, body: `{"model":"m","input":"say it [[tokens=7]]"` + more + `}`})
	id = responseID.FindString(g.body)
	if g.status != 200 || id == "" {
		r.t.Fatalf("made %d %s", g.status, g.body)
	}
	return id, g
}

func (r *shelves) get(path string) got {
	return r.do(ask{method: "GET", path: responsesAt + "/" + path})
}

// A stored response is fetched, listed and deleted where it is kept, with the credential
// that made it; for nothing but a request, and nothing in the ledger. To others, and once
// it is deleted, it does not exist.
func TestStoredResponses(t *testing.T) {
	inShelves(t, setup{}, func(t *testing.T, r *shelves) {
		id, made := r.make("")
		entries := len(r.journal.entries)
		g := r.get(id)
		if g.status != 200 || g.body != made.body+"\n" && strings.TrimSpace(g.body) != strings.TrimSpace(made.body) {
			t.Errorf("got %d %s\nwant %s", g.status, g.body, made.body)
		}
		rec := r.want(sluice.Completed, sluice.ReasonNone, 200)
		if rec.Cost != 0 || rec.Usage.Total() != 0 || rec.Usage.Source != sluice.UsageNone || rec.Final.Operation != "responses_get" || rec.Final.Model != "m" {
			t.Errorf("recorded %+v %v of %s", rec.Usage, rec.Cost, rec.Final.Operation)
		}
		sent := r.fake.Requests()
		if a, b := sent[0].Header.Get("Authorization"), sent[1].Header.Get("Authorization"); a != b || sent[1].Method != "GET" || sent[1].Path != "/v1/responses/"+id {
			t.Errorf("made with %s, fetched with %s by %s %s", a, b, sent[1].Method, sent[1].Path)
		}
		g = r.get(id + "/input_items?limit=1&order=asc&include[]=message.input_image.image_url")
		if g.status != 200 || !strings.Contains(g.body, `"say it [[tokens=7]]"`) || !strings.Contains(g.body, `"has_more":false`) {
			t.Errorf("items: %d %s", g.status, g.body)
		}
		if p := r.fake.Requests()[2].Path; p != "/v1/responses/"+id+"/input_items?limit=1&order=asc&include[]=message.input_image.image_url" {
			t.Errorf("the query arrives as %s", p)
		}
		calls := len(r.fake.Requests())
		for name, other := range map[string]ask{
			"another's": {method: "GET", path: responsesAt + "/" + id}, "unknown": {method: "GET", path: responsesAt + "/resp_0"},
			"items": {method: "GET", path: responsesAt + "/" + id + "/input_items"}, "cancel": {method: "POST", path: responsesAt + "/" + id + "/cancel"},
			"delete": {method: "DELETE", path: responsesAt + "/" + id},
		} {
			if g := r.do(other.of(rival)); g.status != 404 || !strings.Contains(g.body, "names a response that does not exist") {
				t.Errorf("%s: %d %s", name, g.status, g.body)
			}
		}
		if n := len(r.fake.Requests()); n != calls {
			t.Errorf("the provider was asked %d times for what is another's", n-calls)
		}
		g = r.do(ask{method: "POST", path: responsesAt + "/" + id + "/cancel"})
		if g.status != 400 || !strings.Contains(g.body, "Cannot cancel a synchronous response") {
			t.Errorf("cancel: %d %s", g.status, g.body)
		}
		g = r.do(ask{method: "DELETE", path: responsesAt + "/" + id})
		if g.status != 200 || !strings.Contains(g.body, `"deleted":true`) {
			t.Errorf("delete: %d %s", g.status, g.body)
		}
		calls = len(r.fake.Requests())
		if g := r.get(id); g.status != 404 || len(r.fake.Requests()) != calls {
			t.Errorf("after its deletion: %d %s", g.status, g.body)
		}
		if n := len(r.journal.entries); n != entries {
			t.Errorf("%d entries were made of what costs nothing", n-entries)
		}
		for path, status := range map[string]int{id + "?stream=maybe": 400, id + "?api-version=1": 400, "..": 404, id + "/unheard": 404} {
			if g := r.get(path); g.status != status {
				t.Errorf("%s: %d %s", path, g.status, g.body)
			}
		}
		if g := r.do(ask{method: "PUT", path: responsesAt + "/" + id}); g.status != 405 || g.header.Get("Allow") != "GET, DELETE" {
			t.Errorf("PUT: %d, allowed %s", g.status, g.header.Get("Allow"))
		}
	})
}

// A request counts once against the limits of requests; where the place that keeps a
// response is out the answer says so.
func TestStoredCountsAsARequest(t *testing.T) {
	policy := sluice.Policy{Limits: [sluice.NumScopes][]sluice.Limit{sluice.ScopeKey: {{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 3}}}}
	inShelves(t, setup{policy: policy}, func(t *testing.T, r *shelves) {
		id, _ := r.make("")
		for i, want := range []int{200, 200, 429} {
			if g := r.get(id); g.status != want {
				t.Errorf("request %d: %d %s", i+2, g.status, g.body)
			}
		}
	})
	inShelves(t, setup{places: []place{{replica: true}}, retries: route.RetryPolicy{Attempts: 1}}, func(t *testing.T, r *shelves) {
		id, _ := r.make("")
		r.fake.FailStored(100)
		last := got{}
		for range 12 {
			last = r.get(id)
		}
		if last.status != 503 || !strings.Contains(last.body, "kept at one place, which is not available now") {
			t.Errorf("got %d %s", last.status, last.body)
		}
	})
}

// What was streamed is streamed again from where the client had come to, byte for byte.
func TestStoredStream(t *testing.T) {
	inShelves(t, setup{}, func(t *testing.T, r *shelves) {
		id, made := r.make(`,"stream":true`)
		for _, after := range []int{-1, 0, 3, 7} {
			q := "?stream=true"
			if after >= 0 {
				q += fmt.Sprint("&starting_after=", after)
			}
			_, want, _ := strings.Cut(made.body, fmt.Sprintf(`"sequence_number":%d,`, after))
			if _, rest, ok := strings.Cut(want, "\n\n"); after >= 0 && ok {
				want = rest
			}
			if after < 0 {
				want = made.body
			}
			g := r.get(id + q)
			if g.status != 200 || g.err != nil || g.body != want {
				t.Errorf("after %d: %d %v %s\nwant %s", after, g.status, g.err, g.body, want)
			}
			if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); rec.Cost != 0 || rec.Final.FirstToken != 0 || !rec.Final.Stream {
				t.Errorf("recorded %+v", rec.Final)
			}
		}
	})
}

// One retry, and then the stored response is fetched three times: one billable row, one of
// nothing, and none for the fetches.
func TestCase_cC2_FetchesCostNothing(t *testing.T) {
	inShelves(t, setup{places: []place{{keys: []string{"k"}}, {keys: []string{"k"}}}}, func(t *testing.T, r *shelves) {
		r.fake.Play("up", fakellm.Rule{Fault: "status=500", Count: 1})
		id, _ := r.make("")
		for range 3 {
			if g := r.get(id); g.status != 200 {
				t.Errorf("got %d %s", g.status, g.body)
			}
		}
		var billed, zero int
		for _, e := range r.journal.entries {
			if e.Cost > 0 {
				billed++
			} else if e.Attempt == 1 && e.Usage.Source == sluice.UsageNone {
				zero++
			}
		}
		if billed != 1 || zero != 1 || len(r.journal.entries) != 2 {
			t.Errorf("%d billed, %d of nothing, %d in all; want 1, 1, 2", billed, zero, len(r.journal.entries))
		}
		if c := r.fake.Account(fakellm.Filter{}); c.Total.Completed != 1 {
			t.Errorf("the provider made %d", c.Total.Completed)
		}
	})
}
