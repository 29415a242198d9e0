package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/wire"
)

// respondAsync is the preference (RFC 7240) for an answer that comes later.
const respondAsync = "respond-async"

// Deferred is where the answer to a request will be.
type Deferred struct {
	Location   string
	RetryAfter int    // seconds until a look at it may be worth it
	Body       []byte // JSON that says so
	// Replayed is the request that was taken under the same key; empty if this one was.
	Replayed sluice.RequestID
}

// later takes a request whose client prefers its answer to come later; false if it does
// not, or what it asks for cannot.
func (c *call) later(req *exchange.Request) bool {
	if len(c.r.Header["Prefer"]) == 0 || !prefers(c.r.Header["Prefer"], respondAsync) {
		return false
	}
	if c.p.o.Later == nil || c.head.Stream || c.op.Counts() || c.op.Form() || c.op.Dialect() == wire.Gemini {
		c.drop("prefer") // as the preference's own rules have it, the request goes on without
		return false
	}
	c.word = "answers"
	if len(req.RunLimits) > 0 {
		e := sluice.Invalid("sluice-run-limits", "is for what runs now, and this request runs later")
		e.Hint = "send it with a request of the run that is answered at once"
		c.reject(e)
		return true
	}
	for _, name := range []string{hClass, hMaxWait, hSession} {
		if len(c.r.Header[name]) > 0 && !strings.Contains(c.dropping, strings.ToLower(name)) {
			c.drop(strings.ToLower(name))
		}
	}
	d, err := c.p.o.Later(c.r.Context(), req)
	if err != nil {
		c.reject(err)
		return true
	}
	out := &answer{c: c}
	h := out.Header()
	h.Set("Location", d.Location)
	h.Set("Preference-Applied", respondAsync)
	h.Set("Retry-After", strconv.Itoa(d.RetryAfter))
	if d.Replayed != "" {
		h[hReplayed], h[hOriginal] = []string{"true"}, []string{string(d.Replayed)}
	}
	out.WriteHeader(http.StatusAccepted)
	if _, err := out.Write(d.Body); err != nil {
		c.reject(err)
		return true
	}
	out.end()
	return true
}

// prefers reports whether a preference is among those of a request: a list of words, which
// may have a value and parameters, in any case.
func prefers(header []string, what string) bool {
	for _, line := range header {
		for p := range strings.SplitSeq(line, ",") {
			p, _, _ = strings.Cut(p, ";")
			p, _, _ = strings.Cut(p, "=")
			if strings.EqualFold(strings.TrimSpace(p), what) {
				return true
			}
		}
	}
	return false
}
