package jwt

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/auth/jwt/jwttest"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/test/bubble"
)

const issuerURL = "http://login.test"

// rig is a Verifier of one issuer, in a bubble.
type rig struct {
	t      *testing.T
	net    *egresstest.Net
	issuer *jwttest.Issuer
	v      *Verifier

	mu   sync.Mutex
	told map[Result]int // guarded by mu
}

func newRig(t *testing.T, change func(*Spec)) *rig {
	r := &rig{t: t, net: &egresstest.Net{}, issuer: jwttest.New(issuerURL), told: map[Result]int{}}
	r.issuer.Add(t, "k1", "ES256")
	server := &http.Server{Handler: r.issuer}
	go server.Serve(r.net.Listen("login.test:80"))
	t.Cleanup(func() { server.Close(); synctest.Wait() })
	r.v = New(Options{Dialer: egress.New(egress.Options{Dial: r.net.Dial}), Told: func(_ string, what Result) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told[what]++
	}})
	r.v.Use([]Spec{spec(change)})
	t.Cleanup(r.v.Close)
	return r
}

func text(s string) Text {
	out, err := ParseText(s)
	if err != nil {
		panic(err)
	}
	return out
}

func spec(change func(*Spec)) Spec {
	s := Spec{
		Name: "corp", Issuer: issuerURL, AllowPrivate: true, Audiences: []string{"sluice"}, Algorithms: DefaultAlgorithms,
		Leeway: DefaultLeeway, Refresh: DefaultRefresh, StaleMax: DefaultStaleMax, Claims: Mapping{Tenant: Rule{From: text("{org}")}},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// claimsOf are good claims, with changes; nil takes one away.
func claimsOf(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": issuerURL, "aud": "sluice", "sub": "alice", "org": "acme",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (r *rig) token(change map[string]any) string { return r.issuer.Sign(r.t, "k1", claimsOf(change)) }

func (r *rig) bearer(token string) (auth.Bearer, *sluice.Error) {
	b, err := r.v.Bearer(token, time.Now())
	if err != nil {
		return b, sluice.AsError(err)
	}
	return b, nil
}

func (r *rig) good(token string) auth.Bearer {
	r.t.Helper()
	b, err := r.bearer(token)
	if err != nil {
		r.t.Fatalf("refused: %v", err)
	}
	return b
}

func (r *rig) refused(token string, want sluice.Reason, says string) *sluice.Error {
	r.t.Helper()
	_, err := r.bearer(token)
	if err == nil {
		r.t.Fatalf("admitted, want %v", want)
	}
	if err.Reason != want || !strings.Contains(err.Error(), says) {
		r.t.Errorf("got %v: %v, want %v: …%s…", err.Reason, err, want, says)
	}
	if strings.Contains(err.Error(), token) {
		r.t.Errorf("%q shows the token", err.Error())
	}
	return err
}

// Each kind of key verifies what it signed.
func TestAlgorithms(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *Spec) { s.Algorithms = Algorithms })
		for _, alg := range Algorithms {
			r.issuer.Add(t, "of-"+alg, alg)
		}
		r.v.Start()
		synctest.Wait()
		for _, alg := range Algorithms {
			b := r.good(r.issuer.Sign(t, "of-"+alg, claimsOf(map[string]any{"sub": alg})))
			if want := (auth.Bearer{Key: sluice.KeyID("jwt:corp:" + alg), Tenant: "acme"}); b != want {
				t.Errorf("got %+v, want %+v", b, want)
			}
		}
	})
}

