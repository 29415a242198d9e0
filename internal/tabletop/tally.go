package tabletop

import (
	"time"

	"sluice"
)

// tally is what became of a source's requests of one phase.
type tally struct {
	requests, good, completed, failed, cancelled, rejected, unfinished int64
	impatient, away                                                    int64
	willing                                                            int64 // that left by their own will
	reasons                                                            [sluice.NumReasons]int64

	input, output sluice.Tokens // asked for
	served        sluice.Tokens // delivered in the phase
	work          int64         // likewise
	fair          int64         // of the work of all, what would have been its fair share
	cost          sluice.Nano

	ttft, tpot, e2e, queue histogram

	admitted, attempts, dispatched, unretried, resubmitted int64
	hedged, won                                            int64
	settled, twice                                         int64
}

func (t *tally) merge(o *tally) {
	t.requests += o.requests
	t.good += o.good
	t.completed += o.completed
	t.failed += o.failed
	t.cancelled += o.cancelled
	t.rejected += o.rejected
	t.unfinished += o.unfinished
	t.impatient += o.impatient
	t.away += o.away
	t.willing += o.willing
	for i, n := range o.reasons {
		t.reasons[i] += n
	}
	t.input += o.input
	t.output += o.output
	t.served += o.served
	t.work += o.work
	t.fair += o.fair
	t.cost += o.cost
	t.ttft.merge(&o.ttft)
	t.tpot.merge(&o.tpot)
	t.e2e.merge(&o.e2e)
	t.queue.merge(&o.queue)
	t.admitted += o.admitted
	t.attempts += o.attempts
	t.dispatched += o.dispatched
	t.unretried += o.unretried
	t.resubmitted += o.resubmitted
	t.hedged += o.hedged
	t.won += o.won
	t.settled += o.settled
	t.twice += o.twice
}

// figures is what a Result shows of it, over a span and beside the work of all.
func (t *tally) figures(length time.Duration, all int64) Figures {
	f := Figures{
		Requests: t.requests, Good: t.good, Completed: t.completed, Failed: t.failed, Cancelled: t.cancelled,
		Rejected: t.rejected, Unfinished: t.unfinished, Impatient: t.impatient, Away: t.away, Left: t.willing,
		SLO:  permille(t.good, t.requests-t.willing),
		TTFT: t.ttft.percentiles(), TPOT: t.tpot.percentiles(), E2E: t.e2e.percentiles(), Queue: t.queue.percentiles(),
		Work: t.work, Share: permille(t.work, all), FairShare: permille(t.fair, all), Cost: t.cost,
	}
	for why, n := range t.reasons {
		if n > 0 {
			f.Reasons = append(f.Reasons, ReasonCount{sluice.Reason(why), n})
		}
	}
	if t.good > 0 {
		f.PerGood = t.cost / sluice.Nano(t.good)
	}
	if s := length.Seconds(); s > 0 {
		f.Goodput = float64(t.good) / s
		f.InputTokens, f.OutputTokens, f.Served = float64(t.input)/s, float64(t.output)/s, float64(t.served)/s
	}
	return f
}

// retries is the same of attempts.
func (t *tally) retries() Retries {
	return Retries{
		Admitted: t.admitted, Attempts: t.attempts, Dispatched: t.dispatched, Amplification: permille(t.attempts, t.dispatched),
		Refused: t.unretried, Resubmitted: t.resubmitted, Hedged: t.hedged, Won: t.won,
	}
}

// books is the same of reservations.
func (t *tally) books() Books {
	return Books{Admitted: t.admitted, Settled: t.settled, Lost: max(t.admitted-t.settled, 0), Twice: t.twice, Cost: t.cost}
}
