package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// TestTraces runs testdata/*.dd: a command per event, and what it and the Advance
// after it answer.
//
//	table           lines "pool P [queue=N] [maxwait=D]", "backend B pool=P …", "model M pools=P,… …",
//	                "retries budget|naive [share=] [minimum=] [attempts=]",
//	                "breaker on [failures=] [share=] [volume=] [domain=]",
//	                "class NAME pool=P [share=] [ceiling=] [headroom=]", "contract TENANT pool=P [slots=] [kv=] [work=] [lend=none|all]"; also swaps
//	                "region NAME [headroom=]", "backend … region=R", "model … [home=R,R,…] [overload] [return=D]"
//	policy NAME     lines "scope dimension window amount"; [hard] [maxwait=D]
//	arrive ID policy=… [key=] [tenant=] [project=] [class=] [model=m] [in=] [out=bound] [hold=] [maxwait=D]
//	progress ID | ended ID reason=R [content] [in=] [out=] [cost=] [retry-after=D]
//	settle ID [in=] [out=] [cost=] [reason=] | cancel ID
//	signal BACKEND [key=] [refused] [everywhere] [spent] [probed] [healthy] [pause=D]
//	hedge ID        a second attempt, which goes by ID+; see arrive stream and model hedge=
//	changes         what has changed of health
//	advance D       time passes, stopping at every NextWake
//	print | zoom [pool=P] [tenant=T] [id=ID] [limit=N]
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{now: start, policies: make(map[string]*sluice.Policy)}
		datadriven.RunTest(t, path, s.run)
	})
}

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

