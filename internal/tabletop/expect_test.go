package tabletop

import (
	"errors"
	"testing"
	"time"

	"sluice"
)

var testNames = Names{
	Phases: []string{"before", "after", "healed"}, Classes: []string{"interactive", "batch"},
	Tenants: []string{"quiet", "noisy", "quiet.eu"}, Sources: []string{"chat"}, Backends: []string{"gpu-a", "gpu-b"},
}

// judged is a Result with a figure for everything.
func judged() *Result {
	f := func(ttft time.Duration, good, requests int64) Figures {
		return Figures{
			Requests: requests, Good: good, Completed: good, Rejected: 2, Left: 1, SLO: permille(good, requests-1), Goodput: 12.5,
			TTFT: Percentiles{Count: requests, P50: ttft / 2, P99: ttft}, Share: 250, FairShare: 200, Cost: 3 * sluice.Dollar / 100,
			Reasons: []ReasonCount{{sluice.RateLimited, 7}},
		}
	}
	phase := func(name string, from, ttft time.Duration) Phase {
		return Phase{
			Name: name, From: from, To: from + time.Minute, All: f(ttft, 990, 1001),
			Classes:  []Named{{"interactive", f(ttft, 985, 1001)}, {"batch", Figures{}}},
			Tenants:  []Named{{"quiet", f(ttft, 100, 101)}, {"quiet.eu", f(2*ttft, 100, 101)}},
			Sources:  []Named{{"chat", f(ttft, 100, 101)}},
			Backends: []BackendUse{{Backend: "gpu-a", KVMean: 500, KVMax: 900, Prefilled: 60, HitTokens: 40}, {Backend: "gpu-b", KVMean: 300}},
			Retries:  Retries{Admitted: 120, Dispatched: 100, Attempts: 109},
			Fairness: []FairnessGap{{Pool: "p", Class: "batch", Gap: 900, Bound: 1000}, {Pool: "q", Class: "batch", Gap: 2, Bound: 100}},
		}
	}
	return &Result{Phases: []Phase{phase("before", 0, 400*time.Millisecond), phase("after", time.Minute, 480*time.Millisecond)}}
}

func TestExpectations(t *testing.T) {
	for _, c := range []struct {
		text   string
		passed []bool // by verdict
		got    string // of the last
		want   string
	}{
		{"interactive.ttft.p99 < 800ms", []bool{true, true}, "480ms", "< 800ms"},
		{"ttft.p99 < 450ms", []bool{true, false}, "480ms", "< 450ms"},
		{"before: all.ttft.p50 <= 0.2s", []bool{true}, "200ms", "<= 200ms"},
		{"after: tenant.quiet.ttft.p99 <= 1.25 * before: tenant.quiet.ttft.p99", []bool{true}, "480ms", "<= 500ms"},
		{"after: tenant.quiet.ttft.p99 <= before: tenant.quiet.ttft.p99", []bool{false}, "480ms", "<= 400ms"},
		{"after: tenant.quiet.eu.ttft.p99 <= 2*tenant.quiet.ttft.p99", []bool{true}, "960ms", "<= 960ms"},
		{"slo >= 99%", []bool{true, true}, "99%", ">= 99%"},
		{"after: interactive.slo >= 98.6%", []bool{false}, "98.5%", ">= 98.6%"},
		{"after: batch.slo >= 1%", []bool{false}, "no sample", ">= 1%"},
		{"after: batch.ttft.p99 < 1h", []bool{false}, "no sample", "< 1h0m0s"},
		{"after: source.chat.rejected <= 2", []bool{true}, "2", "<= 2"},
		{"after: source.chat.rejected < 2%", []bool{true}, "1.98%", "< 2%"},
		{"after: source.chat.rejected.rate_limited == 7", []bool{true}, "7", "== 7"},
		{"after: tenant.quiet.share > tenant.quiet.fair_share", []bool{true}, "25%", "> 20%"},
		{"after: cost < $0.05", []bool{true}, "$0.03", "< $0.05"},
		{"after: goodput > 0.012k", []bool{true}, "12.50", "> 12"},
		{"after: backend.gpu-a.kv <= 50%", []bool{true}, "50%", "<= 50%"},
		{"after: kv < 40%", []bool{false}, "40%", "< 40%"},
		{"after: backend.gpu-a.prefix_hits == 40%", []bool{true}, "40%", "== 40%"},
		{"retries.amplification <= 1.1", []bool{true, true}, "1.09", "<= 1.1"},
		{"after: fairness.gap <= bound", []bool{true}, "900", "<= 1000"},
		{"after: fairness.gap < 500", []bool{false}, "900", "< 500"},
		{"lost == 0", []bool{true, true}, "0", "== 0"},
		{"recovery < 30s", []bool{true}, "9s", "< 30s"},
		{"interactive.recovery < 30s", []bool{false}, "not recovered", "< 30s"},
	} {
		e, err := ParseExpectation(c.text, testNames)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		e.Line = 12
		r := judged()
		(&Scenario{}).judge(r, []Expectation{e}, recovering())
		if len(r.Verdicts) != len(c.passed) {
			t.Errorf("%s: %d verdicts, want %d", c.text, len(r.Verdicts), len(c.passed))
			continue
		}
		all := true
		for i, v := range r.Verdicts {
			all = all && c.passed[i]
			if v.Passed != c.passed[i] || v.Line != 12 || v.Text != c.text {
				t.Errorf("%s: got %+v, want passed %v", c.text, v, c.passed[i])
			}
		}
		if last := r.Verdicts[len(r.Verdicts)-1]; last.Got != c.got || last.Want != c.want {
			t.Errorf("%s: got %q %q, want %q %q", c.text, last.Got, last.Want, c.got, c.want)
		}
		if r.Passed != all {
			t.Errorf("%s: passed %v", c.text, r.Passed)
		}
	}
}

