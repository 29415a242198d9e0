package jwt

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/auth/jwt/jwttest"
	"sluice/test/bubble"
)

// A new key is fetched when the first token names it; one that is taken back is refused
// after the next refresh, for tokens that were verified before too.
func TestRotation(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		old := r.token(nil)
		r.good(old)
		time.Sleep(AskEach)
		r.issuer.Add(t, "k2", "EdDSA")
		fresh := r.issuer.Sign(t, "k2", claimsOf(map[string]any{"sub": "bob"}))
		asked := r.issuer.Asked()
		var wg sync.WaitGroup
		for range 50 { // all wait for one fetch
			wg.Go(func() {
				if _, err := r.v.Bearer(fresh, time.Now()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := r.issuer.Asked() - asked; n != 1 {
			t.Errorf("%d fetches for one new key", n)
		}
		r.good(old)
		r.issuer.Drop("k1")
		time.Sleep(DefaultRefresh + time.Second)
		r.refused(old, sluice.Unauthenticated, "does not publish")
		r.good(fresh)
	})
}

// Tokens of made-up keys cost the issuer one request in AskEach, and are told when they
// may be asked about again.
func TestUnknownKeysAreRateBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		time.Sleep(AskEach)
		other := jwttest.New(issuerURL)
		for _, kid := range []string{"x1", "x2", ""} {
			other.Add(t, kid, "ES256")
		}
		r.refused(other.Sign(t, "x1", claimsOf(nil)), sluice.Unauthenticated, "does not publish")
		asked := r.issuer.Asked()
		for range 1000 {
			e := r.refused(other.Sign(t, "x2", claimsOf(nil)), sluice.NotReady, "not known here yet")
			if e.RetryAfter != AskEach {
				t.Fatalf("told to come back in %v", e.RetryAfter)
			}
		}
		r.refused(other.Sign(t, "", claimsOf(nil)), sluice.NotReady, "")
		if n := r.issuer.Asked() - asked; n != 0 {
			t.Errorf("%d fetches", n)
		}
		r.good(r.token(nil)) // others are not disturbed
	})
}

// An issuer that is down keeps its keys, for StaleMax; before it was up it is 503.
func TestIssuerDown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *Spec) { s.StaleMax = time.Hour })
		r.issuer.Down(true)
		r.v.Start()
		long := map[string]any{"exp": time.Now().Add(240 * time.Hour).Unix()}
		r.refused(r.token(long), sluice.NotReady, "")
		r.issuer.Down(false)
		time.Sleep(4 * retryFirst) // without a request's doing
		synctest.Wait()
		remembered := r.token(long)
		r.good(remembered)
		r.issuer.Down(true)
		time.Sleep(DefaultRefresh + 10*time.Minute)
		r.good(remembered)
		r.good(r.token(map[string]any{"sub": "bob"}))
		time.Sleep(2 * time.Hour)
		r.refused(remembered, sluice.NotReady, "")
		r.issuer.Down(false)
		time.Sleep(retryMost + time.Second)
		r.good(remembered)
	})
}

// An issuer that takes back all its keys revokes all their tokens.
func TestAllKeysTakenBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		remembered, fresh := r.token(map[string]any{"exp": time.Now().Add(time.Hour).Unix()}), r.token(map[string]any{"sub": "bob"})
		r.good(remembered)
		r.issuer.Drop("k1")
		time.Sleep(DefaultRefresh + time.Second)
		r.refused(remembered, sluice.Unauthenticated, "does not publish")
		r.refused(fresh, sluice.Unauthenticated, "does not publish")
	})
}

// An unknown key is final once the issuer has answered without it, and not while it is down.
func TestUnknownKeyIsFinal(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		time.Sleep(AskEach)
		other := jwttest.New(issuerURL)
		other.Add(t, "x1", "ES256")
		token := other.Sign(t, "x1", claimsOf(nil))
		r.issuer.Down(true)
		r.refused(token, sluice.NotReady, "")
		r.issuer.Down(false)
		time.Sleep(AskEach)
		for range 3 {
			r.refused(token, sluice.Unauthenticated, "does not publish")
		}
	})
}

// A request waits for an issuer that does not answer no longer than AskWait.
func TestIssuerHangs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *Spec) { s.Issuer = "http://hung.test" })
		r.net.Blackhole("hung.test:80")
		r.issuer.URL = "http://hung.test"
		began := time.Now()
		r.refused(r.token(map[string]any{"iss": "http://hung.test"}), sluice.NotReady, "")
		if took := time.Since(began); took != AskWait {
			t.Errorf("it took %v", took)
		}
	})
}

// A changed mapping applies at once, to tokens that were verified before too, and keys
// that are fetched as before are kept.
func TestUse(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		token := r.token(nil)
		r.good(token)
		asked := r.issuer.Asked()
		r.v.Use([]Spec{spec(func(s *Spec) { s.Claims.Tenant.Map = map[string]string{"acme": "globex"} })})
		if b := r.good(token); b.Tenant != "globex" {
			t.Errorf("got %+v", b)
		}
		if n := r.issuer.Asked() - asked; n != 0 {
			t.Errorf("%d fetches", n)
		}
		r.v.Use(nil)
		r.refused(token, sluice.Unauthenticated, "issuer that is not known")
	})
}

func TestParseKeys(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": `{}`,
		"no JSON": `<html>`,
		"null":    `{"keys":null}`,
		"a list":  `[]`,
	} {
		if set, err := parseKeys([]byte(text)); err == nil {
			t.Errorf("%s: %d keys", name, len(set.keys))
		}
	}
	for name, text := range map[string]string{
		"none":            `{"keys":[]}`,
		"symmetric":       `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}`,
		"for encryption":  `{"keys":[{"kty":"OKP","crv":"Ed25519","use":"enc","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		"short RSA":       `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("x", 170) + `"}]}`,
		"point elsewhere": `{"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]}`,
	} {
		if set, err := parseKeys([]byte(text)); err != nil || len(set.keys) != 0 {
			t.Errorf("%s: %v, %v, want a set of none", name, set, err)
		}
	}
	set, err := parseKeys([]byte(`{"keys":[{"kty":"new"},{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	if err != nil || len(set.keys) != 1 {
		t.Errorf("got %v, %v, want the one that is understood", set, err)
	}
}

// Documents of an issuer lead nowhere that the configuration has not allowed.
func TestAddresses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		answer := ""
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })}
		go server.Serve(r.net.Listen("odd.test:80"))
		defer server.Close()
		s := spec(func(s *Spec) { s.Issuer, s.AllowPrivate = "http://odd.test", false })
		for _, tc := range []struct {
			allow              bool
			document, complain string
		}{
			{false, "", "must be https"},
			{true, `{"issuer":"http://other.test","jwks_uri":"http://odd.test/keys"}`, `issuer "http://other.test"`},
			{true, `{"issuer":"http://odd.test","jwks_uri":"http://elsewhere.test/keys"}`, "must be https"},
			{true, `{"issuer":"http://odd.test","jwks_uri":"file:///etc/passwd"}`, "must be https"},
			{true, `{"issuer":"http://odd.test","jwks_uri":"https://169.254.169.254/"}`, "never allowed"},
			{true, `{"issuer":"http://odd.test"}`, "must be https"},
			{true, strings.Repeat("x", maxDocument+1), "too large"},
		} {
			s.AllowPrivate, answer = tc.allow, tc.document
			if _, err := s.fetch(t.Context(), r.v.o.Dialer); err == nil || !strings.Contains(err.Error(), tc.complain) {
				t.Errorf("%.80s: got %v, want …%s…", tc.document, err, tc.complain)
			}
		}
	})
}
