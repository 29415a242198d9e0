package jwt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sluice/internal/egress"
)

// The times of fetches.
const (
	AskWait = 2 * time.Second  // that a request waits for keys
	AskEach = 10 * time.Second // between two fetches for the sake of unknown keys

	fetchWait  = 5 * time.Second // for one fetch, discovery included
	retryFirst = time.Second     // after a fetch that failed, doubled with each up to retryMost
	retryMost  = time.Minute

	maxDocument = 512 << 10 // bytes of what an issuer answers
)

// source is where an issuer's keys come from, and those that it had last.
type source struct {
	spec Spec

	mu      sync.Mutex
	keys    *keySet        // guarded by mu, as all below; nil until there are any
	fetched time.Time      // when it answered last
	asked   time.Time      // when it was asked last
	fails   int            // fetches in a row that failed
	err     error          // of the last
	flight  *flight        // nil if none is under way
	answers int            // fetches that succeeded
	missing map[string]int // answers when each unknown key id was first seen; at most maxMissing
}

// maxMissing bounds the unknown key ids that are remembered of an issuer.
const maxMissing = 64

// unpublished notes a key id that is not known, and reports whether the issuer has answered
// since it was first seen, in the last AskEach, without its key.
func (s *source) unpublished(kid string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, seen := s.missing[kid]; seen {
		return s.answers > first && s.fails == 0 && now.Sub(s.fetched) < AskEach
	}
	if s.missing == nil || len(s.missing) >= maxMissing {
		s.missing = make(map[string]int)
	}
	s.missing[kid] = s.answers
	return false
}

// flight is one fetch.
type flight struct {
	done chan struct{}
	err  error // once it is done
}

// current is the keys in force; known is false where they are too old to rely on, or
// have never come.
func (s *source) current(now time.Time) (set *keySet, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.keys != nil && (s.spec.StaleMax <= 0 || now.Sub(s.fetched) <= s.spec.StaleMax)
}

// answeredAfter reports whether the keys are as the issuer gave them after a time, by
// its clock, which differs by leeway at most. A zero time is not known.
func (s *source) answeredAfter(t time.Time, leeway time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !t.IsZero() && s.keys != nil && s.fetched.After(t.Add(leeway))
}

// due is when the keys are to be fetched next.
func (s *source) due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.asked.IsZero():
		return s.asked
	case s.fails > 0:
		return s.asked.Add(min(retryFirst<<min(s.fails-1, 10), retryMost))
	}
	return s.asked.Add(s.spec.Refresh)
}

// begin is the fetch that is under way, or a new one, where the last began each ago or
// more; else it says how long that takes.
func (s *source) begin(now time.Time, each time.Duration) (f *flight, begun bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil {
		return s.flight, false, 0
	}
	if left := s.asked.Add(each).Sub(now); !s.asked.IsZero() && left > 0 {
		return nil, false, left
	}
	s.asked, s.flight = now, &flight{done: make(chan struct{})}
	return s.flight, true, 0
}

// land takes what a fetch got.
func (s *source) land(f *flight, set *keySet, err error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight, s.err = nil, err
	if err != nil {
		s.fails++
	} else {
		s.keys, s.fetched, s.fails = set, now, 0
		s.answers++
	}
	f.err = err
	close(f.done)
}

// fetch asks an issuer for its keys.
func (s *Spec) fetch(ctx context.Context, d *egress.Dialer) (*keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	at := s.KeysURL
	if at == "" {
		var err error
		if at, err = s.discover(ctx, d); err != nil {
			return nil, err
		}
	}
	text, err := s.get(ctx, d, at)
	if err != nil {
		return nil, err
	}
	set, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("what %s answers %w", at, err)
	}
	return set, nil
}

// discover is where the issuer says that its keys are. Its document must be its own.
func (s *Spec) discover(ctx context.Context, d *egress.Dialer) (string, error) {
	at := strings.TrimSuffix(s.Issuer, "/") + "/.well-known/openid-configuration"
	text, err := s.get(ctx, d, at)
	if err != nil {
		return "", err
	}
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("what %s answers is no discovery document", at)
	}
	if document.Issuer != s.Issuer {
		return "", fmt.Errorf("%s is the document of issuer %q, not of %q", at, document.Issuer, s.Issuer)
	}
	return document.Keys, nil
}

// get reads one document of an issuer. The name that is configured may be a private one;
// one that a document of the issuer names may not, unless that is allowed.
func (s *Spec) get(ctx context.Context, d *egress.Dialer, at string) ([]byte, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "https" && !s.plain(u) {
		return nil, fmt.Errorf("%q is no address for keys: it must be https://…", at)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/jwk-set+json")
	transport := d.Transport(egress.TransportOptions{AllowPrivate: s.AllowPrivate || s.named(u) && egress.NamesPrivate(u.Hostname())})
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", at, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", at, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", at, err)
	}
	return text, nil
}

// named reports whether the configuration names the host of an address.
func (s *Spec) named(u *url.URL) bool {
	for _, own := range []string{s.Issuer, s.KeysURL} {
		if o, err := url.Parse(own); err == nil && o.Host == u.Host {
			return true
		}
	}
	return false
}

// plain reports whether an address may be asked without TLS: one that the configuration
// names, and that is a private one.
func (s *Spec) plain(u *url.URL) bool {
	return u.Scheme == "http" && s.named(u) && (s.AllowPrivate || egress.NamesPrivate(u.Hostname()))
}
