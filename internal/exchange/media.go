package exchange

import (
	"context"
	"encoding/base64"

	"sluice"
	"sluice/internal/dialect"
	"sluice/internal/fetch"
	"sluice/internal/wire"
)

// Fetch gets what a request names by URL: [fetch.Fetcher.Get].
type Fetch func(context.Context, []fetch.Piece) (map[string]fetch.Got, error)

// mediaFor is what the request names by URL and backends of another operation take by
// its bytes, by URL: nothing where there is none, or where the tenant's is not fetched.
// It is fetched before the request has a place, once for all operations, so that
// nothing is held meanwhile; or when an attempt has failed, whose place is given back
// after. What it comes to in tokens is in what is reserved already: an image by URL is
// bounded by the most that the model bills for one, a document by the model's context.
// A copy has nothing fetched: it would be asked for twice.
func (t *turn) mediaFor(ctx context.Context, to wire.Operation) (map[string]dialect.Media, error) {
	p := t.r.Principal.Policy
	if t.r.Head.Media == 0 || p == nil || !p.FetchMedia || t.x.o.Fetch == nil || t.shadow != nil {
		return nil, nil
	}
	var pieces []fetch.Piece
	for _, w := range dialect.Wants(t.r.Head, t.r.Body, to) {
		if _, ok := t.media[w.URL]; ok {
			continue
		}
		kind := fetch.Image
		if w.Document {
			kind = fetch.Document
		}
		pieces = append(pieces, fetch.Piece{Path: w.Path, URL: w.URL, Kind: kind})
	}
	if len(pieces) == 0 {
		return t.media, nil
	}
	got, err := t.x.o.Fetch(ctx, pieces)
	if err != nil {
		return nil, err
	}
	if t.media == nil {
		t.media = make(map[string]dialect.Media, len(got))
	}
	for url, g := range got {
		t.media[url] = dialect.Media{Type: g.Type, Data: base64.StdEncoding.EncodeToString(g.Data)}
	}
	return t.media, nil
}

// unmade is the translation that there is none of, since something could not be fetched.
func (t *turn) unmade(ctx context.Context, to wire.Operation, err error) *dialect.Translation {
	var why *sluice.Error
	if ctx.Err() != nil {
		why = t.why(ctx, err)
	} else {
		why = sluice.AsError(err)
	}
	return dialect.Unmade(t.r.Head.Op, to, why)
}
