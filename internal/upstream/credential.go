package upstream

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/wire"
)

// Login is a credential that is more than one secret. At most one of its kinds is
// given. It is comparable: what is equal shares a token.
type Login struct {
	AWS    AWS    // signs each call
	Google Google // gets a token by an assertion that it signs
	Entra  Entra  // gets a token for its secret
}

// AWS is an access key.
type AWS struct {
	KeyID   string
	Secret  sluice.Secret
	Session sluice.Secret // of temporary credentials; else empty
}

// Google is a service account's key.
type Google struct {
	Email    string
	KeyID    string
	Key      sluice.Secret // in PEM
	TokenURL string
}

// Entra is an application's secret.
type Entra struct {
	TokenURL string
	ClientID string
	Secret   sluice.Secret
	Scope    string
}

// scheme is the header that a secret is sent in.
type scheme struct{ header, prefix string }

var (
	asBearer  = scheme{hAuthorization, "Bearer "}
	asXAPIKey = scheme{hXAPIKey, ""}
	asAPIKey  = scheme{hAPIKey, ""}
	asGoogKey = scheme{hXGoogAPIKey, ""}
)

// ofService and ofDialect say which header a plain secret is sent in: the service's,
// where it has one of its own, else the dialect's, else as a bearer token.
var (
	ofService = map[Service]scheme{Azure: asAPIKey, Deployments: asAPIKey, Vertex: asGoogKey, Bedrock: asBearer}
	ofDialect = map[wire.Dialect]scheme{wire.OpenAI: asBearer, wire.Anthropic: asXAPIKey, wire.Bedrock: asBearer, wire.Gemini: asGoogKey}
)

func (t *Target) scheme() scheme {
	if s, ok := ofService[t.Service]; ok {
		return s
	}
	if s, ok := ofDialect[t.Dialect]; ok {
		return s
	}
	return asBearer
}

// letter is a call as it is about to be sent. Signing it is the last that happens to it.
type letter struct {
	method string
	url    *url.URL
	header http.Header
	pieces [][]byte
	sent   *atomic.Bool // Request.Sent

	login  Login     // that it is authenticated by; zero for a plain secret
	token  string    // of the login, if it has one
	signed time.Time // of the signature, if it has one
}

// authenticate adds the credential of a name to a call, or the target's own.
func (c *Client) authenticate(ctx context.Context, t *Target, key string, l *letter) error {
	login, ok := t.Logins[key]
	if !ok {
		if _, named := t.Keys[key]; !named {
			login = t.Login
		}
	}
	l.login = login
	switch {
	case login.AWS.KeyID != "":
		return c.sign(ctx, t, &login.AWS, l)
	case login.Google.Email != "", login.Entra.ClientID != "":
		var err error
		if l.token, err = c.token(ctx, t, login); err == nil {
			asBearer.set(l.header, l.token)
		}
		return err
	}
	if secret := t.secret(key); !secret.Empty() {
		t.scheme().set(l.header, secret.Reveal())
	}
	return nil
}

// renews reports whether a call that the backend has refused for its credential may go
// well with another token, or another time in its signature.
func (c *Client) renews(t *Target, l *letter, a *Answer) bool {
	switch {
	case a.Status == http.StatusUnauthorized && l.token != "":
		c.tokens.refused(l.login, l.token)
		return true
	case a.Status == http.StatusForbidden && !l.signed.IsZero():
		return c.clocks.set(t.BaseURL.Host, l.signed, a.Header.Get("Date"))
	}
	return false
}

func (s scheme) set(h http.Header, secret string) {
	if s.prefix != "" {
		secret = s.prefix + secret
	}
	h[s.header] = []string{secret}
}

// letter is a request as it is sent, but for its credential.
func (t *Target) letter(r *Request) *letter {
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	return &letter{method: method, url: t.url(r.Path), header: t.header(r), pieces: r.pieces(), sent: r.Sent}
}

// url is the address of a path, escaped and with its query, below the base.
func (t *Target) url(path string) *url.URL {
	path, query, _ := strings.Cut(path, "?")
	escaped := strings.TrimSuffix(t.BaseURL.EscapedPath(), "/") + path
	u := &url.URL{Scheme: t.BaseURL.Scheme, Host: t.BaseURL.Host, Path: escaped, RawQuery: query}
	if plain, err := url.PathUnescape(escaped); err == nil && plain != escaped {
		u.Path, u.RawPath = plain, escaped
	}
	return u
}
