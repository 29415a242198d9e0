package auth

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"strings"

	"sluice"
)

// The parts of a credential, in bytes.
const (
	KeyPrefix   = "slk" // of a tenant's key
	AdminPrefix = "sla" // of an operator's token

	MaxEnv    = 12
	idLen     = 10
	secretLen = 43
	crcLen    = 6

	minKey   = len(KeyPrefix) + 1 + 1 + 1 + idLen + 1 + secretLen + 1 + crcLen
	maxKey   = minKey + MaxEnv - 1
	adminLen = len(AdminPrefix) + 1 + idLen + 1 + secretLen + 1 + crcLen
)

const (
	base62    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	crockford = "0123456789abcdefghjkmnpqrstvwxyz"
)

// KeyRef is a well-formed credential taken apart. It cannot print its secret.
type KeyRef struct {
	Env    string
	ID     sluice.KeyID
	secret string // 43 base62 characters
}

func (r KeyRef) String() string       { return KeyPrefix + "_" + r.Env + "_" + string(r.ID) + "_***" }
func (r KeyRef) GoString() string     { return r.String() }
func (r KeyRef) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText writes what String prints.
func (r KeyRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Hash hashes the secret.
func (r KeyRef) Hash(h Hasher) Hash { return h.Sum(r.secret) }

// Minted is a new credential: the only moment at which its text exists.
type Minted struct {
	Ref KeyRef
	Key sluice.Secret // the whole credential; Reveal it once, to whom it is for
}

// Mint makes a key for an environment label of 1 to MaxEnv of [a-z0-9].
func Mint(env string) (Minted, error) {
	if !validEnv(env) {
		return Minted{}, sluice.Invalid("env", "%q is not an environment label: use 1 to %d of a-z and 0-9", env, MaxEnv)
	}
	return mint(KeyPrefix+"_"+env, randomText(crockford, idLen), env), nil
}

// MintSecret makes another secret for a key that exists, for Key.Rotate.
func MintSecret(env string, id sluice.KeyID) (Minted, error) {
	if !validEnv(env) || !validID(string(id)) {
		return Minted{}, sluice.Invalid("key", "%q in %q was not minted here: create a new key", id, env)
	}
	return mint(KeyPrefix+"_"+env, string(id), env), nil
}

// MintAdmin makes an operator's token.
func MintAdmin() Minted { return mint(AdminPrefix, randomText(crockford, idLen), "") }

func mint(head, id, env string) Minted {
	secret := randomText(base62, secretLen)
	body := head + "_" + id + "_" + secret
	var crc [crcLen]byte
	return Minted{
		Ref: KeyRef{Env: env, ID: sluice.KeyID(id), secret: secret},
		Key: sluice.NewSecret(body + "_" + string(checksum(body, &crc))),
	}
}

// Parse takes a key apart after checking its shape, alphabet and CRC. It
// touches nothing outside of the text, allocates nothing unless it fails, and
// the error does not echo the text.
func Parse(credential string) (KeyRef, error) {
	rest, ok := strings.CutPrefix(credential, KeyPrefix+"_")
	if !ok {
		return KeyRef{}, malformed("is not a Sluice key: one starts with slk_")
	}
	if len(credential) < minKey || len(credential) > maxKey {
		return KeyRef{}, malformed("is incomplete or too long: copy the whole key, slk_<env>_<id>_<secret>_<check>")
	}
	env, rest, _ := strings.Cut(rest, "_")
	if !validEnv(env) {
		return KeyRef{}, malformed("has a damaged environment part: copy the key again")
	}
	id, secret, ok := split(credential, rest)
	if !ok {
		return KeyRef{}, malformed("has a typing error (its checksum does not match): copy the key again")
	}
	return KeyRef{Env: env, ID: sluice.KeyID(id), secret: secret}, nil
}

// parseAdmin is Parse for operators' tokens.
func parseAdmin(token string) (id, secret string, err error) {
	rest, ok := strings.CutPrefix(token, AdminPrefix+"_")
	if !ok || len(token) != adminLen {
		return "", "", malformed("is not an admin token: one starts with sla_ and is copied whole")
	}
	id, secret, ok = split(token, rest)
	if !ok {
		return "", "", malformed("has a typing error (its checksum does not match): copy the token again")
	}
	return id, secret, nil
}

// split takes <id>_<secret>_<crc> apart, the end of whole.
func split(whole, rest string) (id, secret string, ok bool) {
	if len(rest) != idLen+1+secretLen+1+crcLen || rest[idLen] != '_' || rest[idLen+1+secretLen] != '_' {
		return "", "", false
	}
	id, secret = rest[:idLen], rest[idLen+1:idLen+1+secretLen]
	if !validID(id) {
		return "", "", false
	}
	for i := range len(secret) {
		if !alphanumeric(secret[i]) {
			return "", "", false
		}
	}
	var crc [crcLen]byte
	checksum(whole[:len(whole)-crcLen-1], &crc)
	return id, secret, string(crc[:]) == rest[len(rest)-crcLen:]
}

func validEnv(s string) bool {
	if s == "" || len(s) > MaxEnv {
		return false
	}
	for i := range len(s) {
		if !('a' <= s[i] && s[i] <= 'z' || '0' <= s[i] && s[i] <= '9') {
			return false
		}
	}
	return true
}

func validID(s string) bool {
	if len(s) != idLen {
		return false
	}
	for i := range len(s) {
		if strings.IndexByte(crockford, s[i]) < 0 {
			return false
		}
	}
	return true
}

func alphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// checksum writes the CRC-32 of s in base62, most significant digit first. It
// goes through the table by itself: crc32.ChecksumIEEE would have s copied to
// the heap.
func checksum(s string, out *[crcLen]byte) []byte {
	v := ^uint32(0)
	for i := range len(s) {
		v = crc32.IEEETable[byte(v)^s[i]] ^ v>>8
	}
	v = ^v
	for i := range out {
		out[crcLen-1-i] = base62[v%62]
		v /= 62
	}
	return out[:]
}

// randomText draws n characters, each equally likely.
func randomText(alphabet string, n int) string {
	out := make([]byte, 0, n)
	limit := byte(256 - 256%len(alphabet)) // above it the modulus would favour the first characters; 0 means no limit
	var pool [64]byte
	for len(out) < n {
		rand.Read(pool[:]) // never fails: it ends the process instead
		for _, b := range pool {
			if len(out) < n && (limit == 0 || b < limit) {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out)
}

func malformed(what string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated, Msg: "the API key " + what}
}

// Prefer says which header carries the credential when a request has both.
type Prefer uint8

// The preferences: that of the client's own dialect wins.
const (
	PreferAuthorization Prefer = iota // OpenAI paths
	PreferAPIKey                      // Anthropic paths
	PreferGoogleKey                   // Gemini paths, which take x-goog-api-key too
)

// Credential takes the credential from Authorization: Bearer or x-api-key, and on
// Gemini paths from x-goog-api-key. If a request has several, prefer decides and the others are not looked at. An
// Authorization of another scheme (a proxy's Basic) counts as absent. A header
// that stands twice is refused, since two parts of a system could read it
// differently.
func Credential(h http.Header, prefer Prefer) (string, error) {
	authorization, apiKey, googleKey := h["Authorization"], h["X-Api-Key"], h["X-Goog-Api-Key"]
	if len(authorization) > 1 || len(apiKey) > 1 || prefer == PreferGoogleKey && len(googleKey) > 1 {
		return "", &sluice.Error{
			Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated,
			Msg: "the credential header stands more than once", Hint: "send it once",
		}
	}
	var bearer, key string
	if len(authorization) == 1 {
		bearer = bearerToken(authorization[0])
	}
	if len(apiKey) == 1 {
		key = strings.TrimSpace(apiKey[0])
	}
	first, second := bearer, key
	switch {
	case prefer == PreferAPIKey:
		first, second = key, bearer
	case prefer == PreferGoogleKey && len(googleKey) == 1:
		first, second = cmp.Or(strings.TrimSpace(googleKey[0]), bearer), key
	}
	switch {
	case first != "":
		return first, nil
	case second != "":
		return second, nil
	}
	return "", &sluice.Error{
		Kind: sluice.KindUnauthenticated, Reason: sluice.Unauthenticated,
		Msg: "the request has no API key", Hint: hints[prefer],
	}
}

// hints say how a credential is sent.
var hints = [...]string{
	PreferAuthorization: "send it as Authorization: Bearer slk_… or x-api-key: slk_…",
	PreferAPIKey:        "send it as Authorization: Bearer slk_… or x-api-key: slk_…",
	PreferGoogleKey:     "send it as x-goog-api-key: slk_…",
}

func bearerToken(v string) string {
	scheme, token, ok := strings.Cut(strings.TrimSpace(v), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// guard: a KeyRef prints without its secret in every verb.
var (
	_ fmt.Stringer   = KeyRef{}
	_ fmt.GoStringer = KeyRef{}
	_ slog.LogValuer = KeyRef{}
)
