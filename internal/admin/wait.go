package admin

import (
	"fmt"
	"strings"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/quota"
	"sluice/internal/sched"
)

func waitView(r *engine.RequestView) RequestWait {
	out := RequestWait{
		Request: string(r.ID), Phase: string(r.Phase), Tenant: string(r.Owner.Tenant), Project: string(r.Owner.Project), Key: string(r.Owner.Key),
		Model: string(r.Model), Class: r.Class.String(), Pool: string(r.Pool), AgeSeconds: r.Age.Seconds(), Attempt: r.Attempt,
		Position: r.Position, WaitSeconds: r.Wait.Seconds(), WaitedSeconds: r.Waited.Seconds(), MaxWaitSeconds: r.MaxWait.Seconds(), PredictedSeconds: r.Predicted.Seconds(),
		Passed: r.Passed, Allowance: r.Most, Gathering: r.Gathering, Backend: string(r.Backend), Seconds: r.Ran.Seconds(), Inside: r.Inside, Expires: r.Expires.Seconds(),
		Work: r.Cost, Needs: capacityOf(r.Needs), Holds: make(map[string]Amount),
	}
	for d, n := range r.Holds {
		if d := sluice.Dimension(d); n > 0 && d != sluice.AllTokens {
			out.Holds[d.String()] = amount(n, d)
		}
	}
	for i := range r.Lacks {
		out.Lacks = append(out.Lacks, lackView(&r.Lacks[i]))
	}
	return out
}

func lackView(l *engine.LackView) Lack {
	out := Lack{What: l.What, Requests: l.N, Request: string(l.Request), Tenant: string(l.Tenant)}
	switch l.What {
	case engine.LackRoom, engine.LackPool, engine.LackCeiling, engine.LackHeadroom, engine.LackReserve:
		out.Dimension, out.Need, out.Free, out.Kept = dimensionName(l.Dimension), l.Need, l.Free, l.Kept
	}
	switch l.What {
	case engine.LackCeiling, engine.LackHeadroom:
		out.Class = l.Class.String()
	case engine.LackLimit:
		out.Limit = gaugeFigure(l.Refusal)
	}
	out.Why = out.sentence()
	if l.What == engine.LackRate {
		out.Why = fmt.Sprintf("the rate of its backend's provider is used up: there is room in %v", l.Wait.Round(time.Millisecond))
	}
	return out
}

func gaugeFigure(f *quota.Refusal) *RefusalFigure {
	d := f.Limit.Dimension
	return &RefusalFigure{
		Scope: f.Owner.Scope.String(), ID: f.Owner.Label(), Limit: LimitName(d, f.Limit.Window), Amount: amount(f.Limit.Amount, d),
		Requested: amount(f.Requested, d), Used: amount(f.Used, d), Held: amount(f.Held, d),
	}
}

func dimensionName(d int) string {
	switch d {
	case sched.KV:
		return "kv_tokens"
	case sched.Prefill:
		return "prefill_tokens"
	}
	return "slots"
}

// sentence says what is in the way.
func (l *Lack) sentence() string {
	of := strings.ReplaceAll(l.Dimension, "_", " ")
	switch l.What {
	case engine.LackLimit:
		f := l.Limit
		return fmt.Sprintf("%s of its %s is full: %s of %s held", strings.ReplaceAll(f.Limit, "_", " "), strings.ReplaceAll(f.Scope, "_", " "), f.Held, f.Amount)
	case engine.LackBackend:
		return "none of its backends is fit to be used"
	case engine.LackFlow:
		if l.Requests == 1 {
			return "one request of its tenant and class came before it"
		}
		return fmt.Sprintf("%d requests of its tenant and class came before it", l.Requests)
	case engine.LackTurn:
		return "nothing but that others are due first"
	case engine.LackRoom:
		return fmt.Sprintf("no backend has %s for it: it needs %d, %d are free where most is", of, l.Need, l.Free)
	case engine.LackSplit:
		return "no one backend has all that it needs free, though others have a part each"
	case engine.LackPool:
		return fmt.Sprintf("the pool has no %s for it: it needs %d, %d are free", of, l.Need, l.Free)
	case engine.LackCeiling:
		return fmt.Sprintf("class %s is at its ceiling of %s: it needs %d, %d are left", l.Class, of, l.Need, l.Free)
	case engine.LackHeadroom:
		return fmt.Sprintf("%d %s are kept free for class %s: it needs %d, %d are left", l.Kept, of, l.Class, l.Need, l.Free)
	case engine.LackReserve:
		return fmt.Sprintf("%d %s are kept for the contract of %s: it needs %d, %d are left", l.Kept, of, l.Tenant, l.Need, l.Free)
	case engine.LackGathering:
		return fmt.Sprintf("what becomes free is gathered for request %s", l.Request)
	}
	return ""
}
