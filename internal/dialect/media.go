package dialect

import (
	"sluice"
	"sluice/internal/wire"
)

// Wanted is an image or a document that a request names by its URL and that backends of
// another dialect take by its bytes alone.
type Wanted struct {
	Path     string // in the client's request
	URL      string
	Document bool // else an image
}

// Wants is what must be fetched for a request to be put into another operation, in its
// order. REQUIRES: as Translate. What the dialect does not allow is Translate's to tell.
func Wants(head *wire.Head, body []byte, to wire.Operation) (out []Wanted) {
	from, target := codecOf(head.Op), codecOf(to)
	r, err := from.parseRequest(body)
	if err != nil {
		return nil
	}
	rep := reporter{from: from, to: target}
	r.byURL(&rep, func(p *Part, path string) {
		out = append(out, Wanted{Path: path, URL: p.Media.URL, Document: p.Kind == DocumentPart})
	})
	return out
}

// byURL calls f for the images and documents that the request names by URL and that the
// target takes by their bytes, with where each stands.
func (r *Request) byURL(rep *reporter, f func(p *Part, path string)) {
	visit := func(p *Part) {
		if p.Media.URL == "" {
			return
		}
		feature := FeatureImageURL
		if p.Kind == DocumentPart {
			feature = FeatureDocumentURL
		}
		if rep.to.carries[feature] == byItsBytes {
			f(p, rep.from.path(p.at, rep.from.names[feature]))
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			p := &r.Messages[i].Parts[j]
			visit(p)
			for k := range p.Result.Parts {
				visit(&p.Result.Parts[k])
			}
		}
	}
}

// fetched puts what was fetched in the place of URLs, and tells of those that were not.
func (r *Request) fetched(rep *reporter, have map[string]Media) {
	r.byURL(rep, func(p *Part, path string) {
		if m, ok := have[p.Media.URL]; ok {
			p.Media.Type, p.Media.Data, p.Media.URL = m.Type, m.Data, ""
			return
		}
		what := "an image"
		if p.Kind == DocumentPart {
			what = "a document"
		}
		rep.lose(Loss{
			Path: path, Fate: Refused, Why: "is " + what + " by its URL, which this dialect takes by its bytes alone, and is not fetched",
			Fix: "send its bytes (as a data: URL, or as base64), or have the tenant's fetch_media set to allow",
		})
	})
}

// Unmade is the translation of a request for which something could not be fetched.
func Unmade(from, to wire.Operation, err *sluice.Error) *Translation {
	return &Translation{Op: to, Err: err, into: into(codecOf(from), codecOf(to))}
}
