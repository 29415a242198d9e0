package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/price"
)

// each is a price by a unit, of so many micro-dollars.
func each(unit price.Unit, micros int64) *price.Row {
	return &price.Row{Provider: "p", Model: "up", Version: "v1", Rates: price.Rates{Input: price.Free, Output: price.Free}, Per: unit, Unit: sluice.Price(micros * 1_000_000_000)}
}

// formOf writes a form of fields and one file.
func formOf(t *testing.T, file string, size int, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if file != "" {
		p, err := w.CreateFormFile(file, "my name \"1\" = x.mp3")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.Write(bytes.Repeat([]byte{0, '\r', '\n', '-'}, size/4))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// withAside is a provider of one model with a price of its own.
func withAside(s setup, model string, row *price.Row, p **fakellm.Server) setup {
	s.places = []place{{model: model, price: row}}
	s.before = func(t *testing.T, s *setup) {
		made, err := fakellm.New(fakellm.Options{Models: []fakellm.Model{{Name: model}}, Seed: 7, Record: 1})
		if err != nil {
			t.Fatal(err)
		}
		*p, s.places[0].handler = made, made
	}
	return s
}

// Each of the operations beside text passes as it is, but for the model's name, and is
// charged what its row says: by its unit, or by the tokens that its answer tells.
func TestAsides(t *testing.T) {
	tokens := &price.Row{Provider: "p", Model: "gpt-up", Version: "v1", Rates: price.Rates{Input: 5_000_000_000, Output: 40_000_000_000}}
	form := func(file string, fields ...string) func(*testing.T) (string, string) {
		return func(t *testing.T) (string, string) { return formOf(t, file, 9000, append(fields, "model", "m")...) }
	}
	body := func(text string) func(*testing.T) (string, string) {
		return func(*testing.T) (string, string) { return text, "application/json" }
	}
	for _, tt := range []struct {
		name, path string
		body       func(*testing.T) (string, string)
		model      string
		row        *price.Row
		kind       string // of the answer
		want       sluice.Usage
		cost       sluice.Nano
	}{
		{"images by the image", "/v1/images/generations", body(`{"model":"m","prompt":"a lighthouse","n":3,"size":"1024x1024"}`), "up", each(price.Image, 40_000), "application/json", sluice.Usage{Units: 3, Source: sluice.UsageReported}, 120_000_000},
		{"images by tokens", "/v1/images/generations", body(`{"model":"m","prompt":"a lighthouse","n":2}`), "gpt-up", tokens, "application/json", sluice.Usage{Input: 2, Output: 544, Units: 2, Source: sluice.UsageReported}, 2*5000 + 544*40_000},
		{"images as they come", "/v1/images/generations", body(`{"model":"m","prompt":"a lighthouse","stream":true,"partial_images":1}`), "gpt-up", tokens, "text/event-stream; charset=utf-8", sluice.Usage{Input: 2, Output: 272, Units: 1, Source: sluice.UsageReported}, 2*5000 + 272*40_000},
		{"an edit", "/v1/images/edits", form("image[]", "prompt", "a hat", "n", "2"), "up", each(price.Image, 40_000), "application/json", sluice.Usage{Units: 2, Source: sluice.UsageReported}, 80_000_000},
		{"a variation", "/v1/images/variations", form("image"), "up", each(price.Image, 20_000), "application/json", sluice.Usage{Units: 1, Source: sluice.UsageReported}, 20_000_000},
		{"speech by the character", "/v1/audio/speech", body(`{"model":"m","input":"Gr\u00fc\u00dfe \ud83d\ude00!\n","voice":"alloy"}`), "up", each(price.Character, 15), "audio/mpeg", sluice.Usage{Input: 4, Units: 9, Source: sluice.UsageEstimated}, 9 * 15_000},
		{"speech as it comes", "/v1/audio/speech", body(`{"model":"m","input":"Good day","voice":"alloy","stream_format":"sse"}`), "gpt-up", tokens, "text/event-stream; charset=utf-8", sluice.Usage{Input: 2, Output: 8, Units: 8, Source: sluice.UsageReported}, 2*5000 + 8*40_000},
		{"a transcription by the second", "/v1/audio/transcriptions", form("file"), "up", each(price.Second, 100), "application/json", sluice.Usage{Units: 3, Source: sluice.UsageReported}, 300_000},
		{"a transcription by tokens", "/v1/audio/transcriptions", form("file"), "gpt-up", tokens, "application/json", sluice.Usage{AudioInput: 30, Output: 4, Units: 3, Source: sluice.UsageReported}, 30*5000 + 4*40_000},
		{"a transcription as it comes", "/v1/audio/transcriptions", form("file", "stream", "true"), "gpt-up", tokens, "text/event-stream; charset=utf-8", sluice.Usage{AudioInput: 30, Output: 4, Units: 3, Source: sluice.UsageReported}, 30*5000 + 4*40_000},
		{"a transcription with its length", "/v1/audio/transcriptions", form("file", "response_format", "verbose_json"), "up", each(price.Second, 100), "application/json", sluice.Usage{Units: 3, Source: sluice.UsageReported}, 300_000},
		{"a translation as text", "/v1/audio/translations", form("file", "response_format", "text"), "up", each(price.Second, 100), "text/plain; charset=utf-8", sluice.Usage{Input: 15, Units: 3, Source: sluice.UsageEstimated}, 300_000},
		{"a moderation", "/v1/moderations", body(`{"model":"m","input":["one","two"]}`), "up", &price.Row{Provider: "p", Model: "up", Version: "v1", Rates: price.Rates{Input: price.Free, Output: price.Free}}, "application/json", sluice.Usage{Input: 4, Source: sluice.UsageEstimated}, 0},
		{"a reranking by the search", "/v1/rerank", body(`{"model":"m","query":"q","documents":["` + strings.Repeat(`a","`, 100) + `b"],"top_n":3}`), "up", each(price.Search, 2000), "application/json", sluice.Usage{Units: 2, Source: sluice.UsageReported}, 4_000_000},
		{"a reranking by tokens", "/v1/rerank", body(`{"model":"m","query":"q","documents":["one","two"]}`), "gpt-up", tokens, "application/json", sluice.Usage{Input: 3, Units: 1, Source: sluice.UsageReported}, 3 * 5000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent, kind := tt.body(t)
			var p *fakellm.Server
			inBubble(t, withAside(setup{}, tt.model, tt.row, &p), func(t *testing.T, r *rig) {
				defer p.Close()
				got := r.do(ask{path: tt.path, body: sent, header: http.Header{"Content-Type": {kind}}})
				if got.status != http.StatusOK || got.header.Get("Content-Type") != tt.kind {
					t.Errorf("status %d, %q: %s", got.status, got.header.Get("Content-Type"), got.body)
					return
				}
				rec := r.want(sluice.Completed, sluice.ReasonNone, http.StatusOK)
				u := rec.Usage
				if diff := cmp.Diff(tt.want, u); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
				if rec.Cost != tt.cost {
					t.Errorf("cost %d, want %d", rec.Cost, tt.cost)
				}
				raw := p.Requests()[0]
				want := strings.Replace(strings.Replace(sent, `"model":"m"`, `"model":"`+tt.model+`"`, 1), "\r\nm\r\n", "\r\n"+tt.model+"\r\n", 1)
				if string(raw.Body) != want || raw.Header.Get("Content-Type") != kind || raw.Path != tt.path {
					t.Errorf("the backend got %s %q\n%q\nwant %q", raw.Path, raw.Header.Get("Content-Type"), raw.Body, want)
				}
			})
		})
	}
}

// What has no price of its kind is refused before it is sent, and never charged as if
// it were text.
func TestAsidesUnpriced(t *testing.T) {
	tokens := &price.Row{Provider: "p", Model: "up", Version: "v1", Rates: price.Rates{Input: 1_000_000_000, Output: 2_000_000_000}}
	for _, tt := range []struct {
		name string
		row  *price.Row
		ask  ask
	}{
		{"speech whose tokens nobody tells", tokens, ask{path: "/v1/audio/speech", body: `{"model":"m","input":"hello","voice":"alloy"}`}},
		{"an image by the second", each(price.Second, 1), ask{path: "/v1/images/generations", body: `{"model":"m","prompt":"x"}`}},
		{"a chat by the image", each(price.Image, 1), ask{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p *fakellm.Server
			inBubble(t, withAside(setup{}, "up", tt.row, &p), func(t *testing.T, r *rig) {
				defer p.Close()
				if got := r.do(tt.ask); got.status != http.StatusForbidden || !strings.Contains(got.body, "price") {
					t.Errorf("status %d: %s", got.status, got.body)
				}
				r.want(sluice.Rejected, sluice.Unpriced, http.StatusForbidden)
				if n := len(p.Requests()); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		})
	}
}

// A hard budget holds what the request can cost, and is charged what it did.
func TestAsidesHardBudget(t *testing.T) {
	var p *fakellm.Server
	policy := sluice.Policy{HardSpend: true}
	policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: 100_000_000}}
	inBubble(t, withAside(setup{policy: policy}, "up", each(price.Image, 40_000), &p), func(t *testing.T, r *rig) {
		defer p.Close()
		images := func(n int) ask {
			return ask{path: "/v1/images/generations", body: fmt.Sprintf(`{"model":"m","prompt":"x","n":%d}`, n)}
		}
		for _, tt := range []struct{ n, status int }{{3, http.StatusBadRequest}, {2, http.StatusOK}, {1, http.StatusTooManyRequests}} {
			if got := r.do(images(tt.n)); got.status != tt.status {
				t.Errorf("%d images of $0.04: status %d, want %d: %s", tt.n, got.status, tt.status, got.body)
			}
		}
	})
}

// A form that two parsers may read differently is refused, and the reason told.
func TestForms(t *testing.T) {
	const kind = "multipart/form-data; boundary=b"
	part := func(disposition, value string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
	}
	model, file := part(`name="model"`, "m"), part(`name="file"; filename="a.mp3"`, "sound")
	for _, tt := range []struct{ name, kind, body, want string }{
		{"no form", "application/json", `{"model":"m"}`, "multipart/form-data"},
		{"two models", kind, model + part(`name="model"`, "dear") + file + "--b--\r\n", "given twice"},
		{"a model in another case", kind, model + part(`name="Model"`, "dear") + file + "--b--\r\n", "case-sensitive"},
		{"a model by an encoded name", kind, part(`name*=utf-8''model`, "dear") + model + file + "--b--\r\n", "plain name"},
		{"a model in a file", kind, part(`name="model"; filename="m"`, "dear") + file + "--b--\r\n", "not a file"},
		{"a preamble", kind, "hello\r\n" + model + file + "--b--\r\n", "begin with its boundary"},
		{"an epilogue", kind, model + file + "--b--\r\n" + part(`name="model"`, "dear"), "follows a boundary"},
		{"line ends of one byte", kind, strings.ReplaceAll(model+file+"--b--\r\n", "\r\n", "\n"), "follows a boundary"},
		{"an encoding of a part", kind, strings.Replace(model, "\r\nContent", "\r\nContent-Transfer-Encoding: base64\r\nContent", 1) + file + "--b--\r\n", "content-transfer-encoding"},
		{"no end", kind, model + file, "not ended"},
		{"a second name in a file's", kind, model + part(`name="file"; filename="a"; name="model"`, "dear") + "--b--\r\n", "plain name"},
		{"no model", kind, file + "--b--\r\n", "model is required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p *fakellm.Server
			inBubble(t, withAside(setup{}, "up", each(price.Second, 100), &p), func(t *testing.T, r *rig) {
				defer p.Close()
				got := r.do(ask{path: "/v1/audio/transcriptions", body: tt.body, header: http.Header{"Content-Type": {tt.kind}}})
				if got.status != http.StatusBadRequest || !strings.Contains(got.body, tt.want) {
					t.Errorf("status %d: %s\nwant 400 with %q", got.status, got.body, tt.want)
				}
			})
		})
	}
}

