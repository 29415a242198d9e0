package admin

import (
	"strings"
	"testing"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/engine"
)

func TestPoolDemand(t *testing.T) {
	chat, far := engine.PoolView{ID: "chat"}, engine.PoolView{ID: "far"}
	for k := range chat.Demand.Ratios {
		chat.Demand.Ratios[k], far.Demand.Ratios[k] = -1, -1
	}
	chat.Demand.Ratios[demand.Prefill], chat.Demand.Ratios[demand.Slots] = 1_250_000, 400_000
	chat.Demand.Scaled, chat.Demand.Desired, chat.Demand.Replicas = true, 6, demand.Replicas{Listed: 8, Serving: 4}
	b := newBench(t, func(o *Options) {
		o.Look = func(z engine.Zoom, _ int) engine.View {
			for _, p := range []engine.PoolView{chat, far} {
				if p.ID == z.Pool {
					return engine.View{Pools: []engine.PoolView{p}}
				}
			}
			return engine.View{}
		}
		o.View = func(int) engine.View { return engine.View{Pools: []engine.PoolView{chat, far}} }
	})
	var got struct {
		Pool string `json:"pool"`
		PoolDemand
	}
	b.do("GET", "/admin/v1/pools/chat/demand", "", 200, &got)
	if got.Pool != "chat" || got.Ratio != 1.25 || got.Binding != "prefill" || len(got.Ratios) != 2 || got.Ratios["slots"] != 0.4 || *got.Replicas != 4 || *got.Listed != 8 || *got.Desired != 6 {
		t.Errorf("got %+v", got)
	}
	if text := b.do("GET", "/admin/v1/pools/far/demand", "", 200, nil); strings.Contains(text, "replicas") || strings.Contains(text, "binding") {
		t.Errorf("of a pool without replicas, of which nothing is known: %s", text)
	}
	if text := b.do("GET", "/admin/v1/pools/none/demand", "", 404, nil); !strings.Contains(text, `there is no pool \"none\"`) {
		t.Errorf("of no pool: %s", text)
	}
	var s Status
	b.do("GET", "/admin/v1/status", "", 200, &s)
	for _, p := range s.Pools {
		if p.Pool == string(sluice.PoolID("chat")) && (p.Demand.Ratio != 1.25 || *p.Demand.Desired != 6) {
			t.Errorf("the status shows %+v", p.Demand)
		}
	}
}
