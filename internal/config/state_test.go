package config

import (
	"testing"

	"sluice"
	"sluice/internal/route"
)

// Where what a provider keeps is: in a replica of an engine; else with the account, which a
// backend that has a region or an address of its own shares with its like.
func TestWhereStateIs(t *testing.T) {
	s := mustCompile(t, `
providers:
  gpus: {dialect: openai, engine: vllm, base_url: http://gpu:8000/v1, allow_private: true, price: free}
  claude: {dialect: anthropic, base_url: https://api.anthropic.com/v1, price: free, api_keys: [{name: a, key: "${KEY_A}"}, {name: b, key: "${KEY_B}"}]}
pools:
  all:
    backends:
      - {name: gpu-a, provider: gpus, model: x}
      - {name: gpu-b, provider: gpus, model: x, base_url: http://gpu-b:8000/v1}
      - {name: big, provider: claude, model: x}
      - {name: small, provider: claude, model: y}
      - {name: eu, provider: claude, model: x, region: eu}
      - {name: own, provider: claude, model: x, base_url: https://eu.example.com/v1}
models: {m: {pools: [all]}}
state: {keep: 24h, per_tenant: 100, total: 1000}
`, CompileOptions{})
	by := map[sluice.BackendID]*route.Backend{}
	for _, b := range s.Table.Pools["all"].Backends {
		by[b.ID] = b
	}
	for maker, want := range map[sluice.BackendID][]sluice.BackendID{
		"gpu-a": {"gpu-a"}, "gpu-b": {"gpu-b"}, "big": {"big", "small"}, "eu": {"eu"}, "own": {"own"},
	} {
		pin := route.PinOf(by[maker], "claude/b")
		if pin.Backend == "" && pin.Key != "claude/b" {
			t.Errorf("%s: the credential is %q", maker, pin.Key)
		}
		holds := map[sluice.BackendID]bool{}
		for _, id := range want {
			holds[id] = true
		}
		for id, b := range by {
			if pin.Holds(b) != holds[id] {
				t.Errorf("what %s made is at %s: %v", maker, id, pin.Holds(b))
			}
		}
	}
	if s.State != (StateBounds{PerTenant: 100, Total: 1000, Keep: 24 * 3600e9}) {
		t.Errorf("got %+v", s.State)
	}
}
