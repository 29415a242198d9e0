package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// slow gives one byte each second.
// slow is a body that comes a byte at a time, and never at the moment at which it is given
// up: a client that writes then may find the connection closed before it has read why.
type slow struct{ left int }

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(700 * time.Millisecond)
	s.left--
	p[0] = 'x'
	return 1, nil
}

// A mount gets the caller and a bounded body; what it returns is told in its dialect and
// recorded under its word.
func TestMount(t *testing.T) {
	var serve func(w http.ResponseWriter, r *http.Request, by Caller) error
	echo := func(w http.ResponseWriter, r *http.Request, by Caller) error {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return errors.Join(errors.New("wrapped"), err)
		}
		w.WriteHeader(http.StatusCreated)
		_, err = io.WriteString(w, string(by.Principal.Tenant)+" "+by.Task+" "+r.PathValue("id")+" "+string(b)+by.Key)
		return err
	}
	gone := func(http.ResponseWriter, *http.Request, Caller) error {
		return &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no such thing"}
	}
	half := func(w http.ResponseWriter, r *http.Request, by Caller) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("the disk is gone")
	}
	inBubble(t, setup{options: func(o *Options) {
		do := func(w http.ResponseWriter, r *http.Request, by Caller) error { return serve(w, r, by) }
		o.Mounts = []Mount{
			{Pattern: "POST /v1/things/{id}", Operation: "things", Dialect: wire.OpenAI, MaxBody: 100, Serve: do},
			{Pattern: "POST /v1/messages/things", Operation: "things", Dialect: wire.Anthropic, Serve: do},
			{Pattern: "POST /v1/made/{id}", Operation: "things", Dialect: wire.OpenAI, Once: true, Serve: do},
		}
	}}, func(t *testing.T, r *rig) {
		for _, tt := range []struct {
			name          string
			method, path  string
			header, value string
			body          io.Reader
			serve         func(w http.ResponseWriter, r *http.Request, by Caller) error
			status        int
			want          string // in the body
			reason        sluice.Reason
			word          string
			dropped       string
		}{
			{name: "served", body: strings.NewReader("hello"), serve: echo, status: 201, want: "acme nightly seven hello", word: "things"},
			{name: "at the bound", body: strings.NewReader(strings.Repeat("x", 100)), serve: echo, status: 201, want: "xxx", word: "things"},
			{name: "beyond it", body: strings.NewReader(strings.Repeat("x", 101)), serve: echo, status: 413, want: "at most 100 bytes", reason: sluice.BodyTooLarge, word: "things"},
			{name: "beyond it, of unknown length", body: io.LimitReader(neverEnds{}, 1000), serve: echo, status: 413, reason: sluice.BodyTooLarge, word: "things"},
			{name: "too slow", body: &slow{left: 60}, serve: echo, status: 408, reason: sluice.BodyTimeout, word: "things"},
			{name: "compressed", header: "Content-Encoding", value: "gzip", body: strings.NewReader("x"), serve: echo, status: 400, want: "gzip", reason: sluice.InvalidRequest, word: "things"},
			{name: "an error", serve: gone, status: 404, want: `"code":"not_found"`, reason: sluice.NotFound, word: "things"},
			{name: "an error of the other dialect", path: "/v1/messages/things", serve: gone, status: 404, want: `"type":"not_found_error"`, reason: sluice.NotFound, word: "things"},
			{name: "one of its own", serve: func(http.ResponseWriter, *http.Request, Caller) error { return errors.New("boom") }, status: 500, want: "internal error", reason: sluice.InternalError, word: "things"},
			{name: "a header misspelt", header: "Sluice-Taks", value: "x", serve: echo, status: 400, want: "did you mean sluice-task?", reason: sluice.InvalidRequest, word: "things"},
			{name: "a class that is none", header: "Sluice-Class", value: "soon", serve: echo, status: 400, want: "sluice-class", reason: sluice.InvalidRequest, word: "things"},
			{name: "a wish that is none", header: "Sluice-Cache", value: "off", serve: echo, status: 400, want: "bypass or refresh", reason: sluice.InvalidRequest, word: "things"},
			{name: "a wait that is none", header: "Sluice-Max-Wait", value: "x", serve: echo, status: 400, want: "write a duration", reason: sluice.InvalidRequest, word: "things"},
			{name: "a class has no effect", header: "Sluice-Class", value: "batch", body: strings.NewReader("x"), serve: echo, status: 201, dropped: "sluice-class", word: "things"},
			{name: "a wait has none", header: "Sluice-Max-Wait", value: "1s", body: strings.NewReader("x"), serve: echo, status: 201, dropped: "sluice-max-wait", word: "things"},
			{name: "a wish has none", header: "Sluice-Cache", value: "bypass", body: strings.NewReader("x"), serve: echo, status: 201, dropped: "sluice-cache", word: "things"},
			{name: "a preference has none", header: "Prefer", value: "respond-async", body: strings.NewReader("x"), serve: echo, status: 201, dropped: "prefer", word: "things"},
			{name: "a run is none of its steps", header: "Sluice-Run", value: "r", body: strings.NewReader("x"), serve: echo, status: 201, dropped: "sluice-run", word: "things"},
			{name: "an idempotency key has none", header: "Idempotency-Key", value: "k7", body: strings.NewReader("x"), serve: echo, status: 201, want: "seven x", dropped: "idempotency-key", word: "things"},
			{name: "it has one where it makes something", path: "/v1/made/one", header: "Idempotency-Key", value: "k7", body: strings.NewReader("x"), serve: echo, status: 201, want: "one xk7", word: "things"},
			{name: "and must be one there", path: "/v1/made/one", header: "Idempotency-Key", value: "a b", serve: echo, status: 400, want: "idempotency-key has", reason: sluice.InvalidRequest, word: "things"},
			{name: "no key", header: "Authorization", serve: echo, status: 401, reason: sluice.Unauthenticated, word: "things"},
			{name: "another method", method: "DELETE", serve: echo, status: 405, want: "use POST", reason: sluice.MethodNotAllowed, word: "models"},
			{name: "cut short", serve: half, status: 0, reason: sluice.InternalError, word: "things"},
		} {
			serve = tt.serve
			if tt.path == "" {
				tt.path = "/v1/things/seven"
			}
			if tt.method == "" {
				tt.method = "POST"
			}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://gateway"+tt.path, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+clientSecret)
			req.Header.Set("Sluice-Task", "nightly")
			if tt.header != "" {
				req.Header.Set(tt.header, tt.value)
			}
			resp, err := r.client.Do(req)
			status, body := 0, ""
			if err == nil {
				b, readErr := io.ReadAll(resp.Body)
				resp.Body.Close()
				if body = string(b); readErr == nil {
					status = resp.StatusCode
				}
				if d := resp.Header.Get("Sluice-Dropped"); d != tt.dropped {
					t.Errorf("%s: dropped %q, want %q", tt.name, d, tt.dropped)
				}
				if resp.Header.Get("Sluice-Request-Id") == "" {
					t.Errorf("%s: the answer has no id", tt.name)
				}
			}
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%s: got %d %q, %v; want %d with %q", tt.name, status, body, err, tt.status, tt.want)
			}
			synctest.Wait()
			last := r.last().Final
			if last.Reason != tt.reason || last.Operation != tt.word || tt.status != 0 && last.Status != tt.status {
				t.Errorf("%s: recorded %v %q %d, want %v %q %d", tt.name, last.Reason, last.Operation, last.Status, tt.reason, tt.word, tt.status)
			}
		}
	})
}

type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) { return len(p), nil }

// What is done with a body that has been read may take longer than its time to come,
// though its end has been looked for twice.
func TestMountAfterItsBody(t *testing.T) {
	slow := Mount{Pattern: "POST /v1/slow", Operation: "slow", Serve: func(w http.ResponseWriter, r *http.Request, _ Caller) error {
		if _, err := io.ReadAll(r.Body); err != nil {
			return err
		}
		if _, err := r.Body.Read(make([]byte, 1)); err != io.EOF {
			return err
		}
		time.Sleep(4 * DefaultBodyGrace)
		return r.Context().Err()
	}}
	inBubble(t, setup{options: func(o *Options) { o.Mounts = []Mount{slow} }}, func(t *testing.T, r *rig) {
		if g := r.do(ask{path: "/v1/slow", body: strings.Repeat("x", 100_000)}); g.status != http.StatusOK || g.err != nil {
			t.Errorf("got %d %s %v", g.status, g.body, g.err)
		}
	})
}
