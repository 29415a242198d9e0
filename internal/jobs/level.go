package jobs

import "time"

// Level is what there is to do and what is under way, as this process sees it.
type Level struct {
	Jobs     [Completed]int // that have not ended, by state
	Late     int            // of those, predicted to miss their deadline
	Waiting  int            // lines
	Running  int            // lines, of all workers
	Inflight int            // lines of this process
	// Stalled is for how long the store has not done something that jobs wait for; 0 if it
	// does.
	Stalled time.Duration
}

// Level is what there is to do now.
func (d *Desk) Level() (l Level) {
	now := d.now()
	l.Stalled = d.stalled(now)
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	l.Inflight = d.crew.running
	for _, w := range d.crew.jobs {
		if w.job.State.Ended() {
			continue
		}
		l.Jobs[w.job.State]++
		l.Waiting += w.job.Counts.Waiting
		l.Running += w.job.Counts.Running
		if w.job.State == InProgress && w.pace.progress(now, &w.job).Late {
			l.Late++
		}
	}
	return l
}
