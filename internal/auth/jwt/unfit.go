package jwt

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// unfitKey is a key that an issuer publishes and that verifies nothing here.
type unfitKey struct {
	id  string
	why string // said of the key: "is for …"
}

// published is what of a key in a set tells why it is of no use.
type published struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

// parseKey reads one key of a set, or says why it is of no use.
func parseKey(raw []byte) (k jose.JSONWebKey, unfit unfitKey) {
	var p published
	if json.Unmarshal(raw, &p) != nil {
		return k, unfitKey{why: "is no JSON object as keys are"}
	}
	unfit = unfitKey{id: short(p.KeyID), why: p.unusable()}
	if unfit.why != "" {
		return k, unfit
	}
	if json.Unmarshal(raw, &k) != nil || !k.Valid() {
		unfit.why = "has numbers that are no " + p.Type + " key"
		if p.Type == "EC" {
			unfit.why = "has x and y that are no point of the curve " + p.Curve
		}
		return k, unfit
	}
	unfit.why = unusable(&k)
	return k, unfit
}

// unusable says why a key is not taken by what it is said to be; empty if that is well.
func (p *published) unusable() string {
	curves := map[string][]string{"EC": {"P-256", "P-384", "P-521"}, "OKP": {"Ed25519"}}[p.Type]
	switch {
	case p.Type == "oct":
		return "is symmetric (kty oct): whoever has it could sign"
	case p.Type != "RSA" && curves == nil:
		return fmt.Sprintf("has kty %q, which is not RSA, EC or OKP", short(p.Type))
	case curves != nil && !slices.Contains(curves, p.Curve):
		return fmt.Sprintf("has crv %q, which is not %s", short(p.Curve), strings.Join(curves, ", "))
	case p.Use != "" && p.Use != "sig":
		return fmt.Sprintf("has use %q, which is not sig", short(p.Use))
	case p.Algorithm != "" && !slices.Contains(Algorithms, p.Algorithm):
		return fmt.Sprintf("has alg %q, which is not %s", short(p.Algorithm), strings.Join(Algorithms, ", "))
	}
	return ""
}

// unusable says why a key that is well formed is not taken; empty if it is.
func unusable(k *jose.JSONWebKey) string {
	if !k.IsPublic() {
		return "is private: whoever reads it could sign"
	}
	if r, ok := k.Key.(*rsa.PublicKey); ok && (r.N.BitLen() < minRSABits || r.N.BitLen() > maxRSABits) {
		return fmt.Sprintf("has %d bits, and an RSA key has %d to %d", r.N.BitLen(), minRSABits, maxRSABits)
	}
	if k.Algorithm != "" && !fits(k, "", k.Algorithm) {
		return fmt.Sprintf("has alg %q, which keys of its kind (%s) do not sign with", k.Algorithm, kindOf(k))
	}
	return ""
}

// kindOf is what a key is, such as EC P-256.
func kindOf(k *jose.JSONWebKey) string {
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return "RSA " + strconv.Itoa(key.N.BitLen())
	case *ecdsa.PublicKey:
		return "EC " + key.Curve.Params().Name
	}
	return "OKP Ed25519"
}

// short is what an issuer wrote, as far as it is shown.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// whyUnfit says why the key of an id is of no use; empty where there is none such.
func (s *keySet) whyUnfit(id string) string {
	if id == "" {
		return ""
	}
	for _, u := range s.unfit {
		if u.id == short(id) {
			return u.why
		}
	}
	return ""
}

// sayUnfit tells the log of keys that are of no use, where they are not those that there
// were before.
func (v *Verifier) sayUnfit(issuer string, before, now *keySet) {
	if now == nil || before != nil && slices.Equal(before.unfit, now.unfit) && before.beyond == now.beyond {
		return
	}
	for _, u := range now.unfit {
		v.o.Log.Info("an issuer publishes a key that no token is verified with", slog.String("issuer", issuer), slog.String("key_id", u.id), slog.String("why", "it "+u.why))
	}
	if now.beyond > 0 {
		v.o.Log.Warn("an issuer publishes more keys than are looked at", slog.String("issuer", issuer), slog.Int("bound", maxKeys), slog.Int("left_out", now.beyond))
	}
}
