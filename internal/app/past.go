package app

import (
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/admin"
	"sluice/internal/ledger"
)

// past is what became of the requests that a preview plays.
type past struct {
	classes [sluice.NumClasses]pastClass
	clamped int64         // answers
	tokens  sluice.Tokens // by which they were
	felt    int64         // the ladder of their pool
	aside   int64         // of the same time, that are not played: they asked for no place
}

type pastClass struct {
	requests, completed, shed, ended int64
	waits                            []time.Duration // of those that had a place
}

func (p *past) add(e *ledger.Entry) {
	c := &p.classes[e.Class]
	c.requests++
	switch {
	case e.Outcome == sluice.Completed:
		c.completed++
	case e.Outcome == sluice.Rejected:
		c.shed++
	default:
		c.ended++
	}
	if e.Attempt > 0 {
		c.waits = append(c.waits, e.Queued)
	}
	if e.Tier > 0 {
		p.felt++
	}
}

// figures are those of a run.
func (p *past) figures(length time.Duration) (out admin.PreviewRun) {
	out.Classes, out.Clamped, out.ClampedTokens = []admin.PreviewClass{}, p.clamped, int64(p.tokens)
	for i := range p.classes {
		c := &p.classes[i]
		if c.requests == 0 {
			continue
		}
		out.Completed, out.Shed, out.Ended = out.Completed+c.completed, out.Shed+c.shed, out.Ended+c.ended
		slices.Sort(c.waits)
		at := func(permille int) float64 {
			if len(c.waits) == 0 {
				return 0
			}
			return c.waits[min(len(c.waits)*permille/1000, len(c.waits)-1)].Seconds()
		}
		out.Classes = append(out.Classes, admin.PreviewClass{
			Class: sluice.Class(i).String(), Requests: c.requests, Completed: c.completed, Shed: c.shed, Ended: c.ended, WaitP50Seconds: at(500), WaitP99Seconds: at(990),
		})
	}
	out.GoodputPerSecond = float64(out.Completed) / length.Seconds()
	return out
}

// previewTolerance is how far the run without a tier may be from the ledger, in parts of
// the requests, and still agree with it.
const previewTolerance = 0.05

// agrees reports whether the run without a tier has as many requests refused as the ledger
// has, within the tolerance, and what is known to make the two differ. What ended early
// in the past had a place, and is played to its end.
func (r *rehearsal) agrees(p *admin.LadderPreview) (ok bool, why []string) {
	was := p.Ledger.Completed + p.Ledger.Ended
	is := p.Without.Completed + p.Without.Ended
	ok = float64(max(was-is, is-was)) <= max(previewTolerance*float64(p.Requests), 1)
	say := func(n int64, format string) {
		if n > 0 {
			why = append(why, fmt.Sprintf(format, n))
		}
	}
	say(p.Ledger.Ended, "%d failed or were left by their clients, and are played to their end")
	say(r.past.felt, "%d felt the pool's ladder, which is on the ground in the run without a tier: answers may have been longer and more may have waited")
	say(r.past.aside, "%d more had no need of a place, or were refused for what no ladder has a part in: they are not played")
	known := 0
	for _, b := range r.side.Table.Pools[r.pool].Backends {
		if r.fits[b.ID] == nil {
			known++
		}
	}
	say(int64(known), "%d backends of the pool answered nothing in that time: they are taken to be as fast as the others")
	if !ok {
		why = append(why, "each backend is played at one pace, the mean of its answers, whatever else it runs")
	}
	return ok, why
}
