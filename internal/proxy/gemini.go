package proxy

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/wire"
)

// Clients of the Gemini dialect name the model and what is asked of it in the path:
// /v1beta/models/{model}:generateContent. Both versions of the API are served alike.

// geminiVersions are the paths below which its clients find models.
var geminiVersions = [...]string{"/v1beta", "/v1"}

// geminiVerb is what is asked of a model.
type geminiVerb struct {
	op     wire.Operation
	stream bool
}

var geminiVerbs = map[string]geminiVerb{
	"generateContent":       {wire.GenerateContent, false},
	"streamGenerateContent": {wire.GenerateContent, true},
	"countTokens":           {wire.CountContent, false},
}

// gemini serves what is asked of a model.
func (p *Proxy) gemini(w http.ResponseWriter, r *http.Request) {
	rest := r.PathValue("rest")
	at := strings.LastIndexByte(rest, ':')
	if at < 0 {
		p.handle(w, r, wire.Models, auth.PreferGoogleKey, wrongMethod(http.MethodGet))
		return
	}
	verb, ok := geminiVerbs[rest[at+1:]]
	if !ok {
		p.handle(w, r, wire.Models, auth.PreferGoogleKey, (*call).noVerb)
		return
	}
	p.handle(w, r, verb.op, auth.PreferGoogleKey, func(c *call) {
		c.at = wire.InPath{Model: rest[:at], Stream: verb.stream}
		c.serve()
	})
}

func (c *call) noVerb() {
	c.reject(&sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no such operation of a model",
		Hint: "use generateContent, streamGenerateContent or countTokens",
	})
}

// isGemini reports a request in the Gemini dialect: by its path, or, where the path is
// that of another dialect too, by how it brings its key.
func isGemini(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, geminiVersions[0]+"/") {
		return true
	}
	return len(r.Header["X-Goog-Api-Key"]) > 0 && strings.HasPrefix(r.URL.Path, "/v1/models")
}

// query takes what a request of the Gemini dialect says behind its path: how a stream is
// framed, and a key, which is taken out at once, so that nothing logs it or sends it on.
// What would change the answer otherwise is refused: a mask of fields could leave out
// what is metered.
func (c *call) query() error {
	q := c.r.URL.Query()
	c.r.URL.RawQuery, c.r.RequestURI = "", c.r.URL.Path
	c.array = q.Get("alt") != "sse"
	keys := q["key"]
	delete(q, "key")
	if len(keys) > 0 {
		header := c.r.Header["X-Goog-Api-Key"]
		if len(keys) > 1 || len(header) > 0 && !slices.Equal(header, keys) {
			return &sluice.Error{
				Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated,
				Msg: "the API key is given more than once", Hint: "send it once, as x-goog-api-key",
			}
		}
		c.r.Header["X-Goog-Api-Key"] = keys
	}
	for name, values := range q {
		switch strings.TrimPrefix(name, "$") {
		case "alt":
			if len(values) != 1 || values[0] != "sse" && values[0] != "json" {
				return sluice.Invalid("alt", "is not supported: use sse for a stream of events, or json")
			}
		case "prettyPrint", "pageSize", "pageToken", "quotaUser", "uploadType":
		default:
			return sluice.Invalid(name, "is not supported behind the path: leave it out")
		}
	}
	return nil
}

// list turns the events of a stream into the elements of a list, which is how the
// dialect streams without alt=sse: a JSON array whose elements come as they are made.
type list struct{ begun bool }

// add appends the data of whole events as elements. Comments are white space.
func (l *list) add(b, p []byte) []byte {
	events := wire.NewEvents(bytes.NewReader(p), len(p)+1)
	for ev, err := events.Next(); err == nil; ev, err = events.Next() {
		switch {
		case ev.Data == nil:
			b = append(b, '\n')
			continue
		case l.begun:
			b = append(b, ",\r\n"...)
		default:
			b = append(b, '[')
		}
		l.begun = true
		b = append(b, ev.Data...)
	}
	return b
}

// endOfList ends a list whose elements have all come.
var endOfList = []byte("]\n")
