package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
)

// rig is one pool with one backend, for cases about limits.
type rig struct {
	*testing.T
	eng    *engine.Engine
	now    time.Time
	policy *sluice.Policy
	n      int
}

func newRig(t *testing.T, row *price.Row, p *sluice.Policy) *rig {
	b := &route.Backend{ID: "b", Dialect: "openai", Weight: 1, Price: row, Capacity: route.Capacity{Concurrency: 1000}}
	table := &route.Table{
		Version: "v1",
		Models:  map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools:   map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{b}}},
	}
	return &rig{T: t, eng: engine.New(engine.Config{Table: table}), now: start, policy: p}
}

// outputAt is a price for output alone, in dollars per million.
func outputAt(dollars int64) *price.Row {
	return &price.Row{Rates: price.Rates{Output: sluice.Price(dollars) * sluice.Price(sluice.Dollar)}}
}

func policy(hard bool, scope sluice.Scope, limits ...sluice.Limit) *sluice.Policy {
	p := &sluice.Policy{HardSpend: hard}
	p.Limits[scope] = limits
	return p
}

// call asks for a place at once, and is told.
func (r *rig) call(w sluice.Work) (engine.Grant, *sluice.Error) {
	r.n++
	c := engine.Call{
		ID: sluice.RequestID(fmt.Sprint("r", r.n)), Model: "m", Dialect: "openai", Work: w,
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Policy: r.policy},
	}
	if v := r.eng.Arrive(r.now, c); v.Err != nil {
		return engine.Grant{}, v.Err
	}
	for _, g := range r.eng.Advance(r.now) {
		if g.ID == c.ID {
			return g, g.Err
		}
	}
	r.Fatalf("%s: neither granted nor refused", c.ID)
	return engine.Grant{}, nil
}

func (r *rig) mustCall(w sluice.Work) engine.Grant {
	r.Helper()
	g, err := r.call(w)
	if err != nil {
		r.Fatalf("refused: %v", err)
	}
	return g
}

func (r *rig) settle(g engine.Grant, in, out sluice.Tokens, cost sluice.Nano) error {
	return r.eng.Settle(r.now, g.ID, engine.Actual{Usage: sluice.Usage{Input: in, Output: out, Source: sluice.UsageReported}, Cost: cost})
}

// spent is what the tenant's budget has posted in the window in force.
func (r *rig) spent() sluice.Nano {
	probe := r.mustCall(sluice.Work{})
	defer r.eng.Cancel(r.now, probe.ID, sluice.ClientGone)
	for _, a := range r.eng.Dump(r.now, engine.Zoom{}, 10).Top {
		for _, c := range a.Counters {
			if c.Limit.Dimension == sluice.Spend {
				return sluice.Nano(c.Used)
			}
		}
	}
	r.Fatal("no budget")
	return 0
}

func TestCase_cL1_ConcurrentCallsReserveFirst(t *testing.T) {
	r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 100}))
	admitted := 0
	for range 5 {
		_, err := r.call(sluice.Work{Input: 10, OutputHold: 130, OutputBound: 130})
		if err == nil {
			admitted++
			continue
		}
		if err.Kind != sluice.KindRateLimited || err.Refusal == nil || err.Refusal.Scope != sluice.ScopeKey || err.Refusal.Limit.Amount != 100 {
			t.Errorf("refused by %+v, want the key's 100 output tokens per minute", err)
		}
	}
	if admitted != 1 {
		t.Errorf("%d admitted, want 1", admitted)
	}
}

func TestCase_cL2_LargeBoundsSmallAnswers(t *testing.T) {
	budget := sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(sluice.Dollar)}
	for _, hard := range []bool{false, true} {
		r := newRig(t, outputAt(10), policy(hard, sluice.ScopeTenant, budget))
		w := sluice.Work{OutputHold: 512, OutputBound: 32000}
		var grants []engine.Grant
		for range 4 {
			grants = append(grants, r.mustCall(w))
		}
		if hard {
			_, err := r.call(w)
			if err == nil || err.Reason != sluice.BudgetHeld || err.Refusal.Used != 0 || err.Refusal.Held != budget.Amount {
				t.Errorf("hard: a fifth call got %+v, want budget_held and $1 held by requests in flight", err)
			}
		}
		for _, g := range grants {
			if err := r.settle(g, 0, 50, 500_000); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.spent(); got != 2_000_000 {
			t.Errorf("hard=%v: spent %v, want 4 × 50 tokens at $10 per million", hard, got)
		}
		g := r.mustCall(w)
		_ = r.settle(g, 0, 32000, sluice.Dollar)
		if _, err := r.call(w); err == nil || err.Reason != sluice.BudgetSpent {
			t.Errorf("hard=%v: after the budget is gone: %v, want budget_spent", hard, err)
		}
	}
}

