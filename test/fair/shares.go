package fair

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"sluice"
)

// Served is each client's work over a part of the run, by the log: what was
// charged less what was charged too much.
func (l *Log) Served(from, to time.Duration) []int64 {
	out := make([]int64, len(l.Clients))
	for _, e := range l.Events {
		switch e.Kind {
		case Dispatch, Correct, End, Fail:
			if e.At >= from && e.At < to {
				out[l.Requests[e.Req].Client] += e.Cost
			}
		}
	}
	return out
}

// Asked is the true work of what each client had waiting at from or asked for
// until to.
func (l *Log) Asked(from, to time.Duration) []int64 {
	out := make([]int64, len(l.Clients))
	begun := make([]bool, len(l.Requests))
	for _, e := range l.Events {
		if e.At < from && (e.Kind == Dispatch || e.Kind == Shed || e.Kind == Leave || e.Kind == Refuse) {
			begun[e.Req] = true
		}
	}
	for i := range l.Requests {
		q := &l.Requests[i]
		if q.At < to && !begun[i] {
			out[q.Client] += l.Cost.Of(q.True.In-q.True.Cached, q.True.Out)
		}
	}
	return out
}

// WaterFill is the max-min fair division of a capacity by weight: nobody gets more
// than demanded, and nobody who gets less could have more but at the cost of one
// who has less of it for its weight. It fills all from the bottom; who has enough
// drops out.
func WaterFill(demand, weight []float64, capacity float64) []float64 {
	order := make([]int, len(demand))
	left := 0.0
	for i := range order {
		order[i] = i
		left += weight[i]
	}
	sort.SliceStable(order, func(a, b int) bool {
		return demand[order[a]]/weight[order[a]] < demand[order[b]]/weight[order[b]]
	})
	out := make([]float64, len(demand))
	for _, i := range order {
		out[i] = min(demand[i], capacity*weight[i]/left)
		capacity -= out[i]
		left -= weight[i]
	}
	return out
}

// Share is one tenant's part of the service over a part of the run.
type Share struct {
	Tenant           sluice.TenantID
	Asked, Got, Fair float64
}

// MaxMin holds what the tenants of one class got from one moment to another
// against WaterFill of what they asked for: none may have less than its fair part
// but for tolerance, in parts of it.
func MaxMin(l *Log, from, to time.Duration, tolerance float64) ([]Share, error) {
	var tenants []sluice.TenantID
	for _, c := range l.Clients {
		if !slices.Contains(tenants, c.Tenant) {
			tenants = append(tenants, c.Tenant)
		}
	}
	asked, served := l.Asked(from, to), l.Served(from, to)
	demand, weight, got := make([]float64, len(tenants)), make([]float64, len(tenants)), make([]float64, len(tenants))
	total := 0.0
	for i, c := range l.Clients {
		k := slices.Index(tenants, c.Tenant)
		demand[k] += float64(asked[i])
		weight[k] = float64(max(c.Weight, 1))
		got[k] += float64(served[i])
		total += float64(served[i])
	}
	fill := WaterFill(demand, weight, total)
	var out []Share
	var err error
	for k, t := range tenants {
		s := Share{t, demand[k], got[k], fill[k]}
		out = append(out, s)
		if s.Got < s.Fair*(1-tolerance) && err == nil {
			err = violation("max-min", to, "tenant %s has %.0f of %.0f: %s", t, s.Got, s.Fair, Shares(out))
		}
	}
	return out, err
}

// Shares is a line of text.
func Shares(s []Share) string {
	var b strings.Builder
	for _, x := range s {
		fmt.Fprintf(&b, "%s %.3f of its part, ", x.Tenant, x.Got/max(x.Fair, 1))
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// Quantile is the p-th permille of durations, sorted here; 0 of none.
func Quantile(d []time.Duration, permille int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, len(d)*permille/1000)]
}
