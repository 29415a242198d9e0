package engine_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/route"
)

// wave is a load of which much fails, judged by the log of what was attempted.
type wave struct {
	t    *rapid.T
	eng  *engine.Engine
	now  time.Time
	open []*try
	next int

	firsts, retries []try // dispatched; of retries also those that were admitted, in admitted
	admitted        []try
	row             map[sluice.BackendID]int // failures since the last answer
	ended           int
}

// try is an attempt, or a request with the one that it is at.
type try struct {
	id      sluice.RequestID
	tenant  sluice.TenantID
	backend sluice.BackendID // empty while it waits
	at      time.Time
}

// in is how many of a log were in the last ten seconds.
func in(log []try, now time.Time, counts func(*try) bool) (n int) {
	for i := len(log) - 1; i >= 0 && log[i].at.After(now.Add(-route.RetryWindow)); i-- {
		if counts(&log[i]) {
			n++
		}
	}
	return n
}

func (w *wave) arrive(tenant sluice.TenantID) {
	w.next++
	r := &try{id: sluice.RequestID(fmt.Sprint("r", w.next)), tenant: tenant}
	v := w.eng.Arrive(w.now, engine.Call{
		ID: r.id, Model: rapid.SampledFrom([]sluice.ModelID{"m", "n"}).Draw(w.t, "model"), Dialect: "openai", MaxWait: -1,
		Principal: sluice.Principal{Tenant: tenant, Project: sluice.DefaultProject, Key: sluice.KeyID(tenant)},
		Work:      sluice.Work{Input: 10, InputBound: 10, OutputHold: 10, OutputBound: 10},
	})
	if v.Err == nil {
		w.open = append(w.open, r)
	}
	w.advance()
}

// end ends one attempt, which answers or fails.
func (w *wave) end(r *try, fails bool) {
	b := r.backend
	if b == "" {
		return
	}
	if !fails {
		w.row[b] = 0
		w.settle(r)
		return
	}
	w.row[b]++
	r.backend = ""
	next := w.eng.AttemptEnded(w.now, r.id, engine.Result{Reason: sluice.UpstreamError})
	switch {
	case next.Step == engine.Queue:
		w.admitted = append(w.admitted, try{tenant: r.tenant, at: w.now})
		w.within(w.admitted, "all", func(*try) bool { return true })
		w.within(w.admitted, "tenant "+string(r.tenant), func(o *try) bool { return o.tenant == r.tenant })
	case next.Denied == route.Allowed || next.Err != nil:
		w.t.Fatalf("%s ends without a word: %+v", r.id, next)
	default:
		w.settle(r)
	}
	w.advance()
}

func (w *wave) settle(r *try) {
	if err := w.eng.Settle(w.now, r.id, engine.Actual{}); err != nil {
		w.t.Fatalf("%s: %v", r.id, err)
	}
	w.gone(r)
	w.advance()
}

func (w *wave) gone(r *try) {
	for i, o := range w.open {
		if o == r {
			w.open = append(w.open[:i], w.open[i+1:]...)
			w.ended++
			return
		}
	}
	w.t.Fatalf("%s ended twice", r.id)
}

// within holds retries to what one budget may have admitted of them by now.
func (w *wave) within(retries []try, budget string, counts func(*try) bool) {
	got, firsts := in(retries, w.now, counts), in(w.firsts, w.now, counts)
	if most := max(firsts/10, 10); got > most {
		w.t.Fatalf("%s: %d retries in 10s with %d first attempts, at most %d are due", budget, got, firsts, most)
	}
}

func (w *wave) advance() {
	for _, g := range w.eng.Advance(w.now) {
		var r *try
		for _, o := range w.open {
			if o.id == g.ID {
				r = o
			}
		}
		switch {
		case r == nil || r.backend != "":
			w.t.Fatalf("%s does not wait: %+v", g.ID, g)
		case g.Err != nil && g.Attempt == 0:
			w.gone(r)
		case g.Err != nil:
			if why := g.Err.Reason; g.Denied == route.Allowed && why != sluice.QueueTimeout && why != sluice.QueueFull && why != sluice.NoBackend {
				w.t.Fatalf("%s: %+v", g.ID, g.Err)
			}
			if err := w.eng.Settle(w.now, r.id, engine.Actual{}); err != nil {
				w.t.Fatalf("%s: %v", r.id, err)
			}
			w.gone(r)
		default:
			r.backend, r.at = g.Backend.ID, w.now
			if g.Attempt == 1 {
				w.firsts = append(w.firsts, *r)
				continue
			}
			if n := w.row[r.backend]; n >= route.DefaultFailures {
				w.t.Fatalf("%s: a retry goes to %s, which failed %d times in a row", g.ID, r.backend, n)
			}
			w.retries = append(w.retries, *r)
			w.within(w.retries, "backend "+string(r.backend), func(o *try) bool { return o.backend == r.backend })
		}
	}
}