func TestCase_cL3_UnknownPriceIsNeverFree(t *testing.T) {
	p := policy(false, sluice.ScopeTenant, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 10_000_000})
	r := newRig(t, nil, p)
	for range 10 {
		if _, err := r.call(sluice.Work{Input: 100, OutputHold: 100, OutputBound: 100}); err == nil || err.Reason != sluice.Unpriced {
			t.Fatalf("without a price: %v, want unpriced", err)
		}
	}
	table := &route.Table{
		Models: map[sluice.ModelID]*route.Model{"m": {ID: "m", Pools: []sluice.PoolID{"a"}}},
		Pools: map[sluice.PoolID]*route.Pool{"a": {ID: "a", Backends: []*route.Backend{
			{ID: "b", Dialect: "openai", Weight: 1, Ceiling: outputAt(30)},
		}}},
	}
	plan, err := r.eng.Prepare(table)
	if err != nil {
		t.Fatal(err)
	}
	r.eng.Swap(r.now, plan)
	admitted := 0
	for range 10 {
		g, err := r.call(sluice.Work{Input: 100, OutputHold: 100, OutputBound: 100})
		if err == nil {
			admitted++
			if g.HeldSpend != 3_000_000 {
				t.Errorf("holds %v, want 100 tokens at the ceiling", g.HeldSpend)
			}
		}
	}
	if admitted != 3 {
		t.Errorf("%d admitted on $0.01 at $0.003 each, want 3", admitted)
	}
}

func TestCase_cL4_BalanceForOne(t *testing.T) {
	const cost = 1_000_000 // 100 tokens at $10 per million
	r := newRig(t, outputAt(10), policy(true, sluice.ScopeTenant, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: cost}))
	var grants []engine.Grant
	for range 50 {
		if g, err := r.call(sluice.Work{OutputHold: 100, OutputBound: 100}); err == nil {
			grants = append(grants, g)
		} else if err.Reason != sluice.BudgetHeld {
			t.Errorf("refused with %v, want budget_held", err.Reason)
		}
	}
	if len(grants) != 1 {
		t.Fatalf("%d of 50 admitted, want 1", len(grants))
	}
	if err := r.settle(grants[0], 0, 100, cost); err != nil {
		t.Fatal(err)
	}
	if got := r.spentOfClosed(); got != cost {
		t.Errorf("spent %v, want %v", got, sluice.Nano(cost))
	}
}

// spentOfClosed is spent for a budget that admits nothing more: a refusal tells.
func (r *rig) spentOfClosed() sluice.Nano {
	_, err := r.call(sluice.Work{OutputHold: 100, OutputBound: 100})
	if err == nil || err.Reason != sluice.BudgetSpent {
		r.Fatalf("got %v, want budget_spent", err)
	}
	return sluice.Nano(err.Refusal.Used)
}

func TestCase_cL6_HeadersComeFromTheCounterThatDecides(t *testing.T) {
	r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 100_000}))
	remaining := func(g engine.Grant) int64 {
		limits := g.Limits.States(nil)
		if len(limits) != 1 {
			t.Fatalf("limits %+v, want one", limits)
		}
		return limits[0].Remaining
	}
	first := r.mustCall(sluice.Work{Input: 600})
	if got := remaining(first); got != 99_400 {
		t.Errorf("remaining %d with 600 held, want 99400", got)
	}
	_ = r.settle(first, 500, 0, 0)
	for range 9 {
		_ = r.settle(r.mustCall(sluice.Work{Input: 600}), 500, 0, 0)
	}
	if got := remaining(r.mustCall(sluice.Work{})); got != 95_000 {
		t.Errorf("remaining %d after 10 calls of 500, want 95000", got)
	}
}

