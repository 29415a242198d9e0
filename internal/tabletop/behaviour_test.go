package tabletop

import (
	"testing"
	"time"

	"sluice"
)

// figuresOf finds a tenant's figures in a phase.
func figuresOf(t *testing.T, r *Result, phase, tenant string) Figures {
	t.Helper()
	for i := range r.Phases {
		if r.Phases[i].Name != phase {
			continue
		}
		for _, n := range r.Phases[i].Tenants {
			if n.Name == tenant {
				return n.Figures
			}
		}
	}
	t.Fatalf("no tenant %s in a phase %s", tenant, phase)
	return Figures{}
}

// TestNoisyTenant: one tenant sends prompts twenty times as long at the same rate of
// requests. In order of arrival everybody waits for it; as the engine is, the quiet
// ones are served as before.
func TestNoisyTenant(t *testing.T) {
	noisy, quiet := tenant("noisy", 12, 1000, 100), tenant("quiet", 6, 1000, 100)
	noisy.Client.Patience, quiet.Client.Patience = 0, 0
	s := world(2, benchProfile(), noisy, quiet)
	s.Warmup, s.Length = 20*time.Second, 2*time.Minute
	s.Events = []Event{{At: time.Minute, Label: "long prompts", Traffic: &Traffic{Sources: []int{0}, Input: &Lengths{Mean: 20_000}}}}
	s.Expect = []Expectation{{Text: "before: slo >= 99%"}, {Text: "after: tenant.quiet.slo >= 99%"}, {Text: "after: fairness.gap <= bound"}, {Text: "lost == 0"}}
	fair, fifo := mustRun(t, s, Options{}), mustRun(t, s, Options{Policy: "naive"})
	if !fair.Passed {
		t.Errorf("verdicts: %+v", fair.Verdicts)
	}
	if fifo.Passed || !fifo.Verdicts[0].Passed || fifo.Verdicts[1].Passed || fifo.Verdicts[2].Passed {
		t.Errorf("in order of arrival: %+v", fifo.Verdicts)
	}
	after := figuresOf(t, fair, "after", "quiet")
	if after.Share < 40 || after.Share > after.FairShare+30 || after.FairShare > after.Share+30 {
		t.Errorf("the quiet one has %d permille, its fair share is %d", after.Share, after.FairShare)
	}
	if n := figuresOf(t, fair, "after", "noisy"); n.Reasons == nil && n.SLO > 900 {
		t.Errorf("the noisy one: %+v", n)
	}
	if len(fair.Marks) != 1 || fair.Marks[0] != (Mark{At: time.Minute, Label: "long prompts"}) {
		t.Errorf("marks: %v", fair.Marks)
	}
}

// TestQuarterLoss: one of four replicas dies and comes back. What ran there ends
// once, mostly elsewhere, and nothing is lost.
func TestQuarterLoss(t *testing.T) {
	a, b := tenant("a", 6, 800, 150), tenant("b", 6, 800, 150)
	for _, x := range []*Source{&a, &b} {
		x.Client.Retry = Retry{Max: 2, Backoff: 200 * time.Millisecond}
	}
	s := world(4, benchProfile(), a, b)
	s.Length = 90 * time.Second
	s.Events = []Event{
		{At: 30 * time.Second, Label: "loss", Backends: &Backends{IDs: []sluice.BackendID{"b1"}, Down: true}},
		{At: 60 * time.Second, Label: "back", Phase: "", Backends: &Backends{IDs: []sluice.BackendID{"b1"}, Up: true}},
	}
	s.Expect = []Expectation{{Text: "slo >= 99%"}, {Text: "lost == 0"}, {Text: "open == 0"}, {Text: "settled_twice == 0"}, {Text: "recovery < 30s"}, {Text: "failed == 0"}}
	r := mustRun(t, s, Options{})
	if !r.Passed {
		t.Errorf("verdicts: %+v", r.Verdicts)
	}
	up := r.Series.Pools[0].Up
	at := func(d time.Duration) int64 { return up[int(d/r.Series.Bucket)] }
	if at(10*time.Second) != 4 || at(40*time.Second) != 3 || at(80*time.Second) != 4 {
		t.Errorf("backends up: %v", up)
	}
	dead, failed := r.Phases[1].Backends[1], int64(0)
	for _, u := range r.Phases[1].Backends {
		failed += u.Failed
	}
	if dead.Failed == 0 || failed != dead.Failed || dead.Attempts == 0 {
		t.Errorf("use of backends after the loss: %+v", r.Phases[1].Backends)
	}
}

