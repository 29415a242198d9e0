package fetch

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sluice"
	"sluice/internal/egress"
)

// The bounds.
const (
	MaxPieces    = 20       // of one request
	MaxBytes     = 10 << 20 // of one piece
	MaxAllBytes  = 20 << 20 // of the pieces of one request
	MaxTime      = 10 * time.Second
	MaxRedirects = 3
	MaxAtATime   = 32 // over all requests; others wait, within their time
)

// Kind is what a piece must be.
type Kind uint8

// The kinds.
const (
	Image Kind = iota
	Document
)

func (k Kind) String() string { return [...]string{"image", "document"}[k] }

// Piece is an image or a document that a request names by its URL.
type Piece struct {
	Path string // of the field, for errors
	URL  string
	Kind Kind
}

// Got is what a URL has led to.
type Got struct {
	Type string // image/png, image/jpeg, image/gif, image/webp or application/pdf
	Data []byte
}

// Fetcher gets pieces.
type Fetcher struct {
	over *http.Transport
	room chan struct{} // a place for each that is fetched
	told func(Event)
}

// New makes a Fetcher that connects through d. Close ends it. told hears of each URL that
// was gone after, from any goroutine; nil is silent.
func New(d *egress.Dialer, told func(Event)) *Fetcher {
	t := d.Transport(egress.TransportOptions{})
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = MaxAtATime, 2, 10*time.Second
	if told == nil {
		told = func(Event) {}
	}
	return &Fetcher{over: t, room: make(chan struct{}, MaxAtATime), told: told}
}

// Close closes idle connections.
func (f *Fetcher) Close() { f.over.CloseIdleConnections() }

// Get gets all pieces of a request, by their URLs. The error names the path of the first
// piece, in their order, that cannot be had; it is that of the context where that ended.
func (f *Fetcher) Get(ctx context.Context, pieces []Piece) (map[string]Got, error) {
	if len(pieces) > MaxPieces {
		return nil, refusal(pieces[MaxPieces], fmt.Sprintf("is one of %d that the gateway would have to fetch, and it fetches at most %d for a request", len(pieces), MaxPieces))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, MaxTime, errSlow)
	defer cancel()
	all := make([]result, len(pieces))
	first := make(map[string]int, len(pieces)) // piece of each URL
	var w sync.WaitGroup
	for i, p := range pieces {
		if _, ok := first[p.URL]; ok {
			continue
		}
		first[p.URL] = i
		w.Go(func() {
			all[i].got, all[i].err = f.one(ctx, p)
			if all[i].err != nil { // the others are of no use
				cancel()
			}
		})
	}
	w.Wait()
	return f.together(pieces, all, first)
}

// result is how one piece came out.
type result struct {
	got Got
	err error
}

// together is the pieces, or why they cannot be had. Of those that failed since another
// had nothing is said.
func (f *Fetcher) together(pieces []Piece, all []result, first map[string]int) (map[string]Got, error) {
	var ended error
	out, size := make(map[string]Got, len(first)), 0
	for i, p := range pieces {
		at := first[p.URL]
		r := &all[at]
		if r.err != nil {
			if _, ok := r.err.(*sluice.Error); ok {
				return nil, r.err
			}
			ended = r.err
			continue
		}
		if !p.Kind.fits(r.got.Type) {
			return nil, refusal(p, "is "+named(r.got.Type)+", and no "+p.Kind.String()+" that a backend takes")
		}
		if at == i {
			size += len(r.got.Data)
		}
		if size > MaxAllBytes {
			return nil, refusal(p, fmt.Sprintf("is more than the %d MiB that the gateway fetches for a request", MaxAllBytes>>20))
		}
		out[p.URL] = r.got
	}
	if ended != nil {
		return nil, ended
	}
	return out, nil
}

// refusal is the error for a piece.
func refusal(p Piece, what string) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindInvalid, Reason: sluice.Untranslatable, Param: p.Path, Msg: what,
		Hint: "send its bytes: as a data: URL, or as base64",
	}
}
