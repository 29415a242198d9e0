package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"

	"sluice"
	"sluice/internal/egress"
)

// The times of a token.
const (
	tokenWait    = 10 * time.Second // for one answer of a token endpoint
	tokenEarly   = 5 * time.Minute  // before its end it is renewed, beside the calls that use it
	tokenSpare   = 10 * time.Second // before its end it is not used any more
	tokenUnknown = time.Hour        // life of one that does not tell its end
	tokenRest    = time.Second      // after a failure, doubled with each up to tokenRestMax
	tokenRestMax = 30 * time.Second
	maxTokens    = 1024 // logins that are remembered
)

// googleScope is what a service account asks for.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// tokens keeps the tokens of logins: each is got once for all that wait for it, and
// renewed before it ends.
type tokens struct {
	mu  sync.Mutex
	of  map[Login]*token
	wg  sync.WaitGroup // of the calls of token endpoints
	end bool           // no more are to begin
}

// token is that of one login.
type token struct {
	value   string
	until   time.Time
	flight  *flight // that gets the next one; nil if none does
	failed  error   // why the last one got none; nil if it did
	fails   int     // in a row
	retryAt time.Time
}

// flight is one call of a token endpoint.
type flight struct {
	done   chan struct{} // closed when it has ended
	cancel context.CancelFunc
	value  string // what it got
	err    error
}

// token is the token of a login. It waits for one only where there is none that is
// good, and never for another login's.
func (c *Client) token(ctx context.Context, t *Target, l Login) (string, error) {
	f, value, err := c.tokens.get(time.Now(), l, func(ctx context.Context) (*oauth2.Token, error) {
		return l.fetch(context.WithValue(ctx, oauth2.HTTPClient, egress.Client(ctx, c.transport(t.tokenTransport(&l)))))
	})
	if f == nil {
		return value, err
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return "", errors.Join(ErrUnsent, context.Cause(ctx))
	}
}

// get is a good token, or why there is none now, or the call to wait for.
func (s *tokens) get(now time.Time, l Login, fetch func(context.Context) (*oauth2.Token, error)) (*flight, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.token(now, l)
	good := t.value != "" && now.Before(t.until.Add(-tokenSpare))
	if t.flight == nil && !s.end && !now.Before(t.retryAt) && (!good || now.After(t.until.Add(-tokenEarly))) {
		s.start(t, fetch)
	}
	switch {
	case good:
		return nil, t.value, nil
	case t.flight != nil:
		return t.flight, "", nil
	case t.failed == nil:
		return nil, "", noToken(errors.New("the gateway is shutting down"))
	}
	return nil, "", t.failed
}

// token finds a login's. Where too many are remembered one that is of no use any more
// gives way: logins come with the configuration.
func (s *tokens) token(now time.Time, l Login) *token {
	if t := s.of[l]; t != nil {
		return t
	}
	if s.of == nil {
		s.of = make(map[Login]*token)
	}
	if len(s.of) >= maxTokens {
		for l, t := range s.of {
			if t.flight == nil && now.After(t.until) {
				delete(s.of, l)
			}
		}
	}
	t := &token{}
	s.of[l] = t
	return t
}

func (s *tokens) start(t *token, fetch func(context.Context) (*oauth2.Token, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenWait)
	f := &flight{done: make(chan struct{}), cancel: cancel}
	t.flight = f
	s.wg.Go(func() {
		defer cancel()
		got, err := fetch(ctx)
		s.landed(t, f, got, err)
	})
}

// landed takes what a call got.
func (s *tokens) landed(t *token, f *flight, got *oauth2.Token, err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(f.done)
	t.flight = nil
	if err == nil && got.AccessToken == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		t.failed = noToken(err)
		t.retryAt = now.Add(min(tokenRest<<min(t.fails, 10), tokenRestMax))
		t.fails++
		f.err = t.failed
		return
	}
	t.value, t.until, t.failed, t.fails = got.AccessToken, got.Expiry, nil, 0
	if t.until.IsZero() {
		t.until = now.Add(tokenUnknown)
	}
	// One that lives shorter than it is renewed early would be renewed by every call.
	t.retryAt = now.Add(min(t.until.Sub(now)/2, tokenEarly))
	f.value = t.value
}

// refused drops a token that a backend does not take, if it is still the one in use.
func (s *tokens) refused(l Login, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.of[l]; t != nil && t.value == value {
		t.value, t.retryAt = "", time.Time{}
	}
}

// close ends the calls of token endpoints and waits for them.
func (s *tokens) close() {
	s.mu.Lock()
	s.end = true
	for _, t := range s.of {
		if t.flight != nil {
			t.flight.cancel()
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// fetch calls the token endpoint of a login.
func (l *Login) fetch(ctx context.Context) (*oauth2.Token, error) {
	if g := &l.Google; g.Email != "" {
		c := jwt.Config{Email: g.Email, PrivateKeyID: g.KeyID, PrivateKey: []byte(g.Key.Reveal()), TokenURL: g.TokenURL, Scopes: []string{googleScope}}
		return c.TokenSource(ctx).Token()
	}
	e := &l.Entra
	c := clientcredentials.Config{
		ClientID: e.ClientID, ClientSecret: e.Secret.Reveal(), TokenURL: e.TokenURL, Scopes: []string{e.Scope}, AuthStyle: oauth2.AuthStyleInParams,
	}
	return c.Token(ctx)
}

// noToken is the error of a call for which there is no token.
func noToken(err error) *Error {
	what := "no token: its endpoint does not answer"
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		what = "no token: its endpoint refuses the login"
		if e.Response.StatusCode >= 500 || e.Response.StatusCode == http.StatusTooManyRequests {
			what = "no token: its endpoint fails"
		}
		err = errors.New(e.Response.Status + " " + e.ErrorCode) // not its body, which may tell what was sent
	}
	return &Error{Reason: sluice.UpstreamRefused, Credential: true, What: what, Err: err}
}

// tokenTransport is how a login's token endpoint is dialled: the operator has named its
// host as that of the target.
func (t *Target) tokenTransport(l *Login) egress.TransportOptions {
	o := t.transport()
	o.AllowPrivate = t.AllowPrivate
	if u, err := url.Parse(l.tokenURL()); err == nil {
		o.AllowPrivate = o.AllowPrivate || egress.NamesPrivate(u.Hostname())
	}
	return o
}

func (l *Login) tokenURL() string {
	if l.Google.Email != "" {
		return l.Google.TokenURL
	}
	return l.Entra.TokenURL
}
