package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice/internal/egress"
)

var errSlow = errors.New("it took too long")

// one gets one piece. The error is a *sluice.Error, or that of ctx where it ended.
func (f *Fetcher) one(ctx context.Context, p Piece) (Got, error) {
	begun := time.Now()
	got, err := f.reach(ctx, p)
	e := Event{Outcome: Fetched, Bytes: len(got.Data), Took: time.Since(begun)}
	_, said := errors.AsType[saying](err)
	switch {
	case err == nil:
	case said || ctx.Err() == nil:
		var what string
		e.Outcome, what = told(err)
		err = refusal(p, what)
	case context.Cause(ctx) == errSlow:
		e.Outcome, err = TimedOut, refusal(p, fmt.Sprintf("could not be fetched within %v", MaxTime))
	default:
		e.Outcome, err = Ended, context.Cause(ctx)
	}
	f.told(e)
	return got, err
}

// reach follows a URL to its piece, once there is room.
func (f *Fetcher) reach(ctx context.Context, p Piece) (got Got, err error) {
	select {
	case f.room <- struct{}{}:
		defer func() { <-f.room }()
	case <-ctx.Done():
		return Got{}, ctx.Err()
	}
	u, err := place(p.URL)
	if err != nil {
		return Got{}, saying{BadURL, err.Error()}
	}
	for range MaxRedirects + 1 {
		got, next, err := f.hop(ctx, u)
		if err != nil {
			return Got{}, err
		}
		if next == nil {
			return got, nil
		}
		u = next
	}
	return Got{}, saying{Redirected, fmt.Sprintf("is redirected more than %d times", MaxRedirects)}
}

// place is where a URL leads to, if the gateway goes there.
func place(text string) (*url.URL, error) {
	const most = 8 << 10
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > most:
		return nil, errors.New("is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("is a URL that is neither https nor http")
	case u.User != nil:
		return nil, errors.New("is a URL with credentials, which the gateway does not send")
	case u.Hostname() == "":
		return nil, errors.New("is a URL without a host")
	case u.Port() != "" && u.Port() != map[string]string{"https": "443", "http": "80"}[u.Scheme]:
		return nil, errors.New("is a URL with another port than that of its scheme")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// hop asks one server: for the piece, or where else it is.
func (f *Fetcher) hop(ctx context.Context, u *url.URL) (got Got, next *url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return got, nil, saying{BadURL, "is no URL"}
	}
	req.Header.Set("Accept", "image/png, image/jpeg, image/gif, image/webp, application/pdf")
	req.Header.Set("User-Agent", "sluice")
	ans, err := f.over.RoundTrip(req)
	if err != nil {
		return got, nil, err
	}
	defer ans.Body.Close()
	switch ans.StatusCode {
	case http.StatusOK:
		got, err = read(ans)
		return got, nil, err
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		next, err = elsewhere(u, ans.Header.Get("Location"))
		return got, next, err
	}
	return got, nil, saying{Unanswered, fmt.Sprintf("could not be fetched: its server answered %d", ans.StatusCode)}
}

// elsewhere is where a redirect leads to.
func elsewhere(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return nil, saying{Redirected, "is redirected to nowhere"}
	}
	to, err = place(to.String())
	if err != nil {
		return nil, saying{Redirected, "is redirected to what " + err.Error()}
	}
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, saying{Redirected, "is redirected from https to http"}
	}
	return to, nil
}

// read reads an answer.
func read(ans *http.Response) (got Got, err error) {
	if e := ans.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return got, saying{Unfit, "comes in an encoding that was not asked for"}
	}
	if ans.ContentLength > MaxBytes {
		return got, tooLarge()
	}
	got.Data, err = io.ReadAll(io.LimitReader(ans.Body, MaxBytes+1))
	switch {
	case err != nil:
		return got, err
	case len(got.Data) > MaxBytes:
		return got, tooLarge()
	}
	got.Type, err = sort(ans.Header.Get("Content-Type"), got.Data)
	return got, err
}

func tooLarge() error {
	return saying{TooLarge, fmt.Sprintf("is larger than the %d MiB that the gateway fetches", MaxBytes>>20)}
}

// saying is an error in words for the client.
type saying struct {
	outcome Outcome
	text    string
}

func (s saying) Error() string { return s.text }

// told is why a piece could not be had, in words that say no more of the network than the
// client must know.
func told(err error) (Outcome, string) {
	if s, ok := errors.AsType[saying](err); ok {
		return s.outcome, s.text
	}
	if errors.Is(err, egress.ErrForbidden) {
		return Forbidden, "leads to an address that is not public, and the gateway fetches from none other"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return Unanswered, "could not be fetched: the name of its host is not known"
	}
	return Unanswered, "could not be fetched: its server does not answer as it should"
}
