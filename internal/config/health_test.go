package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/route"
)

const healthFile = `
providers:
  many: {dialect: openai, base_url: "https://api.openai.com/v1", price: free, api_keys: ["${A}", {name: b, key: "${B}", weight: 3}], probe: {path: /health}}
  one: {dialect: openai, base_url: "https://one.example/v1", price: free, api_key: "${A}"}
  none: {dialect: openai, base_url: "http://10.0.0.1/v1", price: free}
breaker: {failures: 7, share: 40%, ramp: 1m, first_token: 20s}
pools:
  p:
    backends:
      - {name: x, provider: many, model: m}
      - {name: y, provider: many, model: m, api_key: "${C}", probe: {path: /up, every: 1s}}
      - {name: z, provider: one, model: m}
      - {name: w, provider: none, model: m}
models:
  m: {pools: [p]}
`

func TestKeysAndProbesCompile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(path, []byte(healthFile), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, func(name string) (string, bool) { return "secret-" + name, true })
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		keys  []route.Key
		first string
		probe string
		every time.Duration
	}{
		{[]route.Key{{ID: "many/1", Weight: 1}, {ID: "many/b", Weight: 3}}, "secret-A", "/health", 5 * time.Second},
		{[]route.Key{{ID: "y@many", Weight: 1}}, "secret-C", "/up", time.Second},
		{[]route.Key{{ID: "one", Weight: 1}}, "secret-A", "", 0},
		{nil, "", "", 0},
	} {
		b := s.Table.Pools["p"].Backends[i]
		target := s.Targets[b.ID]
		if len(b.Keys) != len(want.keys) || target.Probe.Path != want.probe || target.Probe.Every != want.every || target.APIKey.Reveal() != want.first {
			t.Fatalf("%s: %+v, probe %+v", b.ID, b.Keys, target.Probe)
		}
		for j, k := range want.keys {
			if _, has := target.Keys[k.ID]; b.Keys[j] != k || !has {
				t.Errorf("%s: key %+v, want %+v with a secret", b.ID, b.Keys[j], k)
			}
		}
	}
	if got := s.Targets["x"].Keys["many/b"].Reveal(); got != "secret-B" {
		t.Errorf("many/b is %q", got)
	}
	if b := s.Table.Breaker; b.Failures != 7 || b.Share != 400 || b.Ramp != time.Minute || b.FirstToken != 20*time.Second || b.Cooldown != route.Cooldown {
		t.Errorf("breaker %+v", b)
	}
	text, err := c.JSON()
	if err != nil || strings.Contains(string(text), "secret-") {
		t.Errorf("a secret is in the effective configuration: %v %s", err, text)
	}
}
