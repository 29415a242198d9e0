package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"sluice/internal/admin"
)

// flows prints one pool or one tenant.
func (c *statusCmd) flows(ctx context.Context, api *client, to io.Writer) error {
	q := url.Values{"limit": {count(c.Limit)}}
	if c.What != "" {
		q.Set("pool", c.What)
	}
	if c.Tenant != "" {
		q.Set("tenant", c.Tenant)
	}
	var f admin.Flows
	if err := api.get(ctx, "/admin/v1/flows", q, &f); err != nil {
		return err
	}
	v := view{data: f, columns: flowColumns}
	for i := range f.Pools {
		v.rows = append(v.rows, flowRows(&f.Pools[i], true)...)
	}
	if c.Output == "table" {
		var b strings.Builder
		if err := c.flowsText(&b, &f); err != nil {
			return err
		}
		v.text = b.String()
	}
	if err := c.print(to, v); err != nil {
		return err
	}
	return stateCode(f.State)
}

func (c *statusCmd) flowsText(b *strings.Builder, f *admin.Flows) error {
	if stateCode(f.State) != nil { // what it exits with
		fmt.Fprintf(b, "the gateway is %s\n", f.State)
	}
	if len(f.Pools) == 0 {
		fmt.Fprintf(b, "tenant %s: nothing waits or runs, nothing was refused lately\n", plain(c.Tenant))
		return nil
	}
	for i := range f.Pools {
		p := &f.Pools[i]
		fmt.Fprintf(b, "pool %s: %d waiting, oldest %s, %d running; an arrival waits about %s\n", plain(p.Pool), p.Waiting, span(p.OldestSeconds), poolRunning(p), arrivalWait(p))
	}
	if err := queueText(b, f.Pools, true); err != nil {
		return err
	}
	if len(f.Requests) == 0 {
		return nil
	}
	rows := view{columns: []string{"request", "tenant", "class", "pool", "model", "waited", "position", "expected", "predicted", "work"}}
	for i := range f.Requests {
		r := &f.Requests[i]
		rows.rows = append(rows.rows, []string{
			r.Request, r.Tenant, r.Class, r.Pool, r.Model, span(r.WaitedSeconds), count(r.Position), known(r.WaitSeconds), known(r.PredictedSeconds), count(r.Work),
		})
	}
	b.WriteString("\n")
	return table(b, rows)
}

func poolRunning(p *admin.PoolStatus) (n int64) {
	for i := range p.Backends {
		n += p.Backends[i].Running
	}
	return n
}

// queueText writes the tables of the queues in which something happens: classes,
// tenants, contracts, and what gathers. near tells of projects too.
func queueText(b *strings.Builder, pools []admin.PoolStatus, near bool) error {
	classes := view{columns: []string{"pool", "class", "waiting", "oldest", "running", "work/s", "share%", "fair%", "gap", "refused/min", "refused"}}
	flows := view{columns: []string{"pool", "class", "tenant", "waiting", "oldest", "running", "work/s", "share%", "fair%", "lead", "refused/min", "refused", "marks"}}
	contracts := view{columns: []string{"pool", "contract of", "slots", "of", "kv tokens", "of", "inside", "overflow", "waiting", "idle part"}}
	for i := range pools {
		p := &pools[i]
		classes.rows = append(classes.rows, classRows(p)...)
		flows.rows = append(flows.rows, flowRows(p, near)...)
		for _, k := range p.Contracts {
			contracts.rows = append(contracts.rows, []string{
				p.Pool, k.Tenant, count(k.Used.Slots), count(k.Reserve.Slots), count(k.Used.KV), count(k.Reserve.KV), count(k.Inside), count(k.Overflow), count(k.Waiting), strings.ReplaceAll(k.State, "_", " "),
			})
		}
	}
	for _, v := range []view{classes, flows, contracts} {
		if len(v.rows) == 0 {
			continue
		}
		b.WriteString("\n")
		if err := table(b, v); err != nil {
			return err
		}
	}
	for i := range pools {
		if n := pools[i].MoreFlows; n > 0 {
			fmt.Fprintf(b, "(pool %s: %s, --limit N)\n", plain(pools[i].Pool), plural(n, "more tenant"))
		}
	}
	for i := range pools {
		if g := pools[i].Gathering; g != nil {
			fmt.Fprintf(b, "\npool %s gathers %s for %s (%s, %s): work of %d of its allowance of %d has passed it\n", plain(pools[i].Pool),
				cmp.Or(plain(g.Backend), "a part of the pool"), plain(g.Request), plain(g.Tenant), g.Class, g.Passed, g.Allowance)
		}
	}
	return nil
}

