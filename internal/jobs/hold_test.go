package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/jobs"
	"sluice/test/bubble"
)

// spent refuses by a tenant's budget of the day from one time to another, as long as it is
// not raised.
type spent struct {
	from, until, raised time.Time
}

func (s *spent) refuse(now time.Time) *sluice.Error {
	if now.Before(s.from) || !now.Before(s.until) || !s.raised.IsZero() && !now.Before(s.raised) {
		return nil
	}
	return &sluice.Error{
		Kind: sluice.KindBudgetExhausted, Reason: sluice.BudgetSpent, Msg: "the budget is spent",
		Refusal: &sluice.Refusal{Scope: sluice.ScopeTenant, ID: "acme", Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerDay, Amount: 1}, Reset: s.until},
	}
}

// A batch that waits for a budget names it, and is expected no sooner than that begins
// anew: that time stays where it is, in every process, and is when it goes on.
func TestSpentBudgetIsNamed(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		begun := time.Now()
		budget := &spent{from: begun.Add(20 * time.Second), until: begun.Add(8 * time.Minute).UTC()}
		o.answer = func(context.Context, *exchange.Request) (sluice.Nano, *sluice.Error) {
			if e := budget.refuse(time.Now()); e != nil {
				return 0, e
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{Lines: 2})
		other := o.desk(jobs.Bounds{}) // another replica, whose face is asked
		j := o.batch(c, "acme", chatLines(100), 2*time.Hour)
		if p := c.Progress(&j); p.Held != nil {
			t.Errorf("waits for %+v at once", p.Held)
		}
		o.until(j.ID, func(j jobs.Job) bool { return j.Held != nil })
		var first jobs.Progress
		ran := 0
		for i := range 3 { // at times far apart
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			j := o.job(j.ID)
			p := c.Progress(&j)
			if p.Held == nil || p.Held.Scope != sluice.ScopeTenant || p.Held.ID != "acme" || p.Held.Dimension != sluice.Spend || !p.Held.Until.Equal(budget.until) || p.Held.Reason != sluice.BudgetSpent {
				t.Fatalf("waits for %+v", p.Held)
			}
			if p.Finish.Before(budget.until) || p.Late || p.Urgency != jobs.Relaxed {
				t.Errorf("expected at %s, late %v, %s; the budget begins anew at %s", p.Finish, p.Late, p.Urgency, budget.until)
			}
			if q := other.Progress(&j); q.Held == nil || !q.Finish.Equal(p.Finish) {
				t.Errorf("another process expects %s, and this one %s", q.Finish, p.Finish)
			}
			total := 0
			o.mu.Lock()
			for _, n := range o.ran {
				total += n
			}
			o.mu.Unlock()
			if i == 0 {
				first, ran = p, total
				continue
			}
			if !p.Finish.Equal(first.Finish) {
				t.Errorf("expected at %s, and before at %s", p.Finish, first.Finish)
			}
			if n := total - ran; n > i*4 {
				t.Errorf("%d lines were tried in %d minutes though nothing has room", n, 2*i)
			}
		}
		j = o.until(j.ID, ended)
		if j.Counts.Succeeded != 100 || j.Ended.Before(budget.until) || j.Ended.After(first.Finish.Add(5*time.Minute)) {
			t.Errorf("%+v, ended at %s, expected at %s", j.Counts, j.Ended, first.Finish)
		}
	})
}

// A budget that is raised before its window ends is noticed.
func TestRaisedBudgetIsNoticed(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := newOffice(t)
		begun := time.Now()
		budget := &spent{from: begun, until: begun.Add(10 * time.Hour), raised: begun.Add(3 * time.Minute)}
		o.answer = func(context.Context, *exchange.Request) (sluice.Nano, *sluice.Error) {
			if e := budget.refuse(time.Now()); e != nil {
				return 0, e
			}
			return 1000, nil
		}
		c := o.start(jobs.Bounds{})
		j := o.batch(c, "acme", chatLines(12), 24*time.Hour)
		held := o.until(j.ID, func(j jobs.Job) bool { return j.Held != nil })
		if p := c.Progress(&held); p.Held == nil || !p.Finish.IsZero() {
			t.Errorf("nothing has run yet, and it is expected at %s by %+v", p.Finish, p.Held)
		}
		j = o.until(j.ID, ended)
		if took := j.Ended.Sub(begun); j.Counts.Succeeded != 12 || took < 3*time.Minute || took > 10*time.Minute {
			t.Errorf("%+v after %s", j.Counts, took)
		}
		if j.Held != nil {
			t.Errorf("it has ended, and waits for %+v", j.Held)
		}
	})
}