func TestCase_cL7_RollExpireSettleTwice(t *testing.T) {
	r := newRig(t, outputAt(10), policy(false, sluice.ScopeTenant, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerHour, Amount: int64(sluice.Dollar)}))
	g := r.mustCall(sluice.Work{OutputHold: 1000, OutputBound: 1000})
	r.now = r.now.Add(time.Hour) // the window rolls and the hold expires
	expired := r.eng.Advance(r.now)
	if len(expired) != 1 || expired[0].Err == nil || expired[0].Err.Reason != sluice.HoldExpired {
		t.Fatalf("advance says %+v, want hold_expired", expired)
	}
	previous := func() int64 {
		probe := r.mustCall(sluice.Work{})
		defer r.eng.Cancel(r.now, probe.ID, sluice.ClientGone)
		return r.eng.Dump(r.now, engine.Zoom{}, 1).Top[0].Counters[0].Previous
	}
	if got := previous(); got != 10_000_000 {
		t.Errorf("charged %d at expiry, want the hold of 10000000", got)
	}
	if err := r.settle(g, 0, 400, 4_000_000); !errors.Is(err, engine.ErrLate) {
		t.Errorf("first settle: %v, want ErrLate", err)
	}
	if err := r.settle(g, 0, 400, 4_000_000); !errors.Is(err, engine.ErrSettled) {
		t.Errorf("second settle: %v, want ErrSettled", err)
	}
	if got := previous(); got != 4_000_000 {
		t.Errorf("the hour of the reservation has %d, want the actual once", got)
	}
	if got := r.spent(); got != 0 {
		t.Errorf("the hour of the settlement has %v, want nothing", got)
	}
}

func TestCase_cL8_UnsetMeansUnlimited(t *testing.T) {
	r := newRig(t, outputAt(10), policy(true, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1}))
	g := r.mustCall(sluice.Work{Input: 50_000, InputBound: 200_000, OutputHold: 4000, OutputBound: 128_000})
	if g.Clamped || g.OutputBound != 128_000 {
		t.Errorf("bound %d clamped=%v, want it as it is", g.OutputBound, g.Clamped)
	}
	if _, err := r.call(sluice.Work{Input: 1}); err == nil || err.Reason != sluice.RateLimited {
		t.Errorf("a second request: %v, want the limit that is set", err)
	}
}

func TestCase_cL10_StreamOverTheEndOfAMonth(t *testing.T) {
	r := newRig(t, outputAt(10), policy(false, sluice.ScopeTenant, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: int64(sluice.Dollar)}))
	r.now = time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)
	stream := r.mustCall(sluice.Work{OutputHold: 99_000, OutputBound: 100_000})
	r.now = r.now.Add(5 * time.Minute)
	if d := r.eng.Progress(r.now, stream.ID, sluice.Usage{}); d.Stop {
		t.Fatal("the stream was stopped")
	}
	december := r.mustCall(sluice.Work{OutputHold: 90_000, OutputBound: 90_000}) // November's hold is not December's
	if err := r.settle(stream, 0, 100_000, sluice.Dollar); err != nil {
		t.Fatal(err)
	}
	_ = r.settle(december, 0, 10_000, sluice.Dollar/10)
	if got := r.spent(); got != sluice.Dollar/10 {
		t.Errorf("December has %v, want its own request alone", got)
	}
}

func TestCase_cL12_TheWaitIsTheRefill(t *testing.T) {
	r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 600}))
	_ = r.settle(r.mustCall(sluice.Work{Input: 550}), 550, 0, 0)
	_, err := r.call(sluice.Work{Input: 100})
	if err == nil || err.RetryAfter != 5*time.Second {
		t.Fatalf("50 missing at 10 per second: %v after %v, want 5s", err, err.RetryAfter)
	}
	r.now = r.now.Add(err.RetryAfter - time.Nanosecond)
	if _, err := r.call(sluice.Work{Input: 100}); err == nil {
		t.Error("admitted before the time that was told")
	}
	r.now = r.now.Add(time.Nanosecond)
	r.mustCall(sluice.Work{Input: 100})
}

