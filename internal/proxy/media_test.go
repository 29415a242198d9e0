package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// picture is a request with an image by its URL.
func picture(url string) string {
	return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`
}

// What requests name by URL is fetched for a backend that takes bytes alone, where the
// tenant's policy says so, before anything is reserved; all else is refused by the path
// of the field, and no backend is asked.
func TestMediaIsFetched(t *testing.T) {
	asked := 0
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case r.URL.Path == "/inside":
			http.Redirect(w, r, "http://inside.example/", http.StatusFound)
		case r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" || r.Header.Get("User-Agent") != "sluice":
			w.WriteHeader(http.StatusTeapot)
		default:
			w.Header().Set("Content-Type", "image/png")
			_, _ = io.WriteString(w, "\x89PNG\r\n\x1a\n")
		}
	})
	for _, tt := range []struct {
		name, url string
		allow     bool
		want      string // in the error; empty for an answer
	}{
		{"allowed", "http://web.example/a.png", true, ""},
		{"refused by the policy", "http://web.example/a.png", false, "fetch_media set to allow"},
		{"slow", "http://web.example/slow", true, "could not be fetched within 10s"},
		{"inside", "http://inside.example/a.png", true, "an address that is not public"},
		{"redirected inside", "http://web.example/inside", true, "an address that is not public"},
		{"metadata", "http://169.254.169.254/latest/meta-data/", true, "an address that is not public"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := &witness{Handler: answers(200, geminiSays)}
			asked = 0
			s := setup{places: []place{{dialect: wire.Gemini, handler: up}}, policy: sluice.Policy{FetchMedia: tt.allow}, web: web}
			inBubble(t, s, func(t *testing.T, r *rig) {
				start := time.Now()
				g := r.do(ask{body: picture(tt.url)})
				if tt.want != "" {
					if g.status != 400 || !strings.Contains(g.body, tt.want) || !strings.Contains(g.body, `"param":"messages[0].content[1].image_url.url"`) || len(up.all) > 0 {
						t.Errorf("got %d %s", g.status, g.body)
					}
					if time.Since(start) > 11*time.Second {
						t.Errorf("it took %v", time.Since(start))
					}
					if !tt.allow && asked > 0 {
						t.Error("it was fetched in spite of the policy")
					}
					r.want(sluice.Rejected, sluice.Untranslatable, 400)
					return
				}
				if g.status != 200 || len(up.all) != 1 || !strings.Contains(up.all[0].body, `"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}`) || strings.Contains(up.all[0].body, "web.example") {
					t.Errorf("got %d %s, the backend %v", g.status, g.body, up.all)
				}
				if rec := r.want(sluice.Completed, sluice.ReasonNone, 200); !strings.Contains(string(rec.Final.Detail), `"fetched":1`) {
					t.Errorf("recorded %s", rec.Final.Detail)
				}
			})
		})
	}
}

// It is fetched only when it is needed: a backend of the client's own dialect takes the
// URL, and when that fails another gets the bytes. A client that leaves ends it.
func TestMediaIsFetchedWhereItIsNeeded(t *testing.T) {
	asked := 0
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "\x89PNG\r\n\x1a\n")
	})
	own, other := &witness{Handler: talk{chunks: 1, usage: usage(9, 1)}}, &witness{Handler: answers(200, geminiSays)}
	s := setup{places: []place{{handler: own}, {dialect: wire.Gemini, handler: other}}, policy: sluice.Policy{FetchMedia: true}, web: web}
	inBubble(t, s, func(t *testing.T, r *rig) {
		if g := r.do(ask{body: picture("http://web.example/a.png")}); g.status != 200 || asked != 0 || len(own.all) != 1 {
			t.Errorf("got %d %s, fetched %d times", g.status, g.body, asked)
		}
		own.Handler = answers(503, `{"error":{"message":"down","type":"server_error","param":null,"code":null}}`)
		if g := r.do(ask{body: picture("http://web.example/a.png")}); g.status != 200 || asked != 1 || len(other.all) != 1 {
			t.Errorf("after a failure: got %d %s, fetched %d times", g.status, g.body, asked)
		}
	})
}
