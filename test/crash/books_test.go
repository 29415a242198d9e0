package crash

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/test/gateway"
)

// The prices of the configuration, in nano-dollars per token.
const (
	inputPrice  = 100
	outputPrice = 400
	budget      = 1_000_000 // dollars a month, of each tenant
)

// configuration has a model with a fallback, so that a request can have two
// attempts, and one that speaks the other dialect.
func configuration(url string) string {
	return fmt.Sprintf(`
lame_duck: 0s
log: {level: warn}
providers:
  engines: {dialect: openai, engine: vllm, base_url: "%[1]s/v1", price: {input: $0.10, output: $0.40}}
  other: {dialect: anthropic, base_url: "%[1]s/v1", stops_on_cancel: true, price: {input: $0.10, output: $0.40}}
pools:
  first:
    backends: [{name: a, provider: engines, model: sim-small, context: 128k, max_output: 8k, capacity: {concurrency: 512}}]
  second:
    backends: [{name: b, provider: engines, model: sim-large, context: 128k, max_output: 8k, capacity: {concurrency: 512}}]
  third:
    backends: [{name: c, provider: other, model: claude-like, context: 128k, max_output: 8k, capacity: {concurrency: 512}}]
models:
  fast: {pools: [first], fallback: [{pool: second, allow_unevaluated: true}]}
  claude: {pools: [third]}
plans:
  hard: {class: interactive, spend: hard, limits: {spend_per_month: $%[2]d, requests_per_day: 10M}}
  soft: {class: interactive, spend: soft, journal_sync: group, limits: {spend_per_month: $%[2]d, requests_per_day: 10M}}
`, url, budget)
}

// trouble is what the provider does to a share of the requests.
func (p *provider) trouble() {
	for _, model := range []string{"sim-small", "claude-like"} {
		p.Play(model,
			fakellm.Rule{Fault: "status=503", Probability: .05},
			fakellm.Rule{Fault: "die-after=3", Probability: .03},
			fakellm.Rule{Fault: "truncate=5", Probability: .03},
			fakellm.Rule{Fault: "error-event=2", Probability: .03},
			fakellm.Rule{Fault: "first=2s", Probability: .05},
		)
	}
}

// audit is what is asked of the books after each restart, and what was found so
// far.
type audit struct {
	t *testing.T
	g *gateway.Gateway
	p *provider
	l *load

	// missing judges a call that has no entry; nil forgives none.
	missing func(c *call) bool
	// unsettled judges a client's whole answer whose settlement was lost; nil
	// forgives none.
	unsettled func(a answered) bool
	// unended judges a request of which there are attempts and no end; nil forgives
	// none.
	unended func(e *gateway.Entry) bool

	forgiven map[*call]bool
	lost     int // entries of lost attempts
	attempts int
	calls    int
	answers  int
}

// pair names an attempt by what client and provider both know: the client's label
// and the model that was called.
type pair struct{ user, model string }

// check waits until all is settled and holds the ledger against the provider.
func (a *audit) check() {
	t := a.t
	t.Helper()
	calls, book := a.p.settled(t)
	status := a.g.Quiet()
	if status.Expired != 0 {
		t.Errorf("%d expired holds", status.Expired)
	}
	a.g.Verify()
	entries := a.g.Entries()
	a.requests(entries)
	byPair := a.entries(entries, book)
	a.provider(calls, book, byPair)
	a.clients(entries, book)
	a.budgets(entries)
	a.attempts, a.calls, a.answers = len(entries), len(calls), len(a.l.done)
}

// requests wants every request to have ended once, by attempts numbered from 1 on,
// and nothing twice.
func (a *audit) requests(entries []gateway.Entry) {
	t := a.t
	t.Helper()
	finals, users := map[string]int{}, map[string]string{}
	attempts, last, some := map[string]bool{}, map[string]int{}, map[string]*gateway.Entry{}
	for i := range entries {
		e := &entries[i]
		if e.Final {
			finals[e.Request]++
		} else if finals[e.Request] == 0 {
			finals[e.Request] = 0
		}
		some[e.Request] = e
		key := fmt.Sprint(e.Request, "/", e.Attempt)
		if attempts[key] {
			t.Errorf("%s is in the ledger twice", key)
		}
		attempts[key] = true
		if e.Attempt > 0 {
			if last[e.Request]++; last[e.Request] != e.Attempt { // they are ordered
				t.Errorf("%s is the %d. attempt of its request in the ledger", key, last[e.Request])
			}
		}
		if e.User == "" {
			continue
		}
		if other, ok := users[e.User]; ok && other != e.Request {
			t.Errorf("request %s and %s are both of %s", e.Request, other, e.User)
		}
		users[e.User] = e.Request
	}
	for id, n := range finals {
		if n != 1 && (n > 0 || a.unended == nil || !a.unended(some[id])) {
			t.Errorf("request %s has %d ends", id, n)
		}
	}
}

