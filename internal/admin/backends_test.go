package admin

import (
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// Orders reach the engine as they were given, are logged with who gave them, and what
// is out is listed with its end.
func TestOperateBackends(t *testing.T) {
	var orders []engine.Order
	b := newBench(t, func(o *Options) {
		o.View = func(int) engine.View {
			return engine.View{
				Pools: []engine.PoolView{{ID: "chat", Backends: []engine.BackendView{{ID: "gpu-a", Health: "drained"}}}},
				Credentials: []engine.CredentialView{
					{ID: "openai/a", State: route.CredentialDisabled, RetryIn: time.Hour}, {ID: "openai/b", State: route.CredentialUsable},
				},
				Cooling: []engine.CredentialView{
					{ID: "openai/a", Backend: "gpt", State: route.CredentialDisabled, RetryIn: time.Hour},
					{ID: "openai/b", Backend: "gpt", State: route.CredentialUsable, RetryIn: time.Minute},
				},
			}
		}
		o.Operate = func(x engine.Order) (bool, error) {
			orders = append(orders, x)
			if x.Backend == "none" {
				return false, &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no backend"}
			}
			return true, nil
		}
	})
	if text := b.do("GET", "/admin/v1/backends", "", 200, nil); !strings.Contains(text, `"pool":"chat"`) || !strings.Contains(text, `"health":"drained"`) {
		t.Errorf("backends: %s", text)
	}
	text := b.do("GET", "/admin/v1/credentials", "", 200, nil)
	if strings.Count(text, `"until"`) != 2 || !strings.Contains(text, `{"credential":"openai/b","backend":"gpt","state":"cooling","until":`) || !strings.Contains(text, `{"credential":"openai/b","state":"usable"}`) {
		t.Errorf("credentials: %s", text)
	}
	b.do("POST", "/admin/v1/backends/gpu-a/drain", "", 200, nil)
	b.do("POST", "/admin/v1/backends/gpu-a/undrain", "", 200, nil)
	b.do("POST", "/admin/v1/credentials/enable", `{"credential":"openai/a","backend":"gpt"}`, 200, nil)
	b.do("POST", "/admin/v1/credentials/enable", `{}`, 422, nil)
	b.do("POST", "/admin/v1/backends/gpu-a/drain?dry_run=true", "", 422, nil)
	b.do("POST", "/admin/v1/backends/none/drain", "", 404, nil)
	want := []engine.Order{{Backend: "gpu-a", Drain: true}, {Backend: "gpu-a", Undrain: true}, {Backend: "gpt", Enable: "openai/a"}, {Backend: "none", Drain: true}}
	if len(orders) != len(want) {
		t.Fatalf("orders %+v", orders)
	}
	for i := range want {
		if orders[i] != want[i] {
			t.Errorf("order %d: got %+v, want %+v", i, orders[i], want[i])
		}
	}
	for _, line := range []string{"backend drained", "backend undrained", "credential enabled"} {
		if !strings.Contains(b.log.String(), line) {
			t.Errorf("the log does not say %q: %s", line, b.log.String())
		}
	}
}
