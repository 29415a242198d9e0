package jobs

import "time"

// The measuring of a job's pace.
const (
	paceWindow = 5 * time.Minute // over which lines that ended are counted
	paceLeast  = 10 * time.Second
	paceMost   = 5 * time.Minute
)

// sample is how many lines of a job had an end at a time.
type sample struct {
	at    time.Time
	ended int
}

// pace is what is measured of a job, by whoever runs it, and how urgent it is.
type pace struct {
	samples []sample // ascending, of the last paceWindow and one before
	urgency Urgency
	changed time.Time // when urgency was decided last
	away    away
}

// away is lines that a provider's own batch API has: they are not done at the rate, and no
// worker can hurry them.
type away struct {
	lines    int
	expected time.Time // when the last is to be back
}

// note adds a sample. Times within a second of the last take its place.
func (p *pace) note(now time.Time, ended int) {
	if n := len(p.samples); n > 1 && now.Sub(p.samples[n-2].at) < time.Second {
		p.samples[n-1] = sample{now, ended}
		return
	}
	p.samples = append(p.samples, sample{now, ended})
	first := 0
	for first < len(p.samples)-2 && now.Sub(p.samples[first+1].at) >= paceWindow {
		first++
	}
	if first > 0 {
		p.samples = append(p.samples[:0], p.samples[first:]...)
	}
}

// rate is lines ended per second; 0 if none have or not for long enough.
func (p *pace) rate() float64 {
	n := len(p.samples)
	if n < 2 {
		return 0
	}
	a, b := p.samples[0], p.samples[n-1]
	if took := b.at.Sub(a.at); took >= time.Second && b.ended > a.ended {
		return float64(b.ended-a.ended) / took.Seconds()
	}
	return 0
}

// here is how many open lines of a job are not away.
func (p *pace) here(j *Job) int {
	return j.Counts.Open() - min(p.away.lines, j.Counts.Running)
}

// due reports whether urgency is to be decided anew.
func (p *pace) due(now time.Time, j *Job) bool {
	return !p.changed.IsZero() && now.Sub(p.changed) >= min(max(j.Window/100, paceLeast), paceMost)
}

// last is when the last line of a job will have ended.
func (p *pace) last(now time.Time, j *Job) time.Time {
	here := p.here(j)
	at := p.finish(now, here)
	if here < j.Counts.Open() && (here == 0 || !at.IsZero()) && p.away.expected.After(at) {
		return p.away.expected
	}
	return at
}

// finish is when a number of lines will have ended at the rate, zero if it has none.
func (p *pace) finish(now time.Time, open int) time.Time { return finishAt(now, p.rate(), open) }

// finishAt is when a number of lines will have ended, at a rate from a time on; zero if
// there is none.
func finishAt(from time.Time, rate float64, open int) time.Time {
	if open == 0 {
		return from
	}
	if rate <= 0 {
		return time.Time{}
	}
	left := float64(open) / rate
	if left > (10 * 365 * 24 * time.Hour).Seconds() {
		return time.Time{}
	}
	return from.Add(time.Duration(left * float64(time.Second)))
}

// decide says how urgent a job is from now on: see doc.go. It changes by one at a time and
// no more often than what was decided before can have shown.
func (p *pace) decide(now time.Time, j *Job) Urgency {
	if p.changed.IsZero() {
		p.changed, p.urgency = now, j.Urgency
	}
	here := p.here(j)
	if !p.due(now, j) || here == 0 || j.Held.on(now) { // no pace helps what a provider has, nor where a limit is spent
		return p.urgency
	}
	left := j.Deadline.Sub(now)
	spare := max(left/10, j.Window/50)
	finish := p.finish(now, here)
	needs := finish.Sub(now)
	switch {
	case finish.IsZero() && left > j.Window*3/4: // nothing can be said yet
		return p.urgency
	case finish.IsZero() || needs > left-spare:
		p.urgency = min(p.urgency+1, NumUrgencies-1)
	case needs < left/2 && p.urgency > Relaxed:
		p.urgency--
	default:
		return p.urgency
	}
	p.changed = now
	return p.urgency
}

// progress is what is told of it.
func (p *pace) progress(now time.Time, j *Job) Progress {
	out := Progress{Rate: p.rate(), Finish: p.last(now, j), Urgency: p.urgency}
	if j.Counts.Total > 0 {
		out.Done = float64(j.Counts.Total-j.Counts.Open()) / float64(j.Counts.Total)
	}
	if open := j.Counts.Open(); open > 0 && j.Held.on(now) {
		out.Held, out.Finish = j.Held, j.Held.finish(out.Rate, open)
	}
	out.Late = out.Finish.After(j.Deadline)
	return out
}