func classRows(p *admin.PoolStatus) (rows [][]string) {
	for i := range p.Classes {
		k := &p.Classes[i]
		if k.Waiting+k.Running == 0 && k.Rate == 0 && len(k.Refused) == 0 {
			continue
		}
		rows = append(rows, []string{
			p.Pool, k.Class, count(k.Waiting), span(k.OldestSeconds), count(k.Running), count(k.Rate), percent(k.Share), percent(k.FairShare), count(k.Gap),
			count(k.RefusedPerMinute), refusedText(k.Refused),
		})
	}
	return rows
}

// flowColumns head what flowRows makes for csv.
var flowColumns = []string{"pool", "class", "tenant", "waiting", "oldest", "running", "work_per_second", "share_percent", "fair_percent", "lead", "refused_per_minute", "refused", "marks"}

func flowRows(p *admin.PoolStatus, near bool) (rows [][]string) {
	for i := range p.Flows {
		f := &p.Flows[i]
		rows = append(rows, []string{
			p.Pool, f.Class, f.Tenant, count(f.Waiting), span(f.OldestSeconds), count(f.Running), count(f.Rate), percent(f.Share), percent(f.FairShare), count(f.Lead),
			count(f.RefusedPerMinute), refusedText(f.Refused), strings.ReplaceAll(strings.Join(f.Marks, ", "), "_", " "),
		})
		if !near || len(f.Projects) < 2 {
			continue
		}
		for _, j := range f.Projects {
			rows = append(rows, []string{p.Pool, f.Class, f.Tenant + "/" + j.Project, count(j.Waiting), "", count(j.Running), "", "", "", count(j.Lead), "", "", ""})
		}
	}
	return rows
}

// percent writes a fraction.
func percent(f float64) string { return count(int(math.Round(f * 100))) }

// refusedText writes counts by reason, the most frequent first.
func refusedText(m map[string]int64) string {
	why := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	for i, r := range why {
		why[i] = fmt.Sprintf("%s %d", r, m[r])
	}
	return strings.Join(why, ", ")
}

// request prints one open request.
func (c *statusCmd) request(ctx context.Context, api *client, to io.Writer) error {
	var q url.Values
	if c.Tenant != "" {
		q = url.Values{"tenant": {c.Tenant}}
	}
	var r admin.RequestWait
	if err := api.get(ctx, "/admin/v1/requests/"+seg(c.What)+"/wait", q, &r); err != nil {
		return err
	}
	rows := pairs("request", r.Request, "phase", r.Phase, "tenant", r.Tenant, "project", r.Project, "key", r.Key, "model", r.Model, "class", r.Class, "pool", r.Pool, "arrived", span(r.AgeSeconds)+" ago")
	if r.Phase == "waiting" {
		rows = append(rows, waitRows(&r)...)
	}
	if r.Backend != "" {
		inside := ""
		if r.Inside {
			inside = "yes"
		}
		rows = append(rows, pairs("backend", r.Backend, "attempt", count(r.Attempt), "running", span(r.Seconds), "inside contract", inside, "hold expires", span(r.Expires)+" without activity")...)
	}
	rows = append(rows, pairs("work", count(r.Work), "needs", needsText(&r.Needs))...)
	for _, name := range slices.Sorted(maps.Keys(r.Holds)) {
		h := r.Holds[name]
		rows = append(rows, []string{"holds " + strings.ReplaceAll(name, "_", " "), h.String()})
	}
	return c.print(to, view{data: r, columns: fieldColumns, rows: rows})
}

func waitRows(r *admin.RequestWait) [][]string {
	rows := pairs(
		"waited", span(r.WaitedSeconds)+" of at most "+span(r.MaxWaitSeconds), "position", count(r.Position), "expected wait", known(r.WaitSeconds),
		"predicted", known(r.PredictedSeconds)+" at arrival",
	)
	if r.Passed > 0 || r.Gathering {
		passed := fmt.Sprintf("work of %d came later and was served; its allowance is %d", r.Passed, r.Allowance)
		if r.Gathering {
			passed += ", and what becomes free is gathered for it"
		}
		rows = append(rows, []string{"passed", passed})
	}
	for i := range r.Lacks {
		rows = append(rows, []string{"lacks", r.Lacks[i].Why})
	}
	return rows
}

// known writes a wait that is not known until something has been served.
func known(s float64) string {
	if s == 0 {
		return "?"
	}
	return span(s)
}

// arrivalWait writes for how long an arrival would wait: 0s is at once.
func arrivalWait(p *admin.PoolStatus) string {
	if p.WaitUnknown {
		return "?"
	}
	return span(p.WaitSeconds)
}

func needsText(n *admin.Capacity) string {
	var parts []string
	for _, d := range []struct {
		n    int64
		what string
	}{{n.Slots, "slots"}, {n.KV, "kv tokens"}, {n.Prefill, "prefill tokens"}} {
		if d.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", d.n, d.what))
		}
	}
	return strings.Join(parts, ", ")
}