// A phase in which nobody asked for anything shows nothing, not that nothing was lost.
func TestIdlePhaseShowsNothing(t *testing.T) {
	e, err := ParseExpectation("lost == 0", testNames)
	if err != nil {
		t.Fatal(err)
	}
	r := judged()
	r.Phases[1].All = Figures{}
	(&Scenario{}).judge(r, []Expectation{e}, recovering())
	if v := r.Verdicts; len(v) != 2 || !v[0].Passed || v[1].Passed || v[1].Got != "no requests" || r.Passed {
		t.Errorf("got %+v, passed %v", v, r.Passed)
	}
}

// recovering is back after 9 s for all, with a good while before, and not for the
// interactive.
func recovering() *recovery {
	r := &recovery{any: true}
	for s := range 30 {
		bad, ok := int32(s), int32(10)
		if s < 4 || s == 8 {
			ok = 0
		}
		r.total[sluice.NumClasses], r.good[sluice.NumClasses] = append(r.total[sluice.NumClasses], 10), append(r.good[sluice.NumClasses], ok)
		r.total[0], r.good[0] = append(r.total[0], 10), append(r.good[0], min(bad, 5))
	}
	return r
}

func TestExpectationsThatAreWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "column 1: a metric is missing: write one such as interactive.ttft.p99 or slo"},
		{"interactive.ttft.p99", "column 21: a comparison is missing: write <, <=, ==, >= or > and what to compare with"},
		{"interactive.ttft.p99 <", "column 23: there is nothing to compare with: write a value such as 800ms, or another metric"},
		{"interactive.ttft < 1s", "column 17: which figure of ttft?: write one of ttft.p50, .p90, .p99, .p999, .mean, .max"},
		{"interactive.ttft.p95 < 1s", "column 18: ttft has no \"p95\": did you mean p90?"},
		{"interactiv.ttft.p99 < 1s", "column 1: \"interactiv.ttft.p99\" is no metric: did you mean interactive?"},
		{"standard.ttft.p99 < 1s", "column 1: no source of this scenario is of class standard: use one of interactive, batch"},
		{"tenant.quite.slo >= 99%", "column 8: there is no tenant \"quite\": did you mean quiet?"},
		{"tenant.quiet.sol >= 99%", "column 14: \"sol\" is no metric: did you mean slo?"},
		{"tenant.quiet >= 99%", "column 13: a metric is missing: write one after the name, such as tenant.quiet.slo"},
		{"backend.gpu-c.kv < 90%", "column 9: there is no backend \"gpu-c\": did you mean gpu-a?"},
		{"backend.gpu-a.ttft.p99 < 1s", "column 15: a backend has no ttft: it is a metric of classes, tenants and sources"},
		{"tenant.quiet.lost == 0", "column 14: a tenant has no lost: it is a metric of the whole: write lost"},
		{"afer: slo >= 99%", "column 1: there is no phase \"afer\": did you mean after?"},
		{"slo >= 800ms", "column 8: slo is a share, and \"800ms\" is not: write a value such as 99%"},
		{"ttft.p99 <= 1.5", "column 13: ttft is a duration, and \"1.5\" is not: write a value such as 800ms"},
		{"ttft.p99 <= 2s * ttft.p50", "column 13: \"2s\" is no factor: write a number, such as 1.25 * before: ttft.p99"},
		{"ttft.p99 <= slo", "column 13: ttft is a duration, and slo a share: compare what has the same unit"},
		{"ttft.p99 <= bound", "column 13: ttft has no bound of its own: write a value such as 800ms"},
		{"slo >= 99% or so", "column 12: \"or so\" is left over: an expectation has one comparison: write another line"},
		{"rejected.rate_limit < 5%", "column 10: rejected has no \"rate_limit\": did you mean rate_limited?"},
		{"slo >= 99% after", "column 12: \"after\" is left over: an expectation has one comparison: write another line"},
		{"slo => 99%", "column 5: a comparison is missing: write <, <=, ==, >= or > and what to compare with"},
	} {
		_, err := ParseExpectation(c.text, testNames)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q\ngot  %v\nwant %s", c.text, err, c.want)
			continue
		}
		if e, ok := errors.AsType[*ExpectationError](err); !ok || e.Column < 1 || e.Column > len(c.text)+1 {
			t.Errorf("%q: %#v", c.text, err)
		}
	}
}

func FuzzParseExpectation(f *testing.F) {
	for _, s := range []string{"slo >= 99%", "after: tenant.quiet.ttft.p99 <= 1.25 * before: tenant.quiet.ttft.p99", "a.b.c < $", "tenant.", ":", "x:<", "rejected. ==  9", "fairness.gap<=bound"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseExpectation(text, testNames)
		if x, ok := errors.AsType[*ExpectationError](err); err != nil && (!ok || x.Column < 1 || x.Column > len(text)+1) {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil {
			(&Scenario{}).judge(judged(), []Expectation{e}, recovering())
		}
	})
}
