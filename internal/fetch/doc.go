// Package fetch gets the images and documents that requests name by URL, for backends
// that take bytes alone.
//
// # Model
//
// [Fetcher.Get] takes the pieces of one request to their bytes, each URL once, or to
// the first piece that could not be had and why, in words for the client. Whether a
// tenant's requests are fetched for at all is the policy's (fetch_media), and asked
// before.
//
// # Invariants
//
//   - All connections are egress's, by a transport that allows no private address: what
//     a name, a redirect or another spelling of an address leads to is judged at the
//     dial. What a client learns of a refused address is that it is not public.
//   - A URL is http or https, at the scheme's own port, without credentials. A redirect
//     leads to another such URL, never from https to http, at most [MaxRedirects] times.
//   - A request's headers say nothing of the tenant or of the gateway but its name.
//     There are no cookies, and answers in another encoding are refused.
//   - What comes back is an image or a PDF by its first bytes, whatever it is said to
//     be, and is said to be one. Nothing else reaches a backend, so that nobody reads
//     pages through the gateway.
//   - Everything is bounded: pieces and bytes of one request, bytes of a piece, time for
//     all of it, and how many are fetched at a time over all requests.
//
// # Ownership and concurrency
//
// A Fetcher is safe for concurrent use. Get fetches the pieces of a request side by
// side, each on a goroutine that it joins. Close closes idle connections.
//
// # What it does not do
//
// It keeps nothing: the same URL in another request is fetched again, since what it
// leads to may have changed, and may not be another tenant's to see.
package fetch
