package dryrun

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sluice"
	"sluice/internal/ledger"
)

// Bounds of a report.
const (
	maxGroups   = 100 // tenants by model
	maxMoves    = 100
	maxExamples = 3 // request ids
)

// Report is what would have become of requests.
type Report struct {
	Requests int `json:"requests" doc:"That were tried under both versions"`
	Unknown  int `json:"unknown" doc:"Left out, since the ledger lacks what their routing depended on"`
	Same     int `json:"same" doc:"Would have gone where they would go now"`
	Moved    int `json:"moved" doc:"Would have gone elsewhere: to another pool, or a backend that only one of the versions lets them go to"`
	Refused  int `json:"refused" doc:"Are served now and would have been refused"`
	Admitted int `json:"admitted" doc:"Are refused now and would have been served"`

	CostNow   sluice.Nano `json:"cost_now" doc:"Of what they took, at the backends of the version in force; of those that both serve"`
	CostThen  sluice.Nano `json:"cost_then" doc:"At those of the other"`
	Groups    []Group     `json:"groups" doc:"By tenant and model, those first of which most would change"`
	Moves     []Move      `json:"moves" doc:"From where to where, the most first"`
	Refusals  []Refusal   `json:"refusals" doc:"Why requests that are served now would be refused, the most first"`
	Truncated bool        `json:"truncated,omitempty" doc:"There are more groups, moves or refusals"`
}

// Group is the requests of one tenant for one model.
type Group struct {
	Tenant   string      `json:"tenant"`
	Model    string      `json:"model"`
	Requests int         `json:"requests"`
	Moved    int         `json:"moved"`
	Refused  int         `json:"refused"`
	Admitted int         `json:"admitted"`
	CostNow  sluice.Nano `json:"cost_now"`
	CostThen sluice.Nano `json:"cost_then"`
	Examples []string    `json:"examples,omitempty" doc:"Ids of some that would change"`
}

// Move is requests that would have gone elsewhere.
type Move struct {
	Model    string   `json:"model"`
	From     string   `json:"from" doc:"Pool and backend under the version in force"`
	To       string   `json:"to" doc:"Under the other"`
	Requests int      `json:"requests"`
	Examples []string `json:"examples" doc:"Ids of some"`
}

// Refusal is requests that would have been refused.
type Refusal struct {
	Model    string   `json:"model"`
	Reason   string   `json:"reason" doc:"The gateway's word"`
	Message  string   `json:"message" doc:"What one of their clients would be told"`
	Requests int      `json:"requests"`
	Examples []string `json:"examples" doc:"Ids of some"`
}

type pair struct{ a, b string }

type triple struct{ model, from, to string }

// tally is a report that is being made.
type tally struct {
	*Report
	groups   map[pair]*Group
	moves    map[triple]*Move
	refusals map[pair]*Refusal
}

func newReport() *tally {
	return &tally{&Report{}, map[pair]*Group{}, map[triple]*Move{}, map[pair]*Refusal{}}
}

func example(to *[]string, id sluice.RequestID) {
	if len(*to) < maxExamples {
		*to = append(*to, string(id))
	}
}

func (t *tally) add(e *ledger.Entry, took sluice.Usage, now, then *fate) {
	g := t.groups[pair{string(e.Tenant), string(e.Model)}]
	if g == nil {
		g = &Group{Tenant: string(e.Tenant), Model: string(e.Model)}
		t.groups[pair{g.Tenant, g.Model}] = g
	}
	t.Requests++
	g.Requests++
	switch {
	case now.refused != nil && then.refused != nil:
		t.Same++
		return
	case then.refused != nil:
		t.Refused++
		g.Refused++
		example(&g.Examples, e.Request)
		t.refuse(e, then.refused)
		return
	case now.refused != nil:
		t.Admitted++
		g.Admitted++
		example(&g.Examples, e.Request)
		return
	}
	if took.Source != sluice.UsageNone && now.row != nil && then.row != nil {
		a, b := now.row.Cost(took), then.row.Cost(took)
		t.CostNow, t.CostThen, g.CostNow, g.CostThen = t.CostNow+a, t.CostThen+b, g.CostNow+a, g.CostThen+b
	}
	if now.pool == then.pool && then.takes(now.backend) && now.takes(then.backend) {
		t.Same++
		return
	}
	t.Moved++
	g.Moved++
	example(&g.Examples, e.Request)
	key := triple{string(e.Model), string(now.pool) + "/" + string(now.backend), string(then.pool) + "/" + string(then.backend)}
	m := t.moves[key]
	if m == nil {
		m = &Move{Model: key.model, From: key.from, To: key.to}
		t.moves[key] = m
	}
	m.Requests++
	example(&m.Examples, e.Request)
}

func (t *tally) refuse(e *ledger.Entry, err *sluice.Error) {
	key := pair{string(e.Model), err.Reason.String()}
	r := t.refusals[key]
	if r == nil {
		r = &Refusal{Model: key.a, Reason: key.b, Message: err.Msg}
		t.refusals[key] = r
	}
	r.Requests++
	example(&r.Examples, e.Request)
}

// close sorts and bounds the report.
func (t *tally) close() {
	t.Groups = sorted(t.groups, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Moved+b.Refused+b.Admitted, a.Moved+a.Refused+a.Admitted), cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Tenant+" "+a.Model, b.Tenant+" "+b.Model))
	})
	t.Moves = sorted(t.moves, func(a, b *Move) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Model+a.From+a.To, b.Model+b.From+b.To))
	})
	t.Refusals = sorted(t.refusals, func(a, b *Refusal) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Model+a.Reason, b.Model+b.Reason))
	})
	t.Truncated = len(t.Groups) > maxGroups || len(t.Moves) > maxMoves || len(t.Refusals) > maxMoves
	t.Groups = t.Groups[:min(len(t.Groups), maxGroups)]
	t.Moves = t.Moves[:min(len(t.Moves), maxMoves)]
	t.Refusals = t.Refusals[:min(len(t.Refusals), maxMoves)]
}

func sorted[K comparable, V any](m map[K]*V, by func(a, b *V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range slices.SortedFunc(maps.Values(m), by) {
		out = append(out, *v)
	}
	return out
}

// splitNeeds are the names in a list of needs as the ledger has it.
func splitNeeds(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}