type script struct {
	eng      *engine.Engine
	now      time.Time
	policies map[string]*sluice.Policy
	out      strings.Builder
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	switch d.Cmd {
	case "table":
		s.table(t, d)
	case "policy":
		s.policies[d.CmdArgs[0].Key] = parsePolicy(t, d)
	case "arrive":
		s.arrive(t, d)
	case "progress":
		if s.eng.Progress(s.now, id(d), sluice.Usage{}).Stop {
			s.printf("stop\n")
		}
	case "ended":
		s.ended(t, d)
	case "settle":
		s.settle(t, d)
	case "cancel":
		if !s.eng.Cancel(s.now, id(d), sluice.ClientGone) {
			s.printf("not open\n")
		}
	case "advance":
		s.advance(t, d)
	case "signal":
		a := args{t, d}
		s.eng.Observe(s.now, engine.Signal{
			Backend: sluice.BackendID(d.CmdArgs[0].Key), Key: a.text("key", ""), Pause: a.duration("pause", 0), Refused: d.HasArg("refused"),
			Everywhere: d.HasArg("everywhere"), Spent: d.HasArg("spent"), Probed: d.HasArg("probed"), Healthy: d.HasArg("healthy"),
		})
	case "hedge":
		s.hedge(d)
	case "changes":
		for _, c := range s.eng.HealthChanges() {
			s.printf("%s: %s → %s\n", strings.TrimSpace(fmt.Sprintln(c.Domain, c.Pool, c.Credential, c.Backend)), c.From, c.To)
		}
	case "print":
		s.print()
	case "zoom":
		s.zoom(args{t, d})
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	if s.eng != nil {
		s.grants()
	}
	return s.out.String()
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

func (s *script) grants() {
	for _, g := range s.eng.Advance(s.now) {
		s.grant(g)
	}
}

// hedge asks for a second attempt.
func (s *script) hedge(d *datadriven.TestData) {
	switch h := s.eng.Hedge(s.now, id(d)); {
	case h.Err != nil:
		s.printf("no hedge: %s\n", errText(h.Err))
	case h.Denied != route.Allowed:
		s.printf("no hedge: %s\n", h.Denied)
	default:
		s.grant(h.Grant)
	}
}

func (s *script) grant(g engine.Grant) {
	if g.Err != nil {
		s.printf("%s: %s\n", g.ID, errText(g.Err))
		return
	}
	s.printf("%s: attempt %d on %s/%s", g.ID, g.Attempt, g.Pool, g.Backend.ID)
	if len(g.Backend.Keys) > 0 {
		s.printf(" with %s", g.Key)
	}
	if g.Queued > 0 {
		s.printf(" after %v", g.Queued)
	}
	if g.Fallback {
		s.printf(", fallback")
	}
	if g.Away {
		s.printf(", away")
	}
	if g.Clamped {
		s.printf(", output clamped to %d", g.OutputBound)
	}
	if g.HeldSpend > 0 {
		s.printf(", holds %v", g.HeldSpend)
	}
	var left []string
	for _, c := range g.Candidates {
		if c.Left != "" && c.Left != "other" {
			left = append(left, fmt.Sprintf("%s %s", c.Backend, c.Left))
		}
	}
	if left != nil {
		s.printf(" (%s)", strings.Join(left, ", "))
	}
	if g.HedgeAfter > 0 {
		s.printf(", late after %v", g.HedgeAfter)
	}
	s.printf("\n")
}

func errText(e *sluice.Error) string {
	s := fmt.Sprintf("%v: %s", e.Reason, e.Msg)
	if r := e.Refusal; r != nil {
		amount := func(n int64) string {
			if r.Limit.Dimension == sluice.Spend {
				return sluice.Nano(n).String()
			}
			return strconv.FormatInt(n, 10)
		}
		s += fmt.Sprintf(" (%v %s: %s %v", r.Scope, r.ID, amount(r.Limit.Amount), r.Limit.Dimension)
		if r.Limit.Window != sluice.NoWindow {
			s += fmt.Sprintf(" per %v", r.Limit.Window)
		}
		s += fmt.Sprintf("; used %s, held %s, requested %s)", amount(r.Used), amount(r.Held), amount(r.Requested))
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf("; retry after %v", e.RetryAfter)
	}
	return s
}

func (s *script) table(t *testing.T, d *datadriven.TestData) {
	table := parseTable(t, d.Input)
	table.Version = "v1"
	d.MaybeScanArgs(t, "version", &table.Version)
	if s.eng == nil {
		s.eng = engine.New(engine.Config{Table: table})
		return
	}
	plan, err := s.eng.Prepare(table)
	if err != nil {
		s.printf("%v\n", err)
		return
	}
	s.eng.Swap(s.now, plan)
}

func (s *script) arrive(t *testing.T, d *datadriven.TestData) {
	a := args{t, d}
	c := engine.Call{
		ID: id(d), Model: sluice.ModelID(a.text("model", "m")), Dialect: a.text("dialect", "openai"), MaxWait: a.duration("maxwait", -1),
		Principal: sluice.Principal{
			Tenant: sluice.TenantID(a.text("tenant", "acme")), Project: sluice.ProjectID(a.text("project", string(sluice.DefaultProject))), Key: sluice.KeyID(a.text("key", "k")),
			Policy: s.policies[a.text("policy", "")],
		},
		Work: sluice.Work{
			Input: sluice.Tokens(a.number("in", 100)), OutputBound: sluice.Tokens(a.number("out", 100)),
		},
		Bytes: 100, Streaming: d.HasArg("stream"), Single: d.HasArg("single"), Free: d.HasArg("free"),
	}
	c.Work.InputBound = c.Work.Input
	c.Work.OutputHold = sluice.Tokens(a.number("hold", int64(c.Work.OutputBound)))
	if err := c.Class.UnmarshalText([]byte(a.text("class", "interactive"))); err != nil {
		t.Fatal(err)
	}
	v := s.eng.Arrive(s.now, c)
	if v.Err != nil {
		s.printf("%s: %s\n", c.ID, errText(v.Err))
		return
	}
	s.printf("%s: queued in %s behind %d", c.ID, v.Pool, v.Position)
	if v.Wait > 0 {
		s.printf(", about %v", v.Wait)
	}
	s.printf("\n")
}

func (s *script) ended(t *testing.T, d *datadriven.TestData) {
	a := args{t, d}
	n := s.eng.AttemptEnded(s.now, id(d), engine.Result{
		Reason: a.reason(), Content: d.HasArg("content"), RetryAfter: a.duration("retry-after", 0), Overload: d.HasArg("overload"), Credential: d.HasArg("credential"), Usage: a.usage(), Cost: sluice.Nano(a.number("cost", 0)),
	})
	switch {
	case n.Err != nil:
		s.printf("no further attempt: %s\n", errText(n.Err))
	case n.Step == engine.Race:
		s.printf("the other goes on\n")
	case n.Step == engine.Fail:
		s.printf("no further attempt: %s\n", n.Denied)
	default:
		s.printf("queued again\n")
	}
}

func (s *script) settle(t *testing.T, d *datadriven.TestData) {
	a := args{t, d}
	err := s.eng.Settle(s.now, id(d), engine.Actual{Usage: a.usage(), Cost: sluice.Nano(a.number("cost", 0)), Reason: a.reason()})
	switch {
	case errors.Is(err, engine.ErrLate):
		s.printf("late\n")
	case err != nil:
		s.printf("%v\n", err)
	}
}

// advance lets time pass, and the engine act at every moment that it asked for.
func (s *script) advance(t *testing.T, d *datadriven.TestData) {
	by, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	end := s.now.Add(by)
	for {
		at, ok := s.eng.NextWake()
		if !ok || at.After(end) {
			break
		}
		if at.After(s.now) {
			s.now = at
			s.printf("at +%v:\n", s.now.Sub(start))
		}
		s.grants()
	}
	s.now = end
}

func (s *script) print() {
	v := s.eng.Dump(s.now, engine.Zoom{}, 10)
	s.printf("%d open, %d running, %d expired\n", v.Open, v.Running, v.Expired)
	for _, p := range v.Pools {
		c := p.Counts
		s.printf("pool %s: %d wait, %d enqueued, %d dispatched, %d cancelled, %d rejected, %d moved\n", p.ID, p.Waiting, c.Enqueued, c.Dispatched, c.Cancelled, c.Rejected, c.Moved)
		for _, b := range p.Backends {
			s.printf("  %s: %d of %d, kv %d, prefill %d, %s", b.ID, b.Running, b.Concurrency, b.KVTokens, b.Prefill, b.Health)
			if b.Retired {
				s.printf(", retired")
			}
			s.printf("\n")
		}
	}
	for _, r := range v.Regions {
		s.printf("region %s: %s, %d ‰ of its share, %d of %d backends, %d at home, %d away: %d running, %d wait, %d ‰ of %d ‰\n",
			r.Name, r.State, r.Share, r.Backends, r.Of, r.Home, r.Away, r.Running, r.Waiting, r.Used, r.Headroom)
	}
	for _, a := range v.Top {
		for _, c := range a.Counters {
			s.printf("%v %s: %v", a.Scope, a.ID, c.Limit.Dimension)
			if c.Limit.Window != sluice.NoWindow {
				s.printf(" per %v", c.Limit.Window)
			}
			if c.Limit.Dimension == sluice.Spend {
				s.printf(" %v: used %v, held %v\n", sluice.Nano(c.Limit.Amount), sluice.Nano(c.Used), sluice.Nano(c.Held))
			} else {
				s.printf(" %d: used %d, held %d\n", c.Limit.Amount, c.Used, c.Held)
			}
		}
	}
}

func id(d *datadriven.TestData) sluice.RequestID { return sluice.RequestID(d.CmdArgs[0].Key) }

type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) text(key, otherwise string) string {
	a.d.MaybeScanArgs(a.t, key, &otherwise)
	return otherwise
}

func (a args) number(key string, otherwise int64) int64 {
	s := a.text(key, "")
	if s == "" {
		return otherwise
	}
	if money, ok := strings.CutPrefix(s, "$"); ok {
		n, err := sluice.ParseMoney(money)
		if err != nil {
			a.t.Fatal(err)
		}
		return int64(n)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a args) duration(key string, otherwise time.Duration) time.Duration {
	s := a.text(key, "")
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

func (a args) reason() (r sluice.Reason) {
	if err := r.UnmarshalText([]byte(a.text("reason", ""))); err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a args) usage() sluice.Usage {
	return sluice.Usage{Input: sluice.Tokens(a.number("in", 0)), Output: sluice.Tokens(a.number("out", 0)), Source: sluice.UsageReported}
}

func parsePolicy(t *testing.T, d *datadriven.TestData) *sluice.Policy {
	p := &sluice.Policy{HardSpend: d.HasArg("hard"), MaxWait: int64(args{t, d}.duration("maxwait", 0))}
	for line := range strings.Lines(d.Input) {
		var scope, dim, window, amount string
		if _, err := fmt.Sscan(line, &scope, &dim, &window, &amount); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var sc sluice.Scope
		var l sluice.Limit
		err := errors.Join(sc.UnmarshalText([]byte(scope)), l.Dimension.UnmarshalText([]byte(dim)), l.Window.UnmarshalText([]byte(window)))
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := strings.CutPrefix(amount, "$"); ok {
			m, err := sluice.ParseMoney(n)
			if err != nil {
				t.Fatal(err)
			}
			l.Amount = int64(m)
		} else if l.Amount, err = strconv.ParseInt(amount, 10, 64); err != nil {
			t.Fatal(err)
		}
		p.Limits[sc] = append(p.Limits[sc], l)
	}
	return p
}

// parseTable reads the lines of a table. A backend's price=IN/OUT is in dollars
// per million tokens; without one it is free of charge, and price=none is unknown.
func parseTable(t *testing.T, in string) *route.Table {
	table := &route.Table{Models: map[sluice.ModelID]*route.Model{}, Pools: map[sluice.PoolID]*route.Pool{}}
	for line := range strings.Lines(in) {
		fields := strings.Fields(line)
		kv := map[string]string{}
		for _, f := range fields[2:] {
			k, v, _ := strings.Cut(f, "=")
			kv[k] = v
		}
		number := func(key string, otherwise int64) int64 {
			if kv[key] == "" {
				return otherwise
			}
			n, err := strconv.ParseInt(kv[key], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
		pools := func(key string) (out []sluice.PoolID) {
			for p := range strings.SplitSeq(kv[key], ",") {
				if p != "" {
					out = append(out, sluice.PoolID(p))
				}
			}
			return out
		}
		switch fields[0] {
		case "pool":
			id := sluice.PoolID(fields[1])
			wait, _ := time.ParseDuration(kv["maxwait"])
			table.Pools[id] = &route.Pool{ID: id, Queue: route.QueueBounds{Requests: number("queue", 0), MaxWait: wait}}
		case "backend":
			b := &route.Backend{
				ID: sluice.BackendID(fields[1]), Dialect: "openai", Weight: number("weight", 1), Price: parsePrice(t, kv["price"]), Domain: kv["domain"], Region: kv["region"],
				Capacity: route.Capacity{
					Concurrency: number("conc", 1), KVTokens: sluice.Tokens(number("kv", 0)), PrefillTokens: sluice.Tokens(number("prefill", 0)),
				},
			}
			if kv["dialect"] != "" {
				b.Dialect = kv["dialect"]
			}
			for k := range strings.SplitSeq(kv["keys"], ",") {
				if k != "" {
					b.Keys = append(b.Keys, route.Key{ID: k})
				}
			}
			if kv["ceiling"] != "" {
				b.Ceiling = parsePrice(t, kv["ceiling"])
			}
			p := table.Pools[sluice.PoolID(kv["pool"])]
			p.Backends = append(p.Backends, b)
		case "model":
			id := sluice.ModelID(fields[1])
			m := &route.Model{ID: id, Pools: pools("pools"), Fallback: pools("fallback")}
			if home := kv["home"]; home != "" {
				long, _ := time.ParseDuration(kv["return"])
				m.Locality = &route.Locality{Regions: strings.Split(home, ","), Overload: slices.Contains(fields, "overload"), Return: long}
			}
			if kv["hedge"] != "" { // after what time, or of so many thousandths; interactive alone
				m.Hedge = &route.Hedging{Classes: [sluice.NumClasses]bool{sluice.Interactive: true}}
				if m.Hedge.After, _ = time.ParseDuration(kv["hedge"]); m.Hedge.After == 0 {
					m.Hedge.Permille = number("hedge", 0)
				}
			}
			table.Models[id] = m
		case "region":
			if table.Headroom == nil {
				table.Headroom = map[string]int64{}
			}
			table.Headroom[fields[1]] = number("headroom", 0)
		case "retries": // budget share= minimum= attempts=, in the terms of route.RetryPolicy, or naive
			table.Retries = route.RetryPolicy{Share: number("share", 0), Minimum: number("minimum", 0), Attempts: int(number("attempts", 0))}
			if fields[1] == "naive" {
				table.Retries, table.NoBreakers = route.NaiveRetries(), true
			}
		case "breaker": // on failures= share= volume= domain=, in the terms of route.BreakerPolicy
			table.Breaker = route.BreakerPolicy{Failures: number("failures", 0), Share: number("share", 0), Volume: number("volume", 0), Domain: number("domain", 0)}
		case "class":
			var c sluice.Class
			if err := c.UnmarshalText([]byte(fields[1])); err != nil {
				t.Fatal(err)
			}
			table.Pools[sluice.PoolID(kv["pool"])].Sharing.Classes[c] = sched.Class{
				Share: number("share", 0), Ceiling: number("ceiling", 0), Headroom: number("headroom", 0),
			}
		case "contract":
			p := table.Pools[sluice.PoolID(kv["pool"])]
			lend := map[string]sched.Lend{"": sched.LendShort, "none": sched.LendNone, "all": sched.LendAll}[kv["lend"]]
			p.Sharing.Contracts = append(p.Sharing.Contracts, sched.Contract{
				Tenant: sluice.TenantID(fields[1]), Slots: number("slots", 0), KV: sluice.Tokens(number("kv", 0)), WorkPerSecond: number("work", 0), Lend: lend,
			})
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	return table
}

func parsePrice(t *testing.T, s string) *price.Row {
	switch s {
	case "":
		return &price.Row{}
	case "none":
		return nil
	}
	in, out, _ := strings.Cut(s, "/")
	var row price.Row
	if err := errors.Join(row.Rates.Input.UnmarshalText([]byte(in)), row.Rates.Output.UnmarshalText([]byte(out))); err != nil {
		t.Fatal(err)
	}
	return &row
}