// An error passes, one in the middle of a sound is no end, and a client that leaves is
// charged what it asked for.
func TestAsidesFail(t *testing.T) {
	var p *fakellm.Server
	speech := ask{path: "/v1/audio/speech", body: `{"model":"m","input":"hello","voice":"alloy"}`}
	for _, tt := range []struct {
		fault  string
		status int
	}{{"503", http.StatusServiceUnavailable}, {"status=400", http.StatusBadRequest}, {"die-after=1", http.StatusBadGateway}} {
		s := withAside(setup{}, "up", each(price.Character, 15), &p)
		s.places[0].model = "up!" + tt.fault
		inBubble(t, s, func(t *testing.T, r *rig) {
			defer p.Close()
			if got := r.do(speech); got.status != tt.status {
				t.Errorf("%s: status %d, want %d: %s", tt.fault, got.status, tt.status, got.body)
			}
		})
	}
	hang := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	})
	inBubble(t, setup{places: []place{{handler: hang, price: each(price.Character, 15)}}}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		speech.ctx = ctx
		r.do(speech)
		rec := r.want(sluice.Cancelled, sluice.ClientGone, 499)
		if rec.Cost != 5*15_000 || rec.Usage.Source != sluice.UsageEstimated {
			t.Errorf("charged %d by %v", rec.Cost, rec.Usage.Source)
		}
	})
}