func TestCase_cD2_AbortedStreamsFreeTheirSlots(t *testing.T) {
	r := newRig(t, outputAt(0), policy(false, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Concurrency, Amount: 3}))
	for range 10 {
		g, err := r.call(sluice.Work{Input: 10, OutputHold: 10, OutputBound: 10})
		if err != nil {
			t.Fatalf("a stream after aborted ones: %v", err)
		}
		if err := r.eng.Settle(r.now, g.ID, engine.Actual{Usage: sluice.Usage{Input: 10, Output: 2}, Outcome: sluice.Cancelled, Reason: sluice.ClientGone}); err != nil {
			t.Fatal(err)
		}
	}
	r.mustCall(sluice.Work{Input: 10})
}

func TestCase_cD6_CapacityAfterAborts(t *testing.T) {
	r := newRig(t, outputAt(10), &sluice.Policy{})
	r.policy.Limits[sluice.ScopeKey] = []sluice.Limit{
		{Dimension: sluice.Requests, Window: sluice.PerHour, Amount: 1000},
		{Dimension: sluice.InputTokens, Window: sluice.PerHour, Amount: 1_000_000},
		{Dimension: sluice.OutputTokens, Window: sluice.PerMinute, Amount: 1_000_000},
		{Dimension: sluice.Concurrency, Amount: 200},
		{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: int64(sluice.Dollar)},
	}
	var grants []engine.Grant
	for range 100 {
		grants = append(grants, r.mustCall(sluice.Work{Input: 100, OutputHold: 500, OutputBound: 32000}))
	}
	for i, g := range grants {
		if i < 50 { // aborted in mid-stream
			_ = r.settle(g, 100, 20, 200_000)
		} else { // aborted before the backend was dialled
			r.eng.Cancel(r.now, g.ID, sluice.ClientGone)
		}
	}
	want := []int64{1000 - 50, 1_000_000 - 5000, 1_000_000 - 1000, 200, int64(sluice.Dollar) - 50*200_000}
	probe := r.mustCall(sluice.Work{})
	for i, l := range probe.Limits.States(nil) {
		if l.Limit.Dimension == sluice.Requests || l.Limit.Dimension == sluice.Concurrency {
			l.Remaining++ // the probe itself
		}
		if l.Remaining != want[i] {
			t.Errorf("%v: %d remain, want %d", l.Limit.Dimension, l.Remaining, want[i])
		}
	}
}

func TestCase_cS8_ABackendThatFailsIsLeftAlone(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p weight=10 conc=100\nbackend b pool=p weight=1 conc=100\nmodel m pools=p")
	r := &rig{T: t, eng: engine.New(engine.Config{Table: table}), now: start, policy: &sluice.Policy{}}
	onA := 0
	for range 11 {
		g := r.mustCall(sluice.Work{Input: 1})
		for g.Backend.ID == "a" {
			onA++
			if r.eng.AttemptEnded(r.now, g.ID, engine.Result{Reason: sluice.UpstreamError}).Step != engine.Queue {
				t.Fatal("no further attempt")
			}
			g = r.eng.Advance(r.now)[0]
		}
		_ = r.settle(g, 1, 1, 0)
	}
	if onA != route.DefaultFailures {
		t.Errorf("a got %d of 11 requests, want %d and then none", onA, route.DefaultFailures)
	}
}

// A request that may not wait is retried where there is a place now.
func TestRetryThatMayNotWait(t *testing.T) {
	table := parseTable(t, "pool p\nbackend a pool=p conc=1\nbackend b pool=p conc=1\npool q\nbackend c pool=q conc=1\nmodel m pools=p fallback=q")
	r := &rig{T: t, eng: engine.New(engine.Config{Table: table}), now: start, policy: &sluice.Policy{}}
	first := r.mustCall(sluice.Work{Input: 1})
	r.mustCall(sluice.Work{Input: 1}) // has b
	if r.eng.AttemptEnded(r.now, first.ID, engine.Result{Reason: sluice.UpstreamError}).Step != engine.Queue {
		t.Fatal("no further attempt")
	}
	if g := r.eng.Advance(r.now); len(g) != 1 || g[0].Err != nil || g[0].Backend.ID != "c" {
		t.Errorf("got %+v, want the fallback at once", g)
	}
}

