package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/price"
	"sluice/internal/route"
)

// catalogue knows one model.
func catalogue(provider, model string) (Known, bool) {
	if provider == "openai" && strings.HasPrefix(model, "gpt-") || provider == "bedrock" && strings.Contains(model, ".") {
		return Known{Price: &price.Row{Provider: provider, Model: model, Version: "test", Rates: price.Rates{Input: 2e8, Output: 12e8}}, Context: 1_050_000, MaxOutput: 128_000}, true
	}
	return Known{}, false
}

func mustCompile(t testing.TB, text string, o CompileOptions) *Snapshot {
	t.Helper()
	c, err := Parse("sluice.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The sample of the documentation and the examples load; their warnings are
// the ones that are meant.
func TestSamplesLoad(t *testing.T) {
	want := map[string][]string{
		"design.yaml": {
			"pools.chat-eu.backends[0]: backend gpu-a has no price: requests to it are refused",
			"pools.chat-eu.backends[1]: backend gpu-b has no price: requests to it are refused",
		},
		"minimal.yaml": {`models.gpt-6-luna: all that serves model "gpt-6-luna" in the openai dialect is in failure domain "openai": there is no way out when it fails`},
	}
	for _, file := range sampleFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := Load(file, testEnv)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Compile(c, CompileOptions{Lookup: catalogue, SimulatedURL: "http://127.0.0.1:9/v1"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range s.Warnings {
				got = append(got, w.Path+": "+w.Cause)
			}
			if diff := cmp.Diff(want[filepath.Base(file)], got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompileDesignSample(t *testing.T) {
	data, err := os.ReadFile("testdata/design.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := mustCompile(t, string(data), CompileOptions{Lookup: catalogue})
	eu := s.Table.Pools["chat-eu"]
	want := &route.Backend{
		ID: "gpu-a", Provider: "gpus", Model: "llama-3.1-8b", Dialect: "openai", Region: "eu-west", Domain: "eu-west-a", Weight: 1,
		Capacity: route.Capacity{Concurrency: 64, KVTokens: 400_000, PrefillTokens: 200_000}, Lacks: route.EngineLacks("vllm") | route.NeedResponses, StopsOnCancel: true, Replica: true,
		Longest: 30 * time.Minute, Silence: 10 * time.Minute,
	}
	if diff := cmp.Diff(want, eu.Backends[0]); diff != "" {
		t.Error(diff)
	}
	oai := s.Table.Pools["chat-hosted"].Backends[0]
	if oai.Price == nil || oai.Context != 1_050_000 || oai.MaxOutput != 128_000 || oai.StopsOnCancel || oai.Ceiling != nil {
		t.Errorf("the hosted backend is not the catalogue's: %+v", oai)
	}
	fast := s.Table.Models["fast"]
	if diff := cmp.Diff(&route.Model{ID: "fast", Pools: []sluice.PoolID{"chat-eu"}, Fallback: []sluice.PoolID{"chat-hosted"}, Evaluated: map[sluice.PoolID]*route.Evaluation{"chat-hosted": {Suite: "support-v3", Score: "0.94", Date: "2026-11-01"}}}, fast); diff != "" {
		t.Error(diff)
	}
	target := s.Targets["gpu-b"]
	if target.BaseURL.String() != "http://10.0.0.6:8000/v1" || !target.APIKey.Empty() || target.Engine != "vllm" {
		t.Errorf("got %+v", target)
	}
	if got := s.Targets["oai"]; got.APIKey.Reveal() != provKey || got.BaseURL.Host != "api.openai.com" {
		t.Errorf("got %+v", got)
	}
	if s.Settings.Listen != "127.0.0.1:8080" || s.Settings.AdminListen != "127.0.0.1:8081" || s.Settings.KeepaliveAfter != 15*time.Second || len(s.Version) != 12 || s.Table.Version != s.Version {
		t.Errorf("got %+v, version %q", s.Settings, s.Version)
	}
	// The declared key is the tenant's, and the file owns all of it.
	snap := auth.Compile(auth.CompileOptions{}, s.Records)
	key, _ := testEnv("ACME_KEY")
	p, err := snap.Identify(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if p.Tenant != "acme" || p.Project != sluice.DefaultProject || p.Policy.Plan != "standard" || p.Policy.Class != sluice.Interactive || !p.Policy.JournalSync {
		t.Errorf("got %+v %+v", p, p.Policy)
	}
	if l := p.Policy.Limits[sluice.ScopeTenant]; len(l) != 5 || l[4].Amount != int64(100*sluice.Dollar) {
		t.Errorf("got %+v", l)
	}
	if o := s.Records.Keys[0].Origin; o.File != "sluice.yaml" || o.Line != 25 {
		t.Errorf("the key's origin is %+v", o)
	}
}

// A limit of none lifts what a plan says, and bounds nothing where none stands
// above.
func TestNoneLiftsALimit(t *testing.T) {
	s := mustCompile(t, `
limits: {requests_per_second: none, concurrency: 5}
providers: {sim: {dialect: openai, simulated: true}}
pools: {main: {backends: [{name: a, provider: sim, model: sim-small}]}}
models: {fast: {pools: [main], limits: {concurrency: none}}}
plans:
  std:
    limits: {requests_per_minute: 60, spend_per_day: $5, concurrency: none}
    per_key: {requests_per_minute: 6}
    per_model: {"*": {requests_per_hour: 9}, fast: {requests_per_hour: none}}
tenants:
  acme: {plan: std, limits: {requests_per_minute: none}, keys: {ci: {secret: ${KEY_A}, limits: {requests_per_minute: none}}}}
`, CompileOptions{SimulatedURL: "http://127.0.0.1:9/v1"})
	if len(s.Table.Fleet) != 1 || len(s.Table.Models["fast"].Limits) != 0 {
		t.Errorf("fleet %+v, model %+v", s.Table.Fleet, s.Table.Models["fast"].Limits)
	}
	key, _ := testEnv("KEY_A")
	p, err := auth.Compile(auth.CompileOptions{}, s.Records).Identify(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := []sluice.Limit{{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(5 * sluice.Dollar)}}
	if diff := cmp.Diff(want, p.Policy.Limits[sluice.ScopeTenant]); diff != "" {
		t.Error(diff)
	}
	if len(p.Policy.Limits[sluice.ScopeKey]) != 0 || len(p.Policy.ByModel["fast"]) != 0 || len(p.Policy.Limits[sluice.ScopeTenantModel]) != 1 {
		t.Errorf("got %+v", p.Policy)
	}
}

// Every setting that a reload does not put in force is told.
func TestFixedTellsOfEverySetting(t *testing.T) {
	live := map[string]bool{"LameDuck": true, "Drain": true}
	for i := range reflect.TypeFor[Settings]().NumField() {
		var s Settings
		f := reflect.ValueOf(&s).Elem().Field(i)
		name := reflect.TypeFor[Settings]().Field(i).Name
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64, reflect.Int:
			f.SetInt(7)
		default:
			if name == "Cache" {
				s.Cache.Store = "x"
				break
			}
			f.Set(reflect.ValueOf(sluice.NewSecret("x")))
		}
		if got := len(s.Fixed(Settings{})); got == 0 != live[name] {
			t.Errorf("%s: a change is told %d times", name, got)
		}
	}
}

const full = `
store: postgres://sluice:${KEY_A}@db/sluice
body_limit: 1MiB
log: {level: debug, format: json}
keys: {pepper: ${KEY_B}, poll: 500ms, stale_max: 24h}
limits: {requests_per_second: 100}
unknown_price: {ceiling: {input: $15, output: $75}}
prices:
  claude/claude-x: {input: $3, output: $15, cache_read: $0}
providers:
  claude:
    dialect: anthropic
    base_url: https://api.anthropic.com/v1
    api_key: ${ANTHROPIC_API_KEY}
    headers: {anthropic-beta: ${KEY_A}}
    timeouts: {connect: 2s, first_token: 30s, min_rate: 5}
    lost_charge: bound
  free: {dialect: openai, engine: vllm, base_url: http://gpu:8000/v1, price: free, stops_on_cancel: false}
  sim: {dialect: openai, simulated: true, unknown_price: refuse}
pools:
  a:
    queue: {requests: 100, bytes: 64MiB, work: 1M, max_wait: 30s}
    backends:
      - {name: c1, provider: claude, model: claude-x}
      - {name: c2, provider: claude, model: claude-y, weight: 0}
      - {name: f1, provider: free, model: m, price: {input: $1, output: $2}, stops_on_cancel: true}
      - {name: f2, provider: free, model: m, max_output: 4k}
      - {name: s1, provider: sim, model: sim-small}
models:
  m: {pools: [a], limits: {concurrency: 10}}
  n: {pools: [a]}
plans:
  p:
    classes: [interactive]
    weight: 3
    max_wait: 10s
    max_output: 2k
    spend: soft
    budget_status: 402
    limits: &limits {spend_per_day: $5}
    per_project: *limits
    per_key: {<<: *limits, concurrency: 2}
    per_model: {"*": {kv_tokens: 10k}, m: {kv_tokens: 20k}}
tenants:
  t:
    name: Tenant
    plan: p
    models: [m]
    limits: {spend_per_day: $6}
    projects: {web: {limits: {spend_per_day: $1}}, idle:}
    keys:
      k: {secret: ${KEY_A}, project: web, limits: {concurrency: 1}, not_after: 2030-01-01, disabled: true}
`

func TestCompileEverything(t *testing.T) {
	s := mustCompile(t, full, CompileOptions{SimulatedURL: "http://127.0.0.1:9/v1"})
	b := s.Table.Pools["a"].Backends
	if r := b[0].Price; r.Rates.Input != 3e9 || r.Rates.CacheRead != price.Free || r.Rates.CacheWrite != 0 || r.Validate() != nil {
		t.Errorf("prices: %+v", r)
	}
	if b[1].Price != nil || b[1].Ceiling == nil || b[1].Ceiling.Rates.Output != 75e9 || b[1].Weight != 0 {
		t.Errorf("the ceiling: %+v", b[1])
	}
	if b[2].Price.Rates.Input != 1e9 || !b[2].StopsOnCancel {
		t.Errorf("the backend's own: %+v", b[2])
	}
	if b[3].Price.Rates.Input != price.Free || b[3].Price.Validate() != nil || b[3].StopsOnCancel || b[3].MaxOutput != 4000 {
		t.Errorf("the provider's: %+v", b[3])
	}
	if b[4].Price != nil || b[4].Ceiling != nil || s.Targets["s1"].BaseURL.Host != "127.0.0.1:9" {
		t.Errorf("the provider's refusal: %+v", b[4])
	}
	if got, want := s.Table.Pools["a"].Queue, (route.QueueBounds{Requests: 100, Bytes: 64 << 20, Work: 1_000_000, MaxWait: 30 * time.Second}); got != want {
		t.Errorf("got %+v", got)
	}
	if got := s.Targets["c1"]; got.Timeouts.Connect != 2*time.Second || got.Timeouts.Rate != 5 || got.Timeouts.Idle != 0 || got.Header.Get("Anthropic-Beta") == "" {
		t.Errorf("got %+v", got)
	}
	if len(s.Table.Fleet) != 1 || len(s.Table.Models["m"].Limits) != 1 {
		t.Error("fleet or model limits are missing")
	}
	if s.Settings.Pepper.Empty() || s.Settings.StaleMax != 24*time.Hour || !s.Settings.LogJSON || s.Settings.BodyLimit != 1<<20 {
		t.Errorf("got %+v", s.Settings)
	}
	r := s.Records
	r.Keys[0].Disabled = false
	snap := auth.Compile(auth.CompileOptions{Hasher: auth.NewHasher(s.Settings.Pepper)}, r)
	key, _ := testEnv("KEY_A")
	p, err := snap.Identify(key, time.Date(2029, 12, 31, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	dollars := func(n int64) sluice.Limit {
		return sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: n * int64(sluice.Dollar)}
	}
	want := &sluice.Policy{
		Plan: "p", Class: sluice.Standard, Classes: []sluice.Class{sluice.Interactive}, Weight: 3, Models: []sluice.ModelID{"m"},
		MaxWait: int64(10 * time.Second), MaxOutput: 2000, Budget402: true,
		ByModel: map[sluice.ModelID][]sluice.Limit{"m": {{Dimension: sluice.KVTokens, Amount: 20_000}}},
	}
	want.Limits[sluice.ScopeKey] = []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}, dollars(5)}
	want.Limits[sluice.ScopeProject] = []sluice.Limit{dollars(1)}
	want.Limits[sluice.ScopeTenant] = []sluice.Limit{dollars(6)}
	want.Limits[sluice.ScopeTenantModel] = []sluice.Limit{{Dimension: sluice.KVTokens, Amount: 10_000}}
	if diff := cmp.Diff(want, p.Policy); diff != "" {
		t.Error(diff)
	}
}

func TestSimulatedNeedsAFleet(t *testing.T) {
	c, err := Parse("sluice.yaml", []byte(full), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, CompileOptions{})
	if err == nil || s != nil || !strings.Contains(err.Error(), "there is no simulated fleet") {
		t.Errorf("got %v", err)
	}
}

// least is what every configuration needs to be worth serving.
const least = `
providers: {p: {dialect: openai, base_url: "http://127.0.0.1:9/v1"}}
pools: {p: {backends: [{name: b, provider: p, model: m, price: free}]}}
models: {m: {pools: [p]}}
`

// The version follows the content, not its spelling, and not the secrets.
func TestVersion(t *testing.T) {
	version := func(text string) string { return mustCompile(t, text+least, CompileOptions{}).Version }
	base := version("drain: 60s\nlimits: {requests_per_minute: 1k}")
	if got := version("# a comment\nlimits:\n  requests_per_minute: 1000\ndrain: 1m\n"); got != base {
		t.Error("another spelling is another version")
	}
	if version("drain: 61s\nlimits: {requests_per_minute: 1k}") == base {
		t.Error("another content is the same version")
	}
	if version("keys: {pepper: ${KEY_A}}") != version("keys: {pepper: ${KEY_B}}") {
		t.Error("the version depends on a secret")
	}
}

// A reload that changes the pepper keeps the keys known until the restart.
func TestReloadKeepsTheHasher(t *testing.T) {
	const text = "keys: {pepper: ${KEY_B}}\ntenants: {t: {keys: {k: {secret: ${KEY_A}}}}}" + least
	var inForce auth.Hasher
	s := mustCompile(t, text, CompileOptions{Hasher: &inForce})
	key, _ := testEnv("KEY_A")
	if _, err := auth.Compile(auth.CompileOptions{Hasher: inForce}, s.Records).Identify(key, time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := auth.Compile(auth.CompileOptions{Hasher: inForce}, mustCompile(t, text, CompileOptions{}).Records).Identify(key, time.Now()); err == nil {
		t.Error("the pepper changes nothing")
	}
}

// A file that was cut short must not empty a running gateway.
func TestNoModels(t *testing.T) {
	for _, text := range []string{"", "# nothing", "listen: 127.0.0.1:1"} {
		c, err := Parse("sluice.yaml", []byte(text), testEnv)
		if err != nil {
			continue
		}
		if s, err := Compile(c, CompileOptions{}); err == nil || s != nil || !strings.Contains(err.Error(), "there are no models") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestFixedSettings(t *testing.T) {
	old := mustCompile(t, "listen: 127.0.0.1:1"+least, CompileOptions{}).Settings
	next := mustCompile(t, "listen: 127.0.0.1:2\nlog: {level: debug}\nkeys: {pepper: ${KEY_A}}"+least, CompileOptions{}).Settings
	if diff := cmp.Diff([]string{"listen", "log.level", "keys.pepper"}, next.Fixed(old)); diff != "" {
		t.Error(diff)
	}
}

func TestDemo(t *testing.T) {
	m, err := auth.Mint("dev")
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]Env{"without providers": nil, "with providers": testEnv} {
		t.Run(name, func(t *testing.T) {
			c, err := Demo(DemoOptions{Key: m.Key, Data: t.TempDir(), Env: env})
			if err != nil {
				t.Fatal(err)
			}
			s, err := Compile(c, CompileOptions{SimulatedURL: "http://127.0.0.1:9/v1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, model := range []sluice.ModelID{"sim-small", "sim-large"} {
				dialects := map[string]bool{}
				for _, b := range s.Table.Pools[s.Table.Models[model].Pools[0]].Backends {
					dialects[b.Dialect] = true
					if b.Price == nil || b.Model != string(model) {
						t.Errorf("got %+v", b)
					}
				}
				if !dialects["openai"] || !dialects["anthropic"] {
					t.Errorf("%s speaks %v", model, dialects)
				}
			}
			want := 2
			if env != nil {
				want += 4 // two providers with two models each
			}
			if len(s.Table.Models) != want {
				t.Errorf("got %d models, want %d", len(s.Table.Models), want)
			}
			p, err := auth.Compile(auth.CompileOptions{}, s.Records).Identify(m.Key.Reveal(), time.Now())
			if err != nil || p.Tenant != DemoTenant || p.Project != sluice.DefaultProject {
				t.Errorf("got %+v, %v", p, err)
			}
			for _, w := range s.Warnings {
				if env == nil {
					t.Errorf("unexpected warning: %v", w)
				}
			}
		})
	}
}

// Nothing that holds a secret prints it.
func TestSecretsDoNotPrint(t *testing.T) {
	c, err := Parse("sluice.yaml", []byte(full), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, CompileOptions{SimulatedURL: "http://127.0.0.1:9/v1"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	key := c.Tenants["t"].Keys["k"]
	text := string(j) + fmt.Sprintf("%v %+v %#v", c, c, c) + fmt.Sprintf("%v %+v %#v", key, key.Secret, *key.Secret) +
		fmt.Sprintf("%+v %+v %v", s.Settings, s.Records, s.Warnings)
	b, err := json.Marshal(s.Records)
	if err != nil {
		t.Fatal(err)
	}
	refuseCanaries(t, text+string(b))
}

func TestSecretFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("  sk-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Parse("x.yaml", []byte("keys: {pepper: file:"+path+"}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Keys.Pepper; p.Reveal() != "sk-from-file" || p.Open {
		t.Errorf("got %q, open %v", p.Reveal(), p.Open)
	}
	for _, bad := range []string{filepath.Dir(path), "/dev/zero", path + ".none"} {
		if _, err := Parse("x.yaml", []byte("keys: {pepper: file:"+bad+"}"), nil); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestLoadOfNoFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), testEnv)
	if err == nil || !strings.Contains(err.Error(), "none.yaml: cannot read the configuration") {
		t.Errorf("got %v", err)
	}
}

// Aliases cannot blow a file up, nor refer to themselves.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("prices: &a0 {p/m: {input: $1, output: $2}}\n")
	b.WriteString("tenants:\n  t: &b0 {projects: {}}\n")
	for i := 1; i < 20; i++ {
		fmt.Fprintf(&b, "  t%d: &b%d {models: [", i, i)
		for range 20 {
			fmt.Fprintf(&b, "*b%d, ", i-1)
		}
		b.WriteString("]}\n")
	}
	b.WriteString("limits: &c0 {concurrency: 1}\n")
	for i := 1; i < 25; i++ {
		fmt.Fprintf(&b, "x%d: &c%d {<<: *c%d, <<: *c%d}\n", i, i, i-1, i-1)
	}
	b.WriteString("keys: *c24\nplans: &self\n  p: *self\n  q: {<<: *self}\n")
	start := time.Now()
	if _, err := Parse("x.yaml", []byte(b.String()), nil); err == nil {
		t.Error("accepted")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("a: &a [*a]\n<<: *a\n? x\n: y\n--- \n!!str z"))
	f.Add(DemoFile(DemoOptions{Env: testEnv}))
	for _, folder := range []string{"mistakes", "lint"} {
		files, _ := filepath.Glob("testdata/" + folder + "/*.txtar")
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil {
				f.Add(b)
			}
		}
	}
	noFile := func(string, int64) ([]byte, error) { return nil, os.ErrNotExist }
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("x.yaml", data, ParseOptions{Env: testEnv}, noFile)
		if err == nil {
			if _, err := Compile(c, CompileOptions{SimulatedURL: "http://127.0.0.1:9/v1"}); err != nil {
				if _, ok := err.(Problems); !ok {
					t.Fatalf("what was accepted does not compile: %v", err)
				}
			}
			return
		}
		problems, ok := err.(Problems)
		if !ok || len(problems) == 0 {
			t.Fatalf("error %v is no list of problems", err)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || p.Cause == "" {
				t.Fatalf("incomplete: %+v", p)
			}
		}
	})
}
