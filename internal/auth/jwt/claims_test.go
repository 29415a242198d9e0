package jwt

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/auth"
)

func payload(t testing.TB, v any) claims {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseClaims(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMapping(t *testing.T) {
	batch := sluice.Batch
	c := payload(t, map[string]any{
		"sub": "alice", "org": map[string]any{"id": "acme", "a.b": "dotted", "n": 7}, "https://x.test/team": "search",
		"groups": []any{"all", "llm-batch", 3}, "email": "alice@acme.test", "admin": true, "empty": "", "deep": []any{[]any{"x"}},
	})
	for _, tc := range []struct {
		name string
		m    Mapping
		want auth.Bearer
		says string // of the refusal
	}{
		{name: "literal", m: Mapping{Tenant: Rule{From: text("acme")}}, want: auth.Bearer{Tenant: "acme"}},
		{name: "path", m: Mapping{Tenant: Rule{From: text("{org.id}")}}, want: auth.Bearer{Tenant: "acme"}},
		{name: "name with dots below", m: Mapping{Tenant: Rule{From: text("{org.a.b}")}}, want: auth.Bearer{Tenant: "dotted"}},
		{name: "name with dots", m: Mapping{Tenant: Rule{From: text("{https://x.test/team}")}}, want: auth.Bearer{Tenant: "search"}},
		{name: "template", m: Mapping{Tenant: Rule{From: text("t-{org.id}-{org.n}")}}, want: auth.Bearer{Tenant: "t-acme-7"}},
		{name: "all", m: Mapping{
			Tenant: Rule{From: text("{org.id}"), Map: map[string]string{"acme": "a1"}}, Project: Rule{From: text("{https://x.test/team}")},
			User: Rule{From: text("{email}")}, Class: Rule{From: text("{groups}"), Map: map[string]string{"llm-batch": "batch", "none": "interactive"}},
		}, want: auth.Bearer{Tenant: "a1", Project: "search", User: "alice@acme.test", Class: &batch}},
		{name: "truth", m: Mapping{Tenant: Rule{From: text("{admin}"), Map: map[string]string{"true": "ops"}}}, want: auth.Bearer{Tenant: "ops"}},
		{name: "default for a missing claim", m: Mapping{Tenant: Rule{From: text("{gone}"), Default: "guests"}}, want: auth.Bearer{Tenant: "guests"}},
		{name: "default for an unmapped one", m: Mapping{Tenant: Rule{From: text("{org.id}"), Map: map[string]string{"x": "y"}, Default: "guests"}}, want: auth.Bearer{Tenant: "guests"}},
		{name: "no user: the subject, never the request's", m: Mapping{Tenant: Rule{From: text("acme")}, User: Rule{From: text("{gone}")}}, want: auth.Bearer{Tenant: "acme", User: "alice"}},
		{name: "an empty user", m: Mapping{Tenant: Rule{From: text("acme")}, User: Rule{From: text("{empty}")}}, want: auth.Bearer{Tenant: "acme", User: "alice"}},
		{name: "a user that map does not have", m: Mapping{Tenant: Rule{From: text("acme")}, User: Rule{From: text("{email}"), Map: map[string]string{"x": "y"}}}, want: auth.Bearer{Tenant: "acme", User: "alice"}},
		{name: "a user that is an object", m: Mapping{Tenant: Rule{From: text("acme")}, User: Rule{From: text("{org}")}}, want: auth.Bearer{Tenant: "acme", User: "alice"}},
		{name: "the rule's default user", m: Mapping{Tenant: Rule{From: text("acme")}, User: Rule{From: text("{gone}"), Default: "guest"}}, want: auth.Bearer{Tenant: "acme", User: "guest"}},
		{name: "empty", m: Mapping{Tenant: Rule{From: text("{empty}")}}, says: "no tenant"},
		{name: "an object", m: Mapping{Tenant: Rule{From: text("{org}")}}, says: "no tenant"},
		{name: "lists in lists", m: Mapping{Tenant: Rule{From: text("{deep}")}}, says: "no tenant"},
		{name: "a list in a template", m: Mapping{Tenant: Rule{From: text("t-{groups}")}}, says: "no tenant"},
		{name: "several of a list", m: Mapping{Tenant: Rule{From: text("{groups}")}}, says: "two things of its tenant"},
		{name: "no class", m: Mapping{Tenant: Rule{From: text("acme")}, Class: Rule{From: text("{email}")}}, says: "no class"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Spec{Name: "corp", Claims: tc.m}
			got, err := s.bearer(c)
			if err != nil {
				if tc.says == "" || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want …%s…", err, tc.says)
				}
				return
			}
			tc.want.Key = "jwt:corp:alice"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseText(t *testing.T) {
	for _, s := range []string{"{", "}", "{}", "a{b", "{a{b}}", "a}b", "{a}{b}"} {
		if got, err := ParseText(s); err == nil {
			t.Errorf("%q: got %q", s, got)
		}
	}
	for _, s := range []string{"", "acme", "{a}", "x-{a.b}-{c}y"} {
		if got, err := ParseText(s); err != nil || got.String() != s {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
}

// Two tokens have one key only if they are of one issuer and one subject.
func TestKeysAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		issuer := rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,3}`)
		subject := rapid.OneOf(rapid.StringMatching(`[a-c:|/ ]{0,4}`), rapid.String(), rapid.StringMatching(`[a-z]{60,70}`),
			rapid.Map(rapid.StringMatching(`[a-c:]{0,3}`), hashOf))
		ai, as, bi, bs := issuer.Draw(t, "ai"), subject.Draw(t, "as"), issuer.Draw(t, "bi"), subject.Draw(t, "bs")
		a, b := KeyOf(ai, as), KeyOf(bi, bs)
		if (a == b) != (ai == bi && as == bs) {
			t.Fatalf("%q of %q is %s, %q of %q is %s", as, ai, a, bs, bi, b)
		}
		if len(a) > 4+len(ai)+1+len(hashed)+64 {
			t.Fatalf("%s is %d bytes long", a, len(a))
		}
		for _, r := range string(a) {
			if r <= ' ' || r > '~' || r == '"' || r == '\\' {
				t.Fatalf("%q has %q", a, r)
			}
		}
	})
}

// A template gives two tokens one word only if all its claims are alike.
func TestTemplatesAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.SampledFrom([]string{"-", "--", "-a", "x-x"})
		form := text("p" + "{a}" + literal.Draw(t, "first") + "{b}" + literal.Draw(t, "second") + "{c}")
		value := rapid.StringMatching(`[-ax]{1,4}`)
		draw := func(name string) (map[string]string, string) {
			c := map[string]string{"a": value.Draw(t, name+"a"), "b": value.Draw(t, name+"b"), "c": value.Draw(t, name+"c")}
			raw, _ := json.Marshal(c)
			parsed, err := parseClaims(raw)
			if err != nil {
				t.Fatal(err)
			}
			word, err := form.fill(parsed)
			if err != nil {
				return c, ""
			}
			return c, word
		}
		one, first := draw("1")
		two, second := draw("2")
		if first != "" && first == second && !cmp.Equal(one, two) {
			t.Fatalf("%v and %v are both %q by %s", one, two, first, form)
		}
	})
}

// No bytes crash what reads tokens, and nothing that is not signed is admitted.
func FuzzToken(f *testing.F) {
	enc := base64.RawURLEncoding.EncodeToString
	f.Add(enc([]byte(`{"alg":"ES256"}`)) + "." + enc([]byte(`{"iss":"http://login.test","sub":"a"}`)) + ".AAAA")
	f.Add(enc([]byte(`{"alg":"none"}`)) + "." + enc([]byte(`{}`)) + ".")
	f.Add(enc([]byte(`{"alg":"HS256","crit":["b64"],"b64":false}`)) + ".e30.AA")
	f.Add("..")
	set, err := parseKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	if err != nil {
		f.Fatal(err)
	}
	v := New(Options{MaxVerified: 4})
	now := time.Unix(1_800_000_000, 0)
	src := &source{spec: spec(func(s *Spec) { s.StaleMax = 0 }), keys: set, fetched: now, asked: now, flight: nil}
	v.sources.Store(&map[string]*source{issuerURL: src})
	f.Fuzz(func(t *testing.T, token string) {
		if b, err := v.Bearer(token, now); err == nil {
			t.Fatalf("%q is %+v", token, b)
		}
	})
}

// Claims that are read give words, whatever they are.
func FuzzClaims(f *testing.F) {
	f.Add(`{"sub":"a","org":{"id":"x"}}`, "org.id")
	f.Add(`{"sub":"a","a":[1,true,"x",null,{}]}`, "a")
	f.Fuzz(func(t *testing.T, text, path string) {
		c, err := parseClaims([]byte(text))
		if err != nil || path == "" {
			return
		}
		s := Spec{Name: "corp", Claims: Mapping{Tenant: Rule{From: Text{{Claim: path}}}}}
		b, err := s.bearer(c)
		if (err == nil) != (b.Tenant != "") {
			t.Fatal(fmt.Sprint(b, err))
		}
	})
}