func TestHardSpendClamps(t *testing.T) {
	r := newRig(t, outputAt(10), policy(true, sluice.ScopeTenant, sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1_000_000}))
	for _, c := range []struct {
		name  string
		used  sluice.Nano // before
		bound sluice.Tokens
		want  sluice.Tokens // 0: refused
	}{
		{"fits", 0, 100, 100},
		{"clamped", 500_000, 100, 50},
		{"clamped to the least", 340_000, 100, 16},
		{"below the least", 100, 100, 0},
		{"small bounds are not held to the least", 50_000, 5, 5},
	} {
		if c.used > 0 {
			_ = r.settle(r.mustCall(sluice.Work{}), 0, 0, c.used)
		}
		g, err := r.call(sluice.Work{OutputHold: 10, OutputBound: c.bound})
		if c.want == 0 {
			if err == nil || err.Reason != sluice.BudgetSpent {
				t.Errorf("%s: %v, want budget_spent", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if g.OutputBound != c.want || g.Clamped != (c.want < c.bound) || g.HeldSpend != sluice.Nano(c.want)*10_000 {
			t.Errorf("%s: bound %d, clamped %v, holds %v; want %d", c.name, g.OutputBound, g.Clamped, g.HeldSpend, c.want)
		}
		r.eng.Cancel(r.now, g.ID, sluice.ClientGone)
	}
}

func TestRestoreAndSeed(t *testing.T) {
	p := policy(true, sluice.ScopeTenant,
		sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 1_000_000},
		sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 1000})
	r := newRig(t, outputAt(10), p)
	r.eng.Seed(r.now, []engine.Spent{
		{Scope: sluice.ScopeTenant, Tenant: "acme", Dimension: sluice.Spend, Window: sluice.PerMonth, At: r.now.Add(-time.Hour), Amount: 300_000},
		{Scope: sluice.ScopeTenant, Tenant: "acme", Dimension: sluice.Spend, Window: sluice.PerMonth, At: r.now.AddDate(0, -1, 0), Amount: 900_000},
	})
	r.eng.Restore(r.now, []engine.OpenHold{{
		Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Policy: p}, Model: "m",
		At: r.now.Add(-time.Minute), Spend: 200_000, Usage: sluice.Usage{Input: 600, Output: 20},
	}})
	if got := r.spent(); got != 500_000 {
		t.Errorf("spent %v, want what was seeded for this month and the lost hold", got)
	}
	if _, err := r.call(sluice.Work{Input: 401}); err == nil || err.Reason != sluice.RateLimited {
		t.Errorf("401 tokens after a lost hold of 600 of 1000: %v, want rate_limited", err)
	}
}

// What stands for a token's key may be of several tenants: none spends another's limit,
// whether it is spent now, was before the start, or is restored.
func TestKeysAreOfTenants(t *testing.T) {
	p := policy(true, sluice.ScopeKey, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerDay, Amount: 3})
	r := newRig(t, outputAt(10), p)
	r.eng.Seed(r.now, []engine.Spent{{Scope: sluice.ScopeKey, Tenant: "globex", Project: sluice.DefaultProject, Key: "k", Dimension: sluice.Requests, Window: sluice.PerDay, At: r.now, Amount: 3}})
	r.eng.Restore(r.now, []engine.OpenHold{{Principal: sluice.Principal{Tenant: "globex", Project: sluice.DefaultProject, Key: "k", Policy: p}, Model: "m", At: r.now}})
	for range 3 {
		r.mustCall(sluice.Work{Input: 1})
	}
	_, err := r.call(sluice.Work{Input: 1})
	if err == nil || err.Refusal == nil || err.Refusal.Scope != sluice.ScopeKey || err.Refusal.ID != "k" {
		t.Errorf("the fourth of three: %v, want the key refused by its id", err)
	}
	r = newRig(t, outputAt(10), p)
	r.eng.Seed(r.now, []engine.Spent{{Scope: sluice.ScopeKey, Tenant: "acme", Key: "k", Dimension: sluice.Requests, Window: sluice.PerDay, At: r.now, Amount: 3}})
	if _, err := r.call(sluice.Work{Input: 1}); err == nil {
		t.Error("what the key had used before the start is forgotten")
	}
}

