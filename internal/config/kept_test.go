package config

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

const openFile = `
store: "postgres://sluice:hunter2@${HOST}/db"
keys: {pepper: ${PEPPER}}
providers:
  a: {dialect: openai, base_url: https://a.example/v1, api_key: sk-open-1, headers: {X-Org: 'org-77', X-Ref: "${PEPPER}"}}
  b:
    dialect: openai
    base_url: https://b.example/v1
    api_keys:
      - sk-open-2   # the old one
      - {name: new, key: "sk-open-3"}
pools:
  p:
    backends:
      - {name: a-1, provider: a, model: sk, price: free}
      - {name: b-1, provider: b, model: open, price: free}
models:
  m: {pools: [p]}
`

var openSecrets = []string{"hunter2", "sk-open-1", "org-77", "sk-open-2", "sk-open-3"}

func openEnv(name string) (string, bool) {
	v, ok := map[string]string{"HOST": "db.example", "PEPPER": "a pepper that nobody guesses"}[name]
	return v, ok
}

func parsed(t testing.TB, text string, o ParseOptions) *Config {
	t.Helper()
	o.Env = openEnv
	c, err := ParseWith("sluice.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// No secret that stands in a file gets into the text that is kept, which with the file
// at hand means the same again.
func TestKeptTextHasNoSecrets(t *testing.T) {
	c := parsed(t, openFile, ParseOptions{})
	marks := NewMarks(sluice.NewSecret("key"), c)
	kept := c.Kept([]byte(openFile), marks)
	for _, s := range openSecrets {
		if strings.Contains(kept, s) {
			t.Errorf("%s stands in the text that is kept:\n%s", s, kept)
		}
	}
	for _, s := range []string{"${PEPPER}", "# the old one", "model: sk,", "model: open"} {
		if !strings.Contains(kept, s) {
			t.Errorf("%s is lost:\n%s", s, kept)
		}
	}
	again := parsed(t, kept, ParseOptions{Marks: marks})
	if got := again.Providers["b"].APIKeys[1].Key.Reveal(); got != "sk-open-3" {
		t.Errorf("a key came back as %q", got)
	}
	if got := again.Store.Reveal(); got != "postgres://sluice:hunter2@db.example/db" {
		t.Errorf("the store came back as %q", got)
	}
	was, _ := c.version()
	is, _ := again.version()
	if was != is {
		t.Errorf("the version went from %s to %s", was, is)
	}
	if twice := again.Kept([]byte(kept), NewMarks(sluice.NewSecret("key"), again)); twice == "" || strings.Contains(twice, "hunter2") {
		t.Errorf("kept again it is\n%s", twice)
	}

	other := parsed(t, strings.ReplaceAll(openFile, "sk-open-2", "sk-other"), ParseOptions{})
	_, err := ParseWith("sluice.yaml", []byte(kept), ParseOptions{Env: openEnv, Marks: NewMarks(sluice.NewSecret("key"), other)})
	if err == nil || !strings.Contains(err.Error(), "providers.b.api_keys[0]") || !strings.Contains(err.Error(), "is not kept with it") {
		t.Errorf("a secret that is gone: %v", err)
	}
	if _, err := ParseWith("sluice.yaml", []byte(kept), ParseOptions{Env: openEnv, Unmarked: true}); err != nil {
		t.Errorf("to compare with it no secret is needed: %v", err)
	}
}

// Where a secret's end cannot be told, the text is not kept at all.
func TestKeptTextInDoubt(t *testing.T) {
	for name, key := range map[string]string{
		"escaped":  `"sk-\x6fpen"`,
		"block":    "|-\n      sk-open",
		"doubled":  `'it''s'`,
		"two rows": "\"sk-open\n      and more\"",
	} {
		text := strings.Replace(openFile, "headers: {X-Org: 'org-77', X-Ref: \"${PEPPER}\"}}", "}", 1)
		text += "tenants: {}\n"
		text = strings.Replace(text, "  b:\n    dialect: openai\n", "  c:\n    dialect: openai\n    base_url: https://c.example/v1\n    api_key: "+key+"\n  b:\n    dialect: openai\n", 1)
		c := parsed(t, text, ParseOptions{})
		kept := c.Kept([]byte(text), NewMarks(sluice.NewSecret("key"), c))
		if kept != "" {
			t.Errorf("%s: kept\n%s", name, kept)
		}
	}
}

// Whatever a plain secret looks like and wherever it stands, it is not in the kept text
// and comes back.
func TestKeptTextProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z][a-zA-Z0-9_+/=.-]{7,40}`).Draw(t, "secret")
		quote := rapid.SampledFrom([]string{"", `"`, `'`}).Draw(t, "quote")
		space := strings.Repeat(" ", rapid.IntRange(1, 5).Draw(t, "space"))
		text := strings.Replace(openFile, "api_key: sk-open-1,", "api_key:"+space+quote+secret+quote+" ,", 1)
		c, err := ParseWith("sluice.yaml", []byte(text), ParseOptions{Env: openEnv})
		if err != nil {
			t.Skip(err)
		}
		marks := NewMarks(sluice.NewSecret("key"), c)
		kept := c.Kept([]byte(text), marks)
		if kept == "" || strings.Contains(kept, secret) {
			t.Fatalf("%q is kept as\n%s", secret, kept)
		}
		again, err := ParseWith("sluice.yaml", []byte(kept), ParseOptions{Env: openEnv, Marks: marks})
		if err != nil || again.Providers["a"].APIKey.Reveal() != secret {
			t.Fatalf("%q does not come back: %v", secret, err)
		}
	})
}
