package jwt

import (
	"slices"
	"strings"
	"time"

	"sluice"
)

// Algorithms are those that tokens may be signed with: all are asymmetric.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// The defaults of a Spec.
const (
	DefaultLeeway   = 30 * time.Second
	DefaultRefresh  = 15 * time.Minute
	DefaultStaleMax = 24 * time.Hour
)

// DefaultAlgorithms are those of an issuer that lists none.
var DefaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// Spec is an issuer whose tokens are taken.
type Spec struct {
	Name       string   // here: in the ledger, the log and metrics
	Issuer     string   // as it stands in iss
	Audiences  []string // of which one must be in aud
	Algorithms []string // of Algorithms
	KeysURL    string   // of its JWK set; empty asks its discovery document
	// AllowPrivate lets the names of its addresses resolve to private ones.
	AllowPrivate bool

	Leeway   time.Duration // by which its clock may differ from ours
	Refresh  time.Duration // between two fetches of its keys
	StaleMax time.Duration // for which keys stay good while it does not answer

	Require []Require // of claims, all of which must hold
	Claims  Mapping
}

// Require is a claim that a token must have, with one of Values, or with any if there are
// none. A claim that is a list needs one of them among its items.
type Require struct {
	Claim  string
	Values []string
}

// Mapping says which claims tell of whom a token is. Tenant is needed.
type Mapping struct{ Tenant, Project, User, Class Rule }

// Rule makes a word from claims.
type Rule struct {
	From    Text              // literal text and claims
	Map     map[string]string // from what From says to the word; empty takes that as it is
	Default string            // where a claim is missing or Map has no word; empty has none
}

// given reports whether there is a rule.
func (r *Rule) given() bool { return len(r.From) > 0 || r.Default != "" }

// parts are those of a mapping.
var parts = [...]string{"tenant", "project", "user", "class"}

func (m *Mapping) rules() [len(parts)]*Rule {
	return [...]*Rule{&m.Tenant, &m.Project, &m.User, &m.Class}
}

// Text is what a word is made of: parts that stand as they are, and claims.
type Text []Part

// Part is literal text, or the path of a claim.
type Part struct {
	Literal string
	Claim   string // empty for literal text
}

// ParseText reads a text such as team-{department}, in which {PATH} is a claim. Braces
// have no other use.
func ParseText(s string) (Text, error) {
	var out Text
	for rest := s; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(out, Part{Literal: rest}), nil
		}
		if rest[open] == '}' {
			return nil, sluice.Invalid("", "%q has a } that closes nothing", s)
		}
		if open > 0 {
			out = append(out, Part{Literal: rest[:open]})
		}
		path, after, ok := strings.Cut(rest[open+1:], "}")
		if !ok || path == "" || strings.Contains(path, "{") {
			return nil, sluice.Invalid("", "%q has a { without the name of a claim and a }", s)
		}
		if len(out) > 0 && out[len(out)-1].Claim != "" {
			return nil, sluice.Invalid("", "%q has two claims with nothing between them: two tokens could mean one word", s)
		}
		out, rest = append(out, Part{Claim: path}), after
	}
	return out, nil
}

func (t Text) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.Claim != "" {
			b.WriteString("{" + p.Claim + "}")
		} else {
			b.WriteString(p.Literal)
		}
	}
	return b.String()
}

// equal reports whether tokens are verified and mapped alike.
func (s *Spec) equal(o *Spec) bool {
	if s.Name != o.Name || !s.sameKeys(o) || !slices.Equal(s.Audiences, o.Audiences) || !slices.Equal(s.Algorithms, o.Algorithms) ||
		s.Leeway != o.Leeway || s.StaleMax != o.StaleMax || len(s.Require) != len(o.Require) {
		return false
	}
	for i, r := range s.Require {
		if r.Claim != o.Require[i].Claim || !slices.Equal(r.Values, o.Require[i].Values) {
			return false
		}
	}
	theirs := o.Claims.rules()
	for i, r := range s.Claims.rules() {
		if !r.equal(theirs[i]) {
			return false
		}
	}
	return true
}

func (r *Rule) equal(o *Rule) bool {
	if r.Default != o.Default || !slices.Equal(r.From, o.From) || len(r.Map) != len(o.Map) {
		return false
	}
	for k, v := range r.Map {
		if w, ok := o.Map[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// sameKeys reports whether keys are fetched from the same place in the same way.
func (s *Spec) sameKeys(o *Spec) bool {
	return s.Issuer == o.Issuer && s.KeysURL == o.KeysURL && s.AllowPrivate == o.AllowPrivate && s.Refresh == o.Refresh
}