func TestExpiredAreBounded(t *testing.T) {
	table := parseTable(t, "pool p\nbackend b pool=p conc=100\nmodel m pools=p")
	r := &rig{T: t, eng: engine.New(engine.Config{Table: table, Options: engine.Options{MaxExpired: 3}}), now: start, policy: &sluice.Policy{}}
	var grants []engine.Grant
	for range 5 {
		grants = append(grants, r.mustCall(sluice.Work{Input: 1}))
		r.now = r.now.Add(time.Second)
	}
	r.now = r.now.Add(time.Hour)
	r.eng.Advance(r.now)
	for i, g := range grants {
		want := engine.ErrLate
		if i < 2 { // the oldest were forgotten: what their expiry charged stands
			want = engine.ErrSettled
		}
		if err := r.settle(g, 1, 1, 0); !errors.Is(err, want) {
			t.Errorf("request %d: %v, want %v", i, err, want)
		}
	}
}

// What others use of a limit that all share is not for a caller to see: the sentence
// leaves it out, and wire the figures, which explain has.
func TestSharedLimitsTellNoFigures(t *testing.T) {
	table := parseTable(t, "pool p\nbackend b pool=p conc=9\nmodel m pools=p")
	table.Fleet = []sluice.Limit{{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 600}}
	r := &rig{T: t, eng: engine.New(engine.Config{Table: table}), now: start, policy: &sluice.Policy{}}
	r.mustCall(sluice.Work{Input: 587})
	_, err := r.call(sluice.Work{Input: 100})
	if err == nil || err.Kind != sluice.KindOverloaded || err.Reason != sluice.RateLimited || err.RetryAfter != 8700*time.Millisecond {
		t.Fatalf("got %+v, want overloaded for 8.7 s", err)
	}
	if err.Refusal.Scope != sluice.ScopeFleet || err.Refusal.Used+err.Refusal.Held == 0 || strings.Contains(err.Msg, "587") {
		t.Errorf("%q tells what others use, or %+v does not", err.Msg, err.Refusal)
	}
	if !strings.Contains(err.Err.Error(), "587") {
		t.Errorf("the log does not: %v", err.Err)
	}
}

func TestFreeCallsCountRequestsOnly(t *testing.T) {
	p := policy(true, sluice.ScopeKey,
		sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 2},
		sluice.Limit{Dimension: sluice.InputTokens, Window: sluice.PerMinute, Amount: 1},
		sluice.Limit{Dimension: sluice.Concurrency, Amount: 1},
		sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: 1})
	r := newRig(t, nil, p)
	call := func(id string) *sluice.Error {
		v := r.eng.Arrive(r.now, engine.Call{
			ID: sluice.RequestID(id), Model: "m", Dialect: "openai", Free: true, Work: sluice.Work{Input: 5000},
			Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Policy: p},
		})
		return v.Err
	}
	for _, id := range []string{"a", "b"} {
		if err := call(id); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	if got := len(r.eng.Advance(r.now)); got != 2 {
		t.Errorf("%d granted, want both beside each other", got)
	}
	for _, id := range []sluice.RequestID{"a", "b"} {
		if err := r.eng.Settle(r.now, id, engine.Actual{Usage: sluice.Usage{Input: 5000}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := call("c"); err == nil || err.Refusal.Limit.Dimension != sluice.Requests {
		t.Errorf("a third of two per minute: %v", err)
	}
}

// More runs than are told apart share the bounds of one, and are told so.
func TestFurtherRunsAreToldSo(t *testing.T) {
	p := policy(false, sluice.ScopeRun, sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerRun, Amount: 1})
	r := newRig(t, nil, p)
	for i := range quota.MaxLabelledOf + 2 {
		c := engine.Call{
			ID: sluice.RequestID(fmt.Sprint("r", i)), Model: "m", Dialect: "openai", MaxWait: time.Minute, Free: true,
			Principal: sluice.Principal{Tenant: "acme", Project: sluice.DefaultProject, Key: "k", Run: sluice.RunID(fmt.Sprint("run", i)), Policy: p},
		}
		v := r.eng.Arrive(r.now, c)
		if i > quota.MaxLabelledOf {
			if v.Err == nil || v.Err.Reason != sluice.BudgetSpent || !strings.Contains(v.Err.Msg, "more runs than are told apart") || strings.Contains(v.Err.Hint, "begin another run") {
				t.Errorf("run %d: got %v, want that it shares the bounds of one", i, v.Err)
			}
			continue
		}
		if v.Err != nil {
			t.Fatalf("run %d: %v", i, v.Err)
		}
		r.eng.Advance(r.now)
		if err := r.eng.Settle(r.now, c.ID, engine.Actual{}); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}