func (w *wave) step(failing int) {
	t := w.t
	switch rapid.SampledFrom([]string{"burst", "end", "end", "time"}).Draw(t, "op") {
	case "burst":
		tenant := rapid.SampledFrom([]sluice.TenantID{"a", "b"}).Draw(t, "tenant")
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			w.arrive(tenant)
		}
	case "time":
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
		w.advance()
	case "end":
		for n := rapid.IntRange(1, 40).Draw(t, "n"); n > 0 && len(w.open) > 0; n-- {
			r := w.open[rapid.IntRange(0, len(w.open)-1).Draw(t, "which")]
			w.end(r, rapid.IntRange(1, 100).Draw(t, "luck") <= failing)
		}
	}
}

// TestRetryWave: whatever fails and when, no budget admits more than a tenth of the
// first attempts of the last ten seconds, or ten; no open breaker gets a retry;
// amplification is what follows from that; and every request ends once.
func TestRetryWave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &wave{t: t, now: start, row: map[sluice.BackendID]int{}}
		w.eng = engine.New(engine.Config{Table: parseTable(nil, `pool a queue=60
backend a1 pool=a conc=8
backend a2 pool=a conc=4
pool b queue=30
backend b1 pool=b conc=6
model m pools=a fallback=b
model n pools=b,a`)})
		failing := rapid.SampledFrom([]int{10, 50, 100}).Draw(t, "failing")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(failing)
		}
		windows := int((w.now.Sub(start) + route.RetryWindow) / route.RetryWindow)
		if n, most := len(w.retries), len(w.firsts)/10+10*windows; n > most {
			t.Fatalf("%d retries of %d first attempts in %v: at most %d are due", n, len(w.firsts), w.now.Sub(start), most)
		}
		for len(w.open) > 0 {
			r := w.open[0]
			if r.backend == "" {
				w.eng.Cancel(w.now, r.id, sluice.ClientGone)
				w.gone(r)
				w.advance()
				continue
			}
			w.end(r, false)
		}
		v := w.eng.Dump(w.now, engine.Zoom{}, 10)
		if v.Open != 0 || v.Running != 0 {
			t.Fatalf("left over: %+v", v)
		}
		for _, p := range v.Pools {
			if c := p.Counts; c.Enqueued != c.Dispatched+c.Cancelled+c.Rejected+c.Moved {
				t.Fatalf("pool %s: %+v", p.ID, c)
			}
		}
	})
}

// A tenant that asks for short waits, and does not get them, does not keep others'
// retries out: the operator's patience counts.
func TestImpatienceDoesNotShed(t *testing.T) {
	for _, tt := range []struct {
		ask, policy time.Duration // of the request; of its plan
		want        route.Denied
	}{
		{0, 0, route.Allowed},
		{time.Second, 0, route.Allowed},
		{time.Second, time.Second, route.DeniedShedding},
		{-1, time.Second, route.DeniedShedding},
		{time.Minute, 0, route.DeniedShedding},
	} {
		e := engine.New(engine.Config{Table: parseTable(t, "pool a maxwait=30s\nbackend a1 pool=a conc=1\nbackend a2 pool=a conc=1\nmodel m pools=a")})
		now := start
		arrive := func(id sluice.RequestID, ask, policy time.Duration) {
			v := e.Arrive(now, engine.Call{
				ID: id, Model: "m", Dialect: "openai", MaxWait: ask, Work: sluice.Work{Input: 1, InputBound: 1, OutputBound: 1},
				Principal: sluice.Principal{Tenant: sluice.TenantID(id), Project: sluice.DefaultProject, Key: "k", Policy: &sluice.Policy{MaxWait: int64(policy)}},
			})
			if v.Err != nil {
				t.Fatal(v.Err)
			}
			e.Advance(now)
		}
		arrive("r1", -1, 0)
		arrive("r2", -1, 0)
		arrive("r3", tt.ask, tt.policy)
		now = now.Add(max(tt.ask, tt.policy))
		e.Advance(now) // it waits no longer
		if next := e.AttemptEnded(now, "r1", engine.Result{Reason: sluice.UpstreamError}); next.Denied != tt.want {
			t.Errorf("asks for %v of %v: the retry of another is denied by %q, want %q", tt.ask, tt.policy, next.Denied, tt.want)
		}
	}
}
