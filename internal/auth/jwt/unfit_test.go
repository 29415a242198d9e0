package jwt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"sluice"
	"sluice/internal/auth/jwt/jwttest"
	"sluice/internal/egress"
	"sluice/internal/egress/egresstest"
	"sluice/test/bubble"
)

// Of two keys that an issuer publishes under one id each verifies what it signed, in
// whatever order they stand, and one that is of no use beside them takes nothing away.
func TestKeysOfOneID(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		other := jwttest.New(issuerURL)
		other.Add(t, "k1", "ES256")
		third := jwttest.New(issuerURL)
		third.Add(t, "k1", "EdDSA")
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{*other.Key("k1"), *r.issuer.Key("k1"), *third.Key("k1"), *other.Key("k1")}}
		for i := range set.Keys {
			set.Keys[i] = set.Keys[i].Public()
		}
		unfit := set.Keys[0]
		unfit.Use = "enc"
		set.Keys = append([]jose.JSONWebKey{unfit}, set.Keys...)
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		r.publish(text)
		for name, issuer := range map[string]*jwttest.Issuer{"first": other, "second": r.issuer, "third": third} {
			if _, err := r.bearer(issuer.Sign(t, "k1", claimsOf(map[string]any{"sub": name}))); err != nil {
				t.Errorf("the %s key's token is refused: %v", name, err)
			}
		}
		stranger := jwttest.New(issuerURL)
		stranger.Add(t, "k1", "ES256")
		r.refused(stranger.Sign(t, "k1", claimsOf(nil)), sluice.Unauthenticated, "signature does not match")
	})
}

// publish has the rig's Verifier know a set that the issuer itself would not write.
func (r *rig) publish(text []byte) {
	r.t.Helper()
	set, err := parseKeys(text)
	if err != nil {
		r.t.Fatal(err)
	}
	s := (*r.v.sources.Load())[issuerURL]
	f, _, _ := s.begin(time.Now(), 0)
	s.land(f, set, nil)
}

// What a key is of no use for is said of each.
func TestUnfitKeys(t *testing.T) {
	const ed = `"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"`
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := json.Marshal(jose.JSONWebKey{Key: private, KeyID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	long := `{"kty":"new","kid":"` + strings.Repeat("a", 500) + `","use":"` + strings.Repeat("b", 500) + `"}`
	for key, want := range map[string]string{
		`{"kty":"oct","k":"c2VjcmV0","kid":"a"}`:                                    "is symmetric",
		`{"kty":"new","kid":"a"}`:                                                   `has kty "new"`,
		`{"kty":"EC","crv":"secp256k1","kid":"a","x":"AAAA","y":"AAAA"}`:            `has crv "secp256k1", which is not P-256, P-384, P-521`,
		`{"kty":"EC","crv":"P-256","kid":"a","x":"AAAA","y":"AAAA"}`:                "no point of the curve P-256",
		`{"kty":"RSA","kid":"a","e":"AQAB","n":"` + strings.Repeat("x", 170) + `"}`: "bits, and an RSA key has 2048 to 8192",
		`{"kty":"RSA","kid":"a","e":"AQAB"}`:                                        "no RSA key",
		`{` + ed + `,"kid":"a","use":"enc"}`:                                        `has use "enc"`,
		`{` + ed + `,"kid":"a","alg":"HS256"}`:                                      `has alg "HS256"`,
		`{` + ed + `,"kid":"a","alg":"ES256"}`:                                      "keys of its kind (OKP Ed25519) do not sign with",
		string(secret):                                                              "is private",
		long:                                                                        `has kty "new"`,
	} {
		set, err := parseKeys([]byte(`{"keys":[` + key + `,{` + ed + `,"kid":"good"}]}`))
		if err != nil || len(set.keys) != 1 || len(set.unfit) != 1 {
			t.Errorf("%.60s: %v, %+v", key, err, set)
			continue
		}
		if u := set.unfit[0]; !strings.Contains(u.why, want) || u.id[0] != 'a' || len(u.id)+len(u.why) > 300 {
			t.Errorf("%.60s: got %+v, want %q", key, u, want)
		}
	}
	var many []string
	for i := range 2 * maxKeys {
		many = append(many, fmt.Sprintf(`{"kty":"new","kid":"n%d"}`, i))
	}
	set, err := parseKeys([]byte(`{"keys":[` + strings.Join(many, ",") + `,{` + ed + `,"kid":"good"}]}`))
	if err != nil || len(set.keys) != 1 || len(set.unfit) != maxKeys || set.beyond != maxKeys {
		t.Errorf("%v: %d keys, %d unfit, %d beyond: those of no use took the place of the one that is", err, len(set.keys), len(set.unfit), set.beyond)
	}
}

// A token whose key is published and of no use is told why, as is who asks about it, and
// the log is once for each set.
func TestUnfitKeyIsNamed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		signer := jwttest.New(issuerURL)
		signer.Add(t, "k9", "ES256")
		unfit := signer.Key("k9").Public()
		unfit.Use = "enc"
		set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{unfit}})
		if err != nil {
			t.Fatal(err)
		}
		var network egresstest.Net
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })}
		go server.Serve(network.Listen("login.test:80"))
		var log bytes.Buffer
		v := New(Options{Dialer: egress.New(egress.Options{Dial: network.Dial}), Log: slog.New(slog.NewTextHandler(&log, nil))})
		t.Cleanup(func() { v.Close(); server.Close(); synctest.Wait() })
		v.Use([]Spec{spec(func(s *Spec) { s.KeysURL = issuerURL + "/keys" })})
		v.Start()
		synctest.Wait()
		time.Sleep(2*DefaultRefresh + AskEach)
		synctest.Wait()
		token := signer.Sign(t, "k9", claimsOf(nil))
		_, err = v.Bearer(token, time.Now())
		if e := sluice.AsError(err); e.Reason != sluice.Unauthenticated || !strings.Contains(e.Error(), `publishes and that is not taken here: it has use "enc"`) {
			t.Errorf("got %v", err)
		}
		e := v.Explain(token, time.Now())
		if len(e.Keys) != 1 || e.Keys[0].KeyID != "k9" || !strings.Contains(e.Keys[0].Unusable, "enc") {
			t.Errorf("explained %+v", e)
		}
		if n := strings.Count(log.String(), "key_id=k9"); n != 1 || !strings.Contains(log.String(), "which is not sig") {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
	})
}