// Every check that fails is named; nothing is before the signature was verified.
func TestRefusals(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *Spec) {
			s.Require = []Require{{Claim: "groups", Values: []string{"llm", "ops"}}, {Claim: "email"}}
		})
		r.v.Start()
		base := map[string]any{"groups": []string{"x", "ops"}, "email": "a@acme.test"}
		with := func(change map[string]any) string {
			c := maps.Clone(base)
			maps.Copy(c, change)
			return r.token(c)
		}
		now := time.Now()
		r.good(with(nil))
		for _, tc := range []struct {
			name   string
			change map[string]any
			want   sluice.Reason
			says   string
		}{
			{"expired", map[string]any{"exp": now.Add(-time.Minute).Unix()}, sluice.KeyExpired, "expired at"},
			{"no exp", map[string]any{"exp": nil}, sluice.Unauthenticated, "no exp"},
			{"exp that is a text", map[string]any{"exp": "tomorrow"}, sluice.Unauthenticated, "no exp"},
			{"exp beyond time", map[string]any{"exp": 1e18}, sluice.Unauthenticated, "no exp"},
			{"sub that is a number", map[string]any{"sub": 5}, sluice.Unauthenticated, "no sub"},
			{"nbf that is a text", map[string]any{"nbf": "x"}, sluice.Unauthenticated, "nbf is no time"},
			{"iat that is a text", map[string]any{"iat": "x"}, sluice.Unauthenticated, "iat is no time"},
			{"exp that is null", map[string]any{"exp": json.RawMessage("null")}, sluice.Unauthenticated, "exp"},
			{"aud that is an object", map[string]any{"aud": map[string]any{"sluice": 1}}, sluice.Unauthenticated, "aud is neither"},
			{"aud with a number", map[string]any{"aud": []any{1, "sluice"}}, sluice.Unauthenticated, "aud is neither"},
			{"nbf", map[string]any{"nbf": now.Add(time.Hour).Unix()}, sluice.Unauthenticated, "(nbf)"},
			{"iat", map[string]any{"iat": now.Add(time.Hour).Unix()}, sluice.Unauthenticated, "(iat)"},
			{"audience", map[string]any{"aud": []string{"other", "sluice-2"}}, sluice.Unauthenticated, "audience"},
			{"no audience", map[string]any{"aud": nil}, sluice.Unauthenticated, "audience"},
			{"issuer", map[string]any{"iss": "http://evil.test"}, sluice.Unauthenticated, "issuer that is not known"},
			{"no subject", map[string]any{"sub": nil}, sluice.Unauthenticated, "no sub"},
			{"group", map[string]any{"groups": []string{"x"}}, sluice.PermissionDenied, "claim groups"},
			{"no email", map[string]any{"email": nil}, sluice.PermissionDenied, "claim email"},
			{"no tenant", map[string]any{"org": nil}, sluice.PermissionDenied, "no tenant"},
			{"two tenants", map[string]any{"org": []string{"acme", "globex"}}, sluice.PermissionDenied, "two things of its tenant"},
		} {
			t.Log(tc.name)
			r.refused(with(tc.change), tc.want, tc.says)
		}
	})
}

// What no issuer has signed is not taken, however it is dressed up.
func TestForgery(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, func(s *Spec) { s.Algorithms = append([]string{"HS256", "none"}, Algorithms...) })
		r.issuer.Add(t, "rsa", "RS256")
		r.v.Start()
		good := r.token(nil)
		r.good(good)
		part := func(v any) string {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return base64.RawURLEncoding.EncodeToString(raw)
		}
		body := part(claimsOf(map[string]any{"sub": "mallory"}))
		pub, err := x509.MarshalPKIXPublicKey(r.issuer.Key("rsa").Public().Key)
		if err != nil {
			t.Fatal(err)
		}
		hs := part(map[string]string{"alg": "HS256", "kid": "rsa"}) + "." + body
		mac := hmac.New(sha256.New, pub)
		mac.Write([]byte(hs))
		head, rest, _ := strings.Cut(good, ".")
		_, signature, _ := strings.Cut(rest, ".")
		other := jwttest.New(issuerURL)
		other.Add(t, "k1", "ES256")
		jwk := other.Key("k1").Public()
		own, err := json.Marshal(&jwk)
		if err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]string{
			"none":                     part(map[string]string{"alg": "none"}) + "." + body + ".",
			"none with another case":   part(map[string]string{"alg": "nOnE"}) + "." + body + ".",
			"HMAC with the public key": hs + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)),
			"another payload":          head + "." + body + "." + signature,
			"no signature":             head + "." + rest[:strings.IndexByte(rest, '.')] + ".",
			"another issuer's key":     other.Sign(t, "k1", claimsOf(nil)),
			"a key of its own":         part(map[string]any{"alg": "ES256", "jwk": json.RawMessage(own)}) + "." + body + "." + signature,
			"RSA key, ES algorithm":    part(map[string]string{"alg": "ES256", "kid": "rsa"}) + "." + body + "." + signature,
			"critical extension":       part(map[string]any{"alg": "ES256", "kid": "k1", "crit": []string{"exp"}}) + "." + body + "." + signature,
			"JSON form":                `{"payload":"` + body + `.","signatures":[]}.`,
			"nothing":                  "..",
			"no base64":                "a b.c.d",
		} {
			if b, err := r.bearer(token); err == nil {
				t.Errorf("%s: admitted as %+v", name, b)
			} else if strings.Contains(err.Error(), "mallory") {
				t.Errorf("%s: %q tells what nobody has verified", name, err.Error())
			}
		}
		// A name that stands twice, from the issuer itself.
		k := r.issuer.Key("k1")
		twice := fmt.Sprintf(`{"iss":%q,"aud":"sluice","sub":"a","org":"acme","org":"globex","exp":%d}`, issuerURL, time.Now().Add(time.Hour).Unix())
		r.refused(jwttest.SignBytes(t, k, []byte(twice)), sluice.Unauthenticated, "not well formed")
		r.refused(r.token(map[string]any{"pad": strings.Repeat("x", MaxToken)}), sluice.Unauthenticated, "bound is 16384")
	})
}

