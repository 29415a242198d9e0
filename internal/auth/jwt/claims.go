package jwt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/auth"
)

// claims are the members of a token's payload.
type claims map[string]jsontext.Value

// maxDepth bounds the steps of a claim's path.
const maxDepth = 16

// parseClaims reads a payload. A name that stands twice is an error: two readers could
// take different ones.
func parseClaims(payload []byte) (claims, error) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("the payload is no object")
	}
	return c, nil
}

// find is the value at a path: a claim of that very name, such as
// https://example.com/tenant, or else steps between dots, such as realm_access.roles.
func (c claims) find(path string) (jsontext.Value, bool) {
	if v, ok := c[path]; ok {
		return v, true
	}
	at := c
	for range maxDepth {
		name, rest, more := strings.Cut(path, ".")
		v, ok := at[name]
		if !ok || !more {
			return v, ok
		}
		var next claims
		if v.Kind() != '{' || json.Unmarshal(v, &next) != nil {
			return nil, false
		}
		if v, ok := next[rest]; ok {
			return v, true
		}
		at, path = next, rest
	}
	return nil, false
}

// words are the texts of a value: of each item, where it is a list. Objects, lists in
// lists and null have none.
func words(v jsontext.Value) []string {
	if v.Kind() == '[' {
		var items []jsontext.Value
		if json.Unmarshal(v, &items) != nil {
			return nil
		}
		var out []string
		for _, i := range items {
			if w, ok := word(i); ok {
				out = append(out, w)
			}
		}
		return out
	}
	if w, ok := word(v); ok {
		return []string{w}
	}
	return nil
}

// texts reports whether a value is a text, a list of nothing else, or not there.
func texts(v jsontext.Value) bool {
	if len(v) == 0 || v.Kind() == '"' {
		return true
	}
	var items []jsontext.Value
	return v.Kind() == '[' && json.Unmarshal(v, &items) == nil && !slices.ContainsFunc(items, func(i jsontext.Value) bool { return i.Kind() != '"' })
}

// word is the text of a value that is a text, a number or a truth value.
func word(v jsontext.Value) (string, bool) {
	switch v.Kind() {
	case '"':
		var s string
		if json.Unmarshal(v, &s) != nil {
			return "", false
		}
		return s, true
	case '0', 't', 'f':
		return strings.TrimSpace(string(v)), true
	}
	return "", false
}

// holds reports whether a requirement is met.
func (r *Require) holds(c claims) bool {
	v, ok := c.find(r.Claim)
	if !ok || v.Kind() == 'n' {
		return false
	}
	if len(r.Values) == 0 {
		return true
	}
	return slices.ContainsFunc(words(v), func(w string) bool { return slices.Contains(r.Values, w) })
}

// maxTime bounds the times of tokens, in seconds: they end in the year 5138.
const maxTime = 1e11

// when reads a time, which is seconds and may have a fraction.
func (c claims) when(name string) (t time.Time, ok bool, err error) {
	v, ok := c[name]
	if !ok || v.Kind() == 'n' {
		return t, false, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(string(v)), 64)
	if v.Kind() != '0' || err != nil || math.Abs(f) > maxTime {
		return t, false, fmt.Errorf("%s is no time", name)
	}
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9)).UTC(), true, nil
}

// errAmbiguous says that a list of claims means two things.
var errAmbiguous = errors.New("says two things")

// apply is the word that a rule makes of claims: empty if there is none.
func (r *Rule) apply(c claims) (string, error) {
	if len(r.From) == 0 {
		return r.Default, nil
	}
	var found []string
	if len(r.From) == 1 && r.From[0].Claim != "" { // of a list, each item may mean something
		v, _ := c.find(r.From[0].Claim)
		found = words(v)
	} else {
		text, err := r.From.fill(c)
		if err != nil {
			return "", err
		}
		found = []string{text}
	}
	out := ""
	for _, w := range found {
		if len(r.Map) > 0 {
			w = r.Map[w]
		}
		if w == "" || w == out {
			continue
		}
		if out != "" {
			return "", errAmbiguous
		}
		out = w
	}
	if out == "" {
		return r.Default, nil
	}
	return out, nil
}

// fill puts claims into a text, which is empty if one is missing, empty or a list. A claim
// that holds the text behind it is refused: {org}-{team} would be one word for the org a-b
// and the team c, and for the org a and the team b-c.
func (t Text) fill(c claims) (string, error) {
	var b strings.Builder
	for i, p := range t {
		if p.Claim == "" {
			b.WriteString(p.Literal)
			continue
		}
		v, _ := c.find(p.Claim)
		w, ok := word(v)
		if !ok || w == "" {
			return "", nil
		}
		if i+1 < len(t) && strings.Index(w+t[i+1].Literal, t[i+1].Literal) != len(w) {
			return "", errAmbiguous
		}
		b.WriteString(w)
	}
	return b.String(), nil
}

// bearer maps claims. The error is a *sluice.Error.
func (s *Spec) bearer(c claims) (auth.Bearer, error) {
	var found [len(parts)]string
	for i, r := range s.Claims.rules() {
		if !r.given() {
			continue
		}
		w, err := r.apply(c)
		if err != nil {
			return auth.Bearer{}, denied("the token's claims say two things of its %s", "ask the gateway's operator to map them to one", parts[i])
		}
		found[i] = w
	}
	tenant, project, user, class := found[0], found[1], found[2], found[3]
	if tenant == "" {
		return auth.Bearer{}, denied("the token's claims name no tenant", "ask the gateway's operator which claims do")
	}
	subject, _ := word(c["sub"])
	if s.Claims.User.given() && user == "" {
		user = subject // never whom the request says: it could say another each time
	}
	b := auth.Bearer{Key: KeyOf(s.Name, subject), Tenant: sluice.TenantID(tenant), Project: sluice.ProjectID(project), User: userOf(user)}
	if class != "" {
		b.Class = new(sluice.Class)
		if err := b.Class.UnmarshalText([]byte(class)); err != nil {
			return auth.Bearer{}, denied("the token's claims name no class: write interactive, standard or batch", "ask the gateway's operator to map them")
		}
	}
	return b, nil
}

// maxSubject bounds a subject that stands in a key's id as it is.
const maxSubject = 64

const hashed = "sha256-"

// KeyOf is what stands in the ledger for a key: issuer and subject. No two subjects have
// the same, and no key that was minted here is one.
func KeyOf(issuer, subject string) sluice.KeyID {
	if len(subject) > maxSubject || subject == "" || strings.HasPrefix(subject, hashed) || strings.ContainsFunc(subject, unplain) {
		subject = hashOf(subject)
	}
	return sluice.KeyID("jwt:" + issuer + ":" + subject)
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hashed + hex.EncodeToString(sum[:])
}

func unplain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".@_|+-", r)
}

// userOf is a user label that fits.
func userOf(s string) sluice.UserID {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if len(s) > sluice.MaxLabel || strings.HasPrefix(s, hashed) || strings.ContainsFunc(s, control) {
		s = hashOf(s)
	}
	return sluice.UserID(s)
}

func denied(format, hint string, args ...any) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