// entries wants those that name a call to name one that there was, and returns
// all by what they were for.
func (a *audit) entries(entries []gateway.Entry, book map[string]*fakellm.Served) map[pair][]*gateway.Entry {
	t := a.t
	t.Helper()
	byPair := map[pair][]*gateway.Entry{}
	named := map[string]bool{}
	a.lost = 0
	for i := range entries {
		e := &entries[i]
		if e.Reason == "lost" {
			a.lost++
		}
		if e.Attempt == 0 {
			continue
		}
		byPair[pair{e.User, e.Upstream}] = append(byPair[pair{e.User, e.Upstream}], e)
		if e.UpstreamID == "" {
			continue
		}
		if book[e.UpstreamID] == nil {
			t.Errorf("request %s attempt %d names the call %s, which the provider does not know", e.Request, e.Attempt, e.UpstreamID)
		}
		if named[e.UpstreamID] {
			t.Errorf("the call %s is in the ledger twice", e.UpstreamID)
		}
		named[e.UpstreamID] = true
		if s := book[e.UpstreamID]; e.Source == "reported" && s != nil && (e.Input != int64(s.Input) || e.Output != int64(s.Output)) {
			t.Errorf("request %s is settled at %d in, %d out, reported; the provider says %d and %d", e.Request, e.Input, e.Output, s.Input, s.Output)
		}
	}
	return byPair
}

// provider wants every call to have exactly one entry, which is not zero if the
// provider bills it, and at its high figure covers the bill where spend is hard.
func (a *audit) provider(calls []*call, book map[string]*fakellm.Served, byPair map[pair][]*gateway.Entry) {
	t := a.t
	t.Helper()
	used := map[*gateway.Entry]bool{}
	find := func(c *call, named bool) *gateway.Entry {
		for _, e := range byPair[pair{c.user, upstreamName(c.model)}] {
			if !used[e] && (named && e.UpstreamID == c.id || !named && e.UpstreamID == "") {
				used[e] = true
				return e
			}
		}
		return nil
	}
	matched := map[*call]*gateway.Entry{}
	for _, named := range []bool{true, false} { // those that were lost do not know the provider's id
		for _, c := range calls {
			if matched[c] == nil {
				matched[c] = find(c, named)
			}
		}
	}
	for _, c := range calls {
		s, e := book[c.id], matched[c]
		switch {
		case s == nil:
			t.Errorf("the call %s of %s is not in the provider's own book", c.id, c.user)
		case e == nil && (a.missing == nil || !a.missing(c)):
			t.Errorf("the call %s of %s at %v has no entry", c.id, c.user, c.at)
		case e == nil:
			a.forgiven[c] = true
		case s.Billed && (e.Cost <= 0 || e.CostHigh < e.Cost || e.Input <= 0):
			t.Errorf("the call %s is billed %d in, %d out, and request %s attempt %d is settled at %+v", c.id, s.Input, s.Output, e.Request, e.Attempt, e)
		case strings.HasPrefix(c.user, hard) && s.Billed && e.CostHigh < inputPrice*int64(s.Input)+outputPrice*int64(s.Output):
			t.Errorf("the call %s is billed %d in, %d out, and a hard budget was charged %d for it: %+v", c.id, s.Input, s.Output, e.CostHigh, e)
		}
	}
	for _, es := range byPair {
		for _, e := range es {
			if !used[e] && e.Source != "none" && e.Reason != "lost" {
				t.Errorf("request %s attempt %d was charged and no call was made for it: %+v", e.Request, e.Attempt, e)
			}
		}
	}
}

// clients wants whole answers to be settled as such: the settlement is on file
// before the client has the last bytes.
func (a *audit) clients(entries []gateway.Entry, book map[string]*fakellm.Served) {
	t := a.t
	t.Helper()
	finals := map[string]*gateway.Entry{}
	for i := range entries {
		if entries[i].Final {
			finals[entries[i].User] = &entries[i]
		}
	}
	for _, d := range a.l.done {
		e := finals[d.user]
		if e != nil && e.Outcome == "completed" {
			if s := book[e.UpstreamID]; s == nil || s.End != fakellm.EndCompleted {
				t.Errorf("%s had the whole answer, of which the provider says %+v", d.user, s)
			}
			continue
		}
		if a.unsettled == nil || !a.unsettled(d) {
			t.Errorf("%s had the whole answer at %v, and the ledger says %+v", d.user, d.at, e)
		}
	}
}

// budgets wants what is left of each tenant's month to be the budget without what
// the ledger says at the high figure, lost attempts included.
func (a *audit) budgets(entries []gateway.Entry) {
	t := a.t
	t.Helper()
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for _, tenant := range []string{hard, soft} {
		var want int64
		for i := range entries {
			if e := &entries[i]; e.Tenant == tenant && e.AtMicros >= month {
				want += e.CostHigh
			}
		}
		if got := a.spent(tenant); got != want {
			t.Errorf("tenant %s: after the restart %d are spent, the ledger says %d at the high figure", tenant, got, want)
		}
	}
}

// spent is what the running gateway thinks that a tenant has spent this month,
// told by a request that is held up at the provider, which is given up then.
func (a *audit) spent(tenant string) int64 {
	t := a.t
	t.Helper()
	release := a.l.hold(t, tenant)
	defer release()
	for _, account := range a.g.Status().Top {
		if account.Scope != "tenant" || account.ID != tenant {
			continue
		}
		for _, c := range account.Counters {
			if c.Limit == "spend_per_month" {
				used, err := sluice.ParseMoney(c.Used.String())
				if err != nil {
					t.Error(err)
				}
				return int64(used)
			}
		}
	}
	t.Errorf("the status does not tell the budget of tenant %s", tenant)
	return -1
}
