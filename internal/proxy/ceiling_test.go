package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice"
)

// The ceilings of a plan: more output than one request may have is not asked for,
// more input is refused, and both say so. max_output stays what it was, the bound of
// a request that names none.
func TestCeilings(t *testing.T) {
	var asked string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = string(b)
		talk{chunks: 1, usage: usage(9, 1)}.ServeHTTP(w, r)
	})
	inBubble(t, setup{
		places: []place{{handler: h}},
		policy: sluice.Policy{InputCeiling: 500, OutputCeiling: 300, MaxOutput: 200},
	}, func(t *testing.T, r *rig) {
		body := func(words int, rest string) string {
			return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]%s}`, strings.Repeat("word ", words), rest)
		}
		for _, tt := range []struct{ rest, want, dropped string }{
			{`,"max_tokens":300`, `"max_tokens":300`, ""},
			{`,"max_tokens":301`, `"max_tokens":300`, "max_tokens=300"},
			{`,"max_tokens":200,"n":2`, `"max_tokens":150`, "max_tokens=150"}, // of all its answers
			{``, `"max_completion_tokens":200`, "max_completion_tokens=200"},
		} {
			g := r.do(ask{body: body(2, tt.rest)})
			if g.status != 200 || !strings.Contains(asked, tt.want) || g.header.Get("sluice-dropped") != tt.dropped {
				t.Errorf("%s: got %d, asked for %s, dropped %q; want %s, %q", tt.rest, g.status, asked, g.header.Get("sluice-dropped"), tt.want, tt.dropped)
			}
		}
		g := r.do(ask{body: body(1000, "")})
		if g.status != 400 || g.header.Get("sluice-reason") != "never_fits" || !strings.Contains(g.body, "> 500 maximum") {
			t.Errorf("too much input: got %d %s", g.status, g.body)
		}
		if g := r.do(ask{body: body(400, "")}); g.status != 200 {
			t.Errorf("input below the ceiling: got %d %s", g.status, g.body)
		}
		r.change(func(p *sluice.Policy) { p.Mode = sluice.Shadow })
		if g := r.do(ask{body: body(1000, `,"max_tokens":400`)}); g.status != 200 || g.header.Get("sluice-dropped") != "" {
			t.Errorf("in shadow: got %d, dropped %q", g.status, g.header.Get("sluice-dropped"))
		}
	})
}