// The bounds of times are exact, with leeway on our side alone.
func TestSkew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		synctest.Wait()
		second := time.Now().Add(time.Hour).Truncate(time.Second)
		for _, tc := range []struct {
			claim string
			at    time.Time
			want  bool
		}{
			{"exp", second.Add(DefaultLeeway - 1), true},
			{"exp", second.Add(DefaultLeeway), false},
			{"nbf", second.Add(-DefaultLeeway), true},
			{"nbf", second.Add(-DefaultLeeway - 1), false},
			{"iat", second.Add(-DefaultLeeway), true},
			{"iat", second.Add(-DefaultLeeway - 1), false},
		} {
			c := map[string]any{tc.claim: second.Unix()}
			if tc.claim != "exp" {
				c["exp"] = second.Add(time.Hour).Unix()
			}
			token := r.token(c)
			for range 2 { // the second finds the token verified, if it was
				if _, err := r.v.Bearer(token, tc.at); (err == nil) != tc.want {
					t.Errorf("%s at %v: got %v, want admitted: %v", tc.claim, tc.at.Sub(second), err, tc.want)
				}
			}
		}
		// A token that was verified in time is not good beyond it.
		token := r.token(map[string]any{"exp": second.Unix()})
		if _, err := r.v.Bearer(token, second); err != nil {
			t.Error(err)
		}
		if _, err := r.v.Bearer(token, second.Add(DefaultLeeway)); err == nil {
			t.Error("an expired token was remembered as good")
		}
		half := r.token(map[string]any{"exp": float64(second.Unix()) + 0.5})
		if _, err := r.v.Bearer(half, second.Add(DefaultLeeway+400*time.Millisecond)); err != nil {
			t.Error(err)
		}
	})
}

// A token's signature is verified once, and what is remembered is the whole token.
func TestRemembered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.v.Start()
		token := r.token(nil)
		for range 3 {
			r.good(token)
		}
		if diff := cmp.Diff(map[Result]int{Verified: 1, Known: 2}, r.told); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		// Each change of one character is another token.
		for i := range len(token) {
			if token[i] == '.' {
				continue
			}
			other := []byte(token)
			other[i] = 'A'
			if other[i] == token[i] {
				other[i] = 'B'
			}
			if b, err := r.bearer(string(other)); err == nil {
				t.Fatalf("with another character at %d: admitted as %+v", i, b)
			}
		}
		before := testing.AllocsPerRun(100, func() { r.good(token) })
		if before > 1 {
			t.Errorf("a token that is known costs %v allocations", before)
		}
	})
}

// What an issuer signs that is no access or ID token lets nobody in.
func TestTypes(t *testing.T) {
	for typ, want := range map[string]bool{
		"": true, "JWT": true, "at+jwt": true, "application/AT+JWT": true,
		"logout+jwt": false, "secevent+jwt": false, "dpop+jwt": false, "x": false,
	} {
		if h := (header{Type: typ}); h.bearer() != want {
			t.Errorf("%q: got %v, want %v", typ, !want, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(10)
	for i := range 100 {
		m.keep(sumOf(fmt.Sprint(i)), &verified{})
		m.keep(sumOf(fmt.Sprint(i)), &verified{})
	}
	if len(m.of) != 10 || len(m.order) != 10 {
		t.Errorf("%d tokens are remembered, in %d places", len(m.of), len(m.order))
	}
	for i := range 10 {
		if s := sumOf(fmt.Sprint(90 + i)); m.find(&s) == nil {
			t.Errorf("%d is forgotten", 90+i)
		}
	}
}
