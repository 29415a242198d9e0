package jwt

import (
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
)

// Explanation is what became of a token, and why, for whoever maps claims.
type Explanation struct {
	Algorithm string `json:"algorithm,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
	Issuer    string `json:"issuer,omitempty"` // as the token says
	Name      string `json:"name,omitempty"`   // of the issuer here; empty if it is not known

	Refusal string `json:"refusal,omitempty"` // why it is not admitted; empty if it is
	Hint    string `json:"hint,omitempty"`
	Reason  string `json:"reason,omitempty"`

	Claims []ClaimText `json:"claims,omitempty"` // those that count here, of a token whose signature is good
	Rules  []RuleText  `json:"rules,omitempty"`
	Keys   []KeyText   `json:"keys,omitempty"` // that the issuer publishes, where the token was signed with none of them

	Bearer auth.Bearer `json:"-"` // of a token that is admitted
}

// ClaimText is a claim that a token has, or does not have.
type ClaimText struct {
	Claim string `json:"claim"`
	Value string `json:"value"`
}

// KeyText is a key that an issuer publishes.
type KeyText struct {
	KeyID    string `json:"key_id"`
	Kind     string `json:"kind,omitempty"`     // such as EC P-256, with the algorithm that it is for if it names one
	Unusable string `json:"unusable,omitempty"` // why no token is verified with it: "is for …"
}

// RuleText is what one rule of a mapping made of a token.
type RuleText struct {
	Part string `json:"part"`
	From string `json:"from"`
	Word string `json:"word"` // empty if none
}

// maxShown bounds a claim that is shown.
const maxShown = 200

// Explain verifies a token as Bearer does, once the keys have been fetched, and tells
// how it goes.
func (v *Verifier) Explain(token string, now time.Time) Explanation {
	var e Explanation
	h, claimed, err := open(token)
	if err == nil {
		e.Algorithm, e.KeyID, e.Issuer = h.Algorithm, h.KeyID, claimed.Issuer
	}
	s := (*v.sources.Load())[claimed.Issuer]
	if s != nil {
		e.Name = s.spec.Name
	}
	if e.Bearer, err = v.Bearer(token, now); err != nil {
		refusal := sluice.AsError(err)
		e.Refusal, e.Hint, e.Reason = refusal.Msg, refusal.Hint, refusal.Reason.String()
	}
	if s == nil {
		return e
	}
	set, good := s.current(now)
	if !good {
		return e
	}
	payload, _, err := set.verify(v.ctx, token, &h)
	if err != nil {
		e.Keys = set.texts()
		return e
	}
	if c, err := parseClaims(payload); err == nil {
		e.read(&s.spec, c)
	}
	return e
}

// texts are the keys of a set, those that are of use first.
func (s *keySet) texts() (out []KeyText) {
	for i := range s.keys {
		k := &s.keys[i]
		out = append(out, KeyText{KeyID: short(k.KeyID), Kind: strings.TrimSpace(kindOf(k) + " " + k.Algorithm)})
	}
	for _, u := range s.unfit {
		out = append(out, KeyText{KeyID: u.id, Unusable: u.why})
	}
	return out
}

// read tells the claims that count here, and what the rules make of them.
func (e *Explanation) read(s *Spec, c claims) {
	told := make(map[string]bool)
	tell := func(path string) {
		if told[path] {
			return
		}
		told[path] = true
		v, ok := c.find(path)
		value := string(v)
		switch {
		case !ok:
			value = "missing"
		case (path == "exp" || path == "nbf" || path == "iat") && v.Kind() == '0':
			if at, _, err := c.when(path); err == nil {
				value = at.Format(time.RFC3339)
			}
		case len(value) > maxShown:
			value = strings.ToValidUTF8(value[:maxShown], "") + "…"
		}
		e.Claims = append(e.Claims, ClaimText{path, value})
	}
	for _, path := range []string{"sub", "aud", "exp", "nbf", "iat"} {
		tell(path)
	}
	for _, r := range s.Require {
		tell(r.Claim)
	}
	for i, r := range s.Claims.rules() {
		if !r.given() {
			continue
		}
		for _, p := range r.From {
			if p.Claim != "" {
				tell(p.Claim)
			}
		}
		word, err := r.apply(c)
		if err != nil {
			word = "ambiguous"
		}
		e.Rules = append(e.Rules, RuleText{parts[i], r.From.String(), word})
	}
}

// Fetch fetches the keys of the token's issuer, for Explain without Start. The error says
// why there are none.
func (v *Verifier) Fetch(token string) error {
	_, claimed, err := open(token)
	if err != nil {
		return nil // Explain says so
	}
	s := (*v.sources.Load())[claimed.Issuer]
	if s == nil {
		return nil
	}
	set, err := s.spec.fetch(v.ctx, v.o.Dialer)
	f, begun, _ := s.begin(time.Now(), 0)
	if begun {
		s.land(f, set, err)
	}
	return err
}