// TestRetryWave: a surge of clients that come again. Their resubmissions are told
// apart from the gateway's own attempts.
func TestRetryWave(t *testing.T) {
	x := tenant("a", 12, 1000, 200)
	x.Client.Patience = 4 * time.Second
	x.Client.Retry = Retry{Max: 4, Backoff: 500 * time.Millisecond, Factor: 2, Cap: 5 * time.Second, Jitter: 0.5}
	x.Client.MaxWait = 2 * time.Second
	s := world(1, benchProfile(), x)
	s.Length = 3 * time.Minute
	up, down := 4.0, 1.0
	s.Events = []Event{
		{At: time.Minute, Phase: "wave", Traffic: &Traffic{Sources: []int{0}, Rate: &up}},
		{At: 2 * time.Minute, Phase: "after", Traffic: &Traffic{Sources: []int{0}, Rate: &down}},
	}
	s.Expect = []Expectation{{Text: "recovery < 30s"}, {Text: "retries.amplification <= 1.1"}, {Text: "lost == 0"}, {Text: "before: slo >= 99%"}}
	r := mustRun(t, s, Options{})
	if !r.Passed {
		t.Errorf("verdicts: %+v", r.Verdicts)
	}
	wave := r.Phases[1]
	if wave.All.Requests < 2500 || wave.Retries.Resubmitted == 0 || len(wave.All.Reasons) == 0 {
		t.Errorf("the wave: %+v, %+v", wave.All, wave.Retries)
	}
	if wave.Retries.Admitted+reasonsOf(&wave.All) < wave.All.Requests+wave.Retries.Resubmitted {
		t.Errorf("submissions: %+v of %d requests", wave.Retries, wave.All.Requests)
	}
	if wave.All.Completed+wave.All.Rejected+wave.All.Cancelled != wave.All.Requests {
		t.Errorf("ends: %+v", wave.All)
	}
}

func reasonsOf(f *Figures) (n int64) {
	for _, r := range f.Reasons {
		n += r.Count
	}
	return n
}

// TestActs: a play of the operator happens only in a run that names it.
func TestActs(t *testing.T) {
	s := world(1, benchProfile(), tenant("a", 30, 1000, 200))
	half := 0.3
	s.Acts = []Act{{Name: "shed", Events: []Event{{At: 20 * time.Second, Label: "shed", Traffic: &Traffic{Sources: []int{0}, Rate: &half}}}}}
	with, without := mustRun(t, s, Options{Acts: []string{"shed"}}), mustRun(t, s, Options{})
	if a, b := with.Phases[0].All.Requests, without.Phases[0].All.Requests; float64(a) > 0.7*float64(b) {
		t.Errorf("%d requests with the act, %d without", a, b)
	}
	if len(with.Marks) != 1 || len(without.Marks) != 0 {
		t.Errorf("marks: %v and %v", with.Marks, without.Marks)
	}
	for _, o := range []struct {
		o    Options
		want string
	}{
		{Options{Acts: []string{"shred"}}, `act "shred" is not one of this scenario: use some of ["shed"]`},
		{Options{Policy: "nave"}, `policy "nave" is not one of this scenario: use one of ["sluice" "naive"]`},
	} {
		if _, err := s.Run(t.Context(), o.o); err == nil || err.Error() != o.want {
			t.Errorf("got %v, want %s", err, o.want)
		}
	}
}

// TestWatch follows one request through its life, and one that finds no room.
func TestWatch(t *testing.T) {
	s := world(1, benchProfile(), tenant("a", 5, 1000, 200))
	told(t, s, []string{"request 7 comes up", "submission 1: estimated", "it joins the queue", "attempt 1 gets a place on b0", "its first token", "settled as completed", "it has ended: completed"})
	s.Policies[0].Principals[0].Policy.Limits[sluice.ScopeTenant] = []sluice.Limit{{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 3}}
	s.Sources[0].Client.Retry = Retry{Max: 1, Backoff: time.Second}
	told(t, s, []string{
		"request 7 comes up", "submission 1 is refused: rate_limited, too many requests; tenant a has a limit of 3 requests", "the client comes again in 1s",
		"submission 2 is refused: rate_limited", "it has ended: rejected",
	})
}

// told fails unless the steps of the seventh request begin as wanted.
func told(t *testing.T, s *Scenario, want []string) {
	t.Helper()
	var steps []Step
	mustRun(t, s, Options{Watch: 7, Tell: func(x Step) { steps = append(steps, x) }})
	for i, w := range want {
		if i >= len(steps) || len(steps[i].Text) < len(w) || steps[i].Text[:len(w)] != w || steps[i].Request != 7 || i > 0 && steps[i].At < steps[i-1].At {
			t.Fatalf("step %d: got %+v, want %q", i, steps, w)
		}
	}
}
