package exchange

import (
	"maps"
	"net/http"
	"strings"

	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// Headers of Anthropic's dialect that some clouds want in the body.
const (
	hVersion = "Anthropic-Version"
	hBeta    = "Anthropic-Beta"
)

// address is how the backend of an attempt is called; what that changes in the body is
// added to the edit. The headers are those that remain of the client's.
func (t *turn) address(a *attempt, e *wire.Edit) (path string, header http.Header) {
	at := a.target.At(upstream.Call{Op: a.said.Op, Model: a.place.Backend.Model, Stream: t.r.Head.Stream})
	e.NoModel, e.NoStream, e.Version = at.NoModel, at.NoStream, at.Version
	header = t.header(a)
	if at.Version == "" && !at.Betas {
		return at.Path, header
	}
	header = maps.Clone(header)
	if at.Version != "" {
		delete(header, hVersion)
	}
	if at.Betas {
		e.Betas = words(header[hBeta])
		delete(header, hBeta)
	}
	return at.Path, header
}

// words are what the values of a header list.
func words(values []string) (out []string) {
	for _, v := range values {
		for w := range strings.SplitSeq(v, ",") {
			if w = strings.TrimSpace(w); w != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

// placed reports whether the edit is for a body that says less, or more, since its
// address does.
func placed(e *wire.Edit) bool { return e.NoModel || e.NoStream || e.Version != "" || len(e.Betas) > 0 }

// pieces is what this backend is sent. The client's own bytes where nothing differs.
func (a *attempt) pieces(e wire.Edit) [][]byte {
	h := a.said
	if !placed(&e) && e.Model == h.Model && e.MaxOutput == 0 && e.CacheSalt == "" && !e.LegacyMaxTokens && (!e.IncludeUsage || h.IncludeUsage && !e.ContinuousUsage) {
		return [][]byte{a.body}
	}
	return h.Pieces(a.body, e)
}
