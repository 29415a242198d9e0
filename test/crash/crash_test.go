package crash

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/test/gateway"
)

const streams = 50

// steps are the failpoints, each with the most times that its step is let pass,
// with all streams running: how often it comes within a second or two. The first
// ones are part of every run, however short: when an answer is whole and not
// settled, drained and not marked, and when the last record is torn.
var steps = []failpoint{
	{"entry.before", 15},
	{"mark.before", 3},
	{"entry.half", 15},
	{"reserve.half", 15},
	{"reserve.before", 15},
	{"sync.before", 30},
	{"checkpoint.half", 5},
	{"mark.after", 3},
	{"dispatch.before", 15},
	{"checkpoint.before", 5},
	{"entry.after", 15},
	{"sync.after", 30},
	{"mark.half", 3},
	{"reserve.after", 15},
	{"checkpoint.after", 5},
	{"dispatch.after", 15},
}

// always is how many of the steps are part of every run.
const always = 4

// stepOf is the step of the n-th kill at one.
func stepOf(n int, seed uint64) failpoint {
	if n < always {
		return steps[n]
	}
	return steps[always+(n-always+int(seed))%(len(steps)-always)]
}

// TestCrashLoop is cD7: killed with 50 streams running, at any moment and at any
// step of the journal, the gateway starts again with every upstream call in its
// ledger exactly once, none of them for nothing, no hold open, and budgets that
// have been charged for what was lost.
func TestCrashLoop(t *testing.T) {
	rounds := size(t, "SLUICE_CRASH_ROUNDS", 10)
	seed := uint64(size(t, "SLUICE_CRASH_SEED", int(time.Now().UnixNano()&0xffff)+1))
	t.Logf("SLUICE_CRASH_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := newCrash(t, seed)
	c.p.trouble()
	var missed int
	for round := range rounds {
		if round%2 == 0 {
			c.killAt(t, 150*time.Millisecond+time.Duration(rnd.IntN(1200))*time.Millisecond)
		} else {
			point := stepOf(round/2, seed)
			point.n = 1 + rnd.IntN(point.n)
			if !c.killAtStep(t, point, 0) {
				missed++
			}
		}
		took := c.g.Start()
		c.audit.check()
		t.Logf("round %d: ready %v after the kill, %d lost so far", round+1, took.Round(time.Millisecond), c.audit.lost)
		if t.Failed() {
			t.FailNow()
		}
		c.g.Kill() // idle: what follows is another life
	}
	t.Logf("%d kills with %d streams running: %d upstream calls, %d entries, of which %d lost; %d whole answers; %d failpoints were not reached and the process killed instead",
		rounds, streams, c.audit.calls, c.audit.attempts, c.audit.lost, c.audit.answers, missed)
	if c.audit.lost < rounds {
		t.Errorf("only %d attempts were lost in %d kills: the load was too light to show anything", c.audit.lost, rounds)
	}
}

// crash is a gateway, its provider and its load through many lives.
type crash struct {
	g, victim *gateway.Gateway // in one directory: the binary, and this test binary
	p         *provider
	l         *load
	audit     *audit
	synced    string // file in which the victim tells its fsyncs
}

func newCrash(t *testing.T, seed uint64) *crash {
	t.Helper()
	c := &crash{p: newProvider(t), synced: filepath.Join(t.TempDir(), "synced")}
	c.g = gateway.New(t, gateway.Options{Config: configuration(c.p.url), Tenants: map[string]string{hard: hard, soft: soft}})
	c.victim = c.g.As([]string{os.Args[0]}, roleVariable+"=1")
	c.l = newLoad(c.g, seed)
	c.audit = &audit{t: t, g: c.g, p: c.p, l: c.l, forgiven: map[*call]bool{}}
	return c
}

// killAt runs the binary under load and kills it after a while.
func (c *crash) killAt(t *testing.T, after time.Duration) {
	t.Helper()
	c.g.Start()
	gone := c.underLoad(t, c.g)
	time.Sleep(after)
	c.g.Kill()
	gone()
}

// killAtStep runs the victim under load until it kills itself. Where it does not,
// it is killed, and false returned. slow is what its fsyncs take more.
func (c *crash) killAtStep(t *testing.T, point failpoint, slow time.Duration) (reached bool) {
	t.Helper()
	_ = os.Remove(c.synced) // of another life
	c.victim.Start(pointVariable+"="+point.String(), syncedVariable+"="+c.synced, slowVariable+"="+slow.String())
	gone := c.underLoad(t, c.victim)
	c.victim.Signal(armSignal)
	if reached = c.victim.Crashed(6 * time.Second); !reached {
		t.Logf("failpoint %v was not reached", point)
		c.victim.Kill()
	}
	gone()
	return reached
}

// underLoad brings up the load and waits until all streams run. The returned
// function waits for the end of it, once the gateway is gone.
func (c *crash) underLoad(t *testing.T, g *gateway.Gateway) (gone func()) {
	t.Helper()
	c.l.g = g
	ctx, cancel := context.WithTimeout(t.Context(), 2*gateway.Patience)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.l.run(ctx, streams)
	}()
	for deadline := time.Now().Add(gateway.Patience); g.Status().Running < streams*9/10; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("only %d streams run", g.Status().Running)
			break
		}
	}
	return func() {
		<-done
		cancel()
		c.l.g = c.g
	}
}
