package jwttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer signs tokens and publishes its keys.
type Issuer struct {
	URL string // as it stands in iss

	mu    sync.Mutex
	keys  []jose.JSONWebKey // private; guarded by mu
	asked int               // for keys; guarded by mu
	down  bool              // guarded by mu
}

// New makes an issuer without keys.
func New(url string) *Issuer { return &Issuer{URL: url} }

// oneRSA is made once: it takes a second.
var oneRSA = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// Add makes a key for an algorithm and publishes it.
func (i *Issuer) Add(t testing.TB, kid, alg string) {
	t.Helper()
	var key crypto.PrivateKey
	var err error
	switch alg[:2] {
	case "RS", "PS":
		key = oneRSA()
	case "ES":
		curve := map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}[alg]
		key, err = ecdsa.GenerateKey(curve, rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: alg, Use: "sig"})
}

// Drop takes a key back.
func (i *Issuer) Drop(kid string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = slices.DeleteFunc(i.keys, func(k jose.JSONWebKey) bool { return k.KeyID == kid })
}

// Down makes the issuer answer 503, or answer again.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Asked is how often it was asked for its keys.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// Sign signs claims with a key of the issuer, published or not by now.
func (i *Issuer) Sign(t testing.TB, kid string, claims map[string]any) string {
	t.Helper()
	i.mu.Lock()
	at := slices.IndexFunc(i.keys, func(k jose.JSONWebKey) bool { return k.KeyID == kid })
	if at < 0 {
		i.mu.Unlock()
		t.Fatalf("the issuer has no key %q", kid)
	}
	key := i.keys[at]
	i.mu.Unlock()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return SignBytes(t, &key, payload)
}

// SignBytes signs a payload that need not be what a token's is.
func SignBytes(t testing.TB, key *jose.JSONWebKey, payload []byte) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Key is a key of the issuer.
func (i *Issuer) Key(kid string) *jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.keys {
		if k.KeyID == kid {
			return &k
		}
	}
	return nil
}

// ServeHTTP publishes the discovery document and the keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var answer any
	switch {
	case i.down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		answer = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}}
	case strings.HasSuffix(r.URL.Path, "/keys"):
		i.asked++
		set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}} // none is an empty list, not null
		for _, k := range i.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		answer = set
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // whoever has left need not have it
}
