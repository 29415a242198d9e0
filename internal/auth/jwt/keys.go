package jwt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// The bounds of what an issuer publishes.
const (
	maxKeys    = 32
	minRSABits = 2048
	maxRSABits = 8192
)

// keySet is what an issuer published at one moment. It is immutable.
type keySet struct {
	keys   []jose.JSONWebKey
	print  map[string]bool // fingerprints of keys
	unfit  []unfitKey      // in their order, at most maxKeys
	beyond int             // further keys, of either sort
}

// parseKeys reads a JWK set. Keys that are of no use here, such as symmetric ones and
// those for encryption, are told apart from those that are. A set without any is one: its
// issuer has taken back what it had.
func parseKeys(text []byte) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("is no JWK set")
	}
	out := &keySet{print: make(map[string]bool)}
	for _, raw := range set.Keys {
		k, unfit := parseKey(raw)
		switch {
		case unfit.why == "" && len(out.keys) < maxKeys:
			out.keys = append(out.keys, k)
			out.print[fingerprint(&k)] = true
		case unfit.why != "" && len(out.unfit) < maxKeys:
			out.unfit = append(out.unfit, unfit)
		default:
			out.beyond++
		}
	}
	return out, nil
}

// fingerprint tells keys apart: by their numbers, and what they are called.
func fingerprint(k *jose.JSONWebKey) string {
	sum, err := k.Thumbprint(crypto.SHA256)
	if err != nil {
		return ""
	}
	return k.KeyID + "\x00" + k.Algorithm + "\x00" + string(sum)
}

// fits reports whether a key may verify a token that names it, or none, and an algorithm.
func fits(k *jose.JSONWebKey, kid, alg string) bool {
	if kid != "" && k.KeyID != kid || k.Algorithm != "" && k.Algorithm != alg {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return map[string]int{"ES256": 256, "ES384": 384, "ES512": 521}[alg] == key.Curve.Params().BitSize
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

// errNoKey says that a set has no key that the token could be signed with.
var errNoKey = errors.New("no such key")

// errSignature says that a token was not signed with the key that it names.
var errSignature = errors.New("the signature does not match")

// verify checks a token's signature and says with which key it was made. The header has
// been checked.
func (s *keySet) verify(ctx context.Context, token string, h *header) (payload []byte, print string, err error) {
	var candidates []jose.JSONWebKey
	for i := range s.keys {
		if fits(&s.keys[i], h.KeyID, h.Algorithm) {
			candidates = append(candidates, s.keys[i])
		}
	}
	if len(candidates) == 0 {
		return nil, "", errNoKey
	}
	if _, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(h.Algorithm)}); err != nil {
		return nil, "", errSignature
	}
	for i := range candidates {
		// The signature alone: claims are read here, which names one that is not as it must be.
		key := &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{candidates[i].Key}}
		if payload, err := key.VerifySignature(ctx, token); err == nil {
			return payload, fingerprint(&candidates[i]), nil
		}
	}
	if h.KeyID == "" {
		return nil, "", errNoKey // it may be one that is not known yet
	}
	return nil, "", errSignature
}

// header is what of a token's header is looked at.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
	Critical  any    `json:"crit"`
}

// bearer reports whether a type is that of tokens that let in. Others, such as
// logout+jwt, are messages that an issuer signs with the same keys.
func (h *header) bearer() bool {
	t := strings.TrimPrefix(strings.ToLower(h.Type), "application/")
	return t == "" || t == "jwt" || t == "at+jwt"
}

// MaxToken bounds a token, in bytes.
const MaxToken = 16 << 10

// Is reports whether a credential has the shape of a token: three parts between dots. No
// key that was minted here has a dot.
func Is(credential string) bool { return strings.Count(credential, ".") == 2 }

// errShape says that what looks like a token is none.
var errShape = errors.New("is not well formed")

// unverified is what of a payload is looked at before its signature is.
type unverified struct {
	Issuer string          `json:"iss"`
	Issued json.RawMessage `json:"iat"`
}

// issued is when the token was, as it says; zero if it does not.
func (u *unverified) issued() time.Time {
	f, err := strconv.ParseFloat(string(u.Issued), 64)
	if err != nil || math.Abs(f) > maxTime {
		return time.Time{}
	}
	return time.Unix(int64(math.Ceil(f)), 0)
}

// open reads a token's header, and its payload, which nobody has verified yet.
func open(token string) (h header, u unverified, err error) {
	head, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")
	if _, err := base64.RawURLEncoding.Strict().DecodeString(signature); err != nil {
		return h, u, errShape // several texts would be one token
	}
	if err := decodePart(head, &h); err != nil || h.Critical != nil {
		return h, u, errShape
	}
	if err := decodePart(body, &u); err != nil {
		return h, u, errShape
	}
	return h, u, nil
}

func decodePart(part string, v any) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}
