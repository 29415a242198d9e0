package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/engine"
)

// PoolDemand is what a pool is asked for beside what it supplies.
type PoolDemand struct {
	Ratio   float64            `json:"ratio" doc:"The largest of ratios"`
	Binding string             `json:"binding,omitempty" doc:"Whose it is; left out where no supply is known"`
	Ratios  map[string]float64 `json:"ratios" doc:"What is asked for, of what the serving backends supply, over the last ten seconds, by dimension: slots, kv_tokens, prefill, decode, engine (prefill and decode together), requests_per_minute, input_tokens_per_minute, output_tokens_per_minute, tokens_per_minute. One of which the supply is not known is left out"`

	Replicas *int64 `json:"replicas,omitempty" doc:"Replicas that serve, of engines that you run; left out of a pool without any"`
	Listed   *int64 `json:"listed,omitempty" doc:"Replicas that are configured"`
	Desired  *int64 `json:"desired_replicas,omitempty" doc:"Replicas that it should have: made for a scaler to read"`
}

type (
	demandIn struct {
		Pool string `path:"pool" maxLength:"64"`
	}
	demandOut struct {
		Body struct {
			Pool string    `json:"pool"`
			At   time.Time `json:"at"`
			PoolDemand
		}
	}
)

func (a *API) registerDemand(api huma.API) {
	register(a, api, huma.Operation{
		OperationID: "pool-demand", Method: http.MethodGet, Path: "/admin/v1/pools/{pool}/demand", Summary: "What a pool is asked for, and how many replicas it should have",
		Tags: []string{"operate"}, Errors: []int{404},
	}, a.demand)
}

func (a *API) demand(_ context.Context, in *demandIn) (*demandOut, error) {
	v := a.look(engine.Zoom{Pool: sluice.PoolID(in.Pool)}, 1)
	if len(v.Pools) == 0 {
		return nil, noPool(in.Pool)
	}
	out := &demandOut{}
	out.Body.Pool, out.Body.At, out.Body.PoolDemand = in.Pool, v.At.UTC(), demandView(&v.Pools[0].Demand)
	return out, nil
}

func noPool(id string) error {
	return &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no pool %q", id),
		Hint: "GET /admin/v1/status lists the pools",
	}
}

func demandView(d *engine.DemandView) PoolDemand {
	out := PoolDemand{Ratios: make(map[string]float64)}
	for k, n := range d.Ratios {
		if n >= 0 {
			out.Ratios[demand.Dimension(k).String()] = float64(n) / 1e6
		}
	}
	if k, n, ok := d.Ratios.Most(); ok {
		out.Ratio, out.Binding = float64(n)/1e6, k.String()
	}
	if d.Scaled {
		out.Replicas, out.Listed, out.Desired = &d.Replicas.Serving, &d.Replicas.Listed, &d.Desired
	}
	return out
}
