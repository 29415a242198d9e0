package egress

import (
	"context"
	"net/http"
)

// Client is for libraries that want an HTTP client, over a transport of Dialer's. It
// follows no redirect, and each of its calls ends with ctx, also those that are made
// without one.
func Client(ctx context.Context, over *http.Transport) *http.Client {
	return &http.Client{
		Transport:     ending{ctx, over},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ending makes calls that end with a context.
type ending struct {
	ctx  context.Context
	over *http.Transport
}

func (b ending) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.over.RoundTrip(r.WithContext(b.ctx))
}
