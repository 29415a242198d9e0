package tabletop

import (
	"cmp"
	"slices"
	"time"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/tabletop/control"
)

// measure is what is counted of a run. It sees what is true of requests, and tells
// nobody who decides. Its memory grows with sources, phases and buckets of the
// series, not with requests.
type measure struct {
	spans  []span
	phase  int // that runs: 0 the warm-up, then those of spans, then the drain
	length time.Duration
	tables *routes

	tallies [][]tally // by phase, 0 of the warm-up, and source
	use     [][]BackendUse
	fair    [][]FairnessGap
	marks   []Mark

	series   *series
	shares   *shares
	fairness *fairness
	recovery *recovery
	open     int64 // holds that are left when all has ended
}

func newMeasure(p *play, v *Variant) *measure {
	m := &measure{spans: p.s.spans(), tables: newRoutes(v.Table), length: p.s.Length}
	m.tallies = make([][]tally, len(m.spans)+2)
	for i := range m.tallies {
		m.tallies[i] = make([]tally, len(p.s.Sources))
	}
	m.use = make([][]BackendUse, len(m.spans)+2)
	m.fair = make([][]FairnessGap, len(m.spans)+2)
	m.series = newSeries(p)
	m.shares = newShares(p.s)
	m.fairness = newFairness(p.s, v)
	m.recovery = newRecovery(p.events)
	if m.starts(0) == 0 {
		m.phase = 1
	}
	return m
}

// of is the tally of a request.
func (m *measure) of(q *request) *tally { return &m.tallies[q.phase][q.source] }

// now is a source's tally of what happens now, whenever its request came.
func (m *measure) now(q *request) *tally { return &m.tallies[m.phase][q.source] }

// starts is when the phase after one begins.
func (m *measure) starts(phase int) time.Duration {
	if phase < len(m.spans) {
		return m.spans[phase].from
	}
	return m.length
}

// next is when figures over time are next taken: at a bucket's end, or where a phase
// begins or ends.
func (m *measure) next() time.Duration {
	at := m.series.end()
	if m.phase <= len(m.spans) {
		at = min(at, m.starts(m.phase))
	}
	return at
}

// sample takes the figures of a moment.
func (m *measure) sample(p *play) {
	m.shares.close(m)
	if p.now >= m.series.end() {
		m.series.sample(p)
	}
	for m.phase <= len(m.spans) && p.now >= m.starts(m.phase) {
		m.turn(p)
		m.phase++
	}
}

// turn closes a phase.
func (m *measure) turn(p *play) {
	from := time.Duration(0)
	if m.phase > 0 {
		from = m.starts(m.phase - 1)
	}
	for _, x := range p.machines {
		x.sync(p.time())
		m.use[m.phase] = append(m.use[m.phase], x.use.read(x, p.now, p.now-from))
	}
	m.fair[m.phase] = m.fairness.read()
}

// event marks what happens.
func (m *measure) event(p *play, e *Event) {
	m.marks = append(m.marks, Mark{At: p.now, Label: e.label()})
}

// began is a request that is submitted for the first time.
func (m *measure) began(p *play, q *request) {
	q.phase = m.phase
	q.bucket = m.series.bucketOf(p.now)
	t := m.of(q)
	t.requests++
	t.input += q.truth.input
	t.output += q.truth.output
	m.shares.begin(m, q)
	m.series.began(q)
}

// admitted is a submission that the gateway has taken.
func (m *measure) admitted(p *play, q *request) {
	q.since = p.now
	m.of(q).admitted++
	m.fairness.enqueue(q, q.call.Verdict.Pool)
	m.shares.waits(q)
}

// waits is a request that waits for a further attempt.
func (m *measure) waits(p *play, q *request) {
	q.since = p.now
	m.fairness.enqueue(q, q.call.Place.Pool)
	m.shares.waits(q)
}

// refused is a submission that the gateway has refused, at arrival or after a wait.
func (m *measure) refused(q *request, why sluice.Reason) {
	m.of(q).reasons[why]++
	m.series.refused(q, why)
	m.shares.refused(q)
	q.refusals++
}

// waited is a request that leaves its queue without a place.
func (m *measure) waited(q *request) {
	m.fairness.dequeue(q)
	m.shares.waited(q)
}

// left is one whose client did.
func (m *measure) left(q *request) { m.shares.refused(q) }

// dispatched is an attempt that begins.
func (m *measure) dispatched(q *request) {
	t := m.of(q)
	t.attempts++
	if q.call.Attempts == 1 {
		t.dispatched++
	}
	m.shares.waited(q)
	m.fairness.dispatch(q)
}

// hedged is a second attempt that begins beside another.
func (m *measure) hedged(h *request) {
	t := m.of(h)
	t.attempts++
	t.hedged++
	m.fairness.enqueue(h, h.call.Place.Pool)
	m.fairness.dispatch(h)
}

// unhedged is an attempt that is late and got no second one beside it.
func (m *measure) unhedged(q *request, why route.Denied) {
	if why.Budgeted() {
		m.of(q).unretried++
	}
}

// won is a hedge that had the first token.
func (m *measure) won(q *request) { m.of(q).won++ }

// lost is an attempt that the other was before, or whose request has ended.
func (m *measure) lost(q *request, e *control.Ended) {
	m.fairness.end(q)
	if e.Twice {
		m.of(q).twice++
	}
}

// firstToken is the first of an attempt.
func (m *measure) firstToken(q *request) { m.shares.prefilled(m, q) }

// seen is how far an answer is.
func (m *measure) seen(p *play, q *request, n sluice.Tokens) {
	if d := n - q.run.seen; d > 0 {
		m.now(q).served += d
		m.shares.decoded(m, q, d)
	}
	q.run.seen, q.run.last = n, p.now
	m.fairness.correct(q)
}

// attemptEnded is an attempt that has ended, well or not.
func (m *measure) attemptEnded(q *request) { m.fairness.end(q) }

// unretried is an attempt that a retry budget let none follow.
func (m *measure) unretried(q *request) { m.of(q).unretried++ }

func (m *measure) resubmitted(q *request) { m.of(q).resubmitted++ }

func (m *measure) impatient(q *request) { m.of(q).impatient++ }

// away is a request that was given a place in another region than its home.
func (m *measure) away(q *request) { m.of(q).away++ }

// settled is a submission's reservation that has ended.
func (m *measure) settled(q *request, e *control.Ended) {
	t := m.of(q)
	t.cost += e.Cost
	if e.Twice {
		t.twice++
	} else {
		t.settled++
	}
	m.series.settled(q, e.Cost)
}

// ended is the end of a request for the person who waits.
func (m *measure) ended(p *play, q *request, o sluice.Outcome) {
	t, r := m.of(q), &q.run
	if q.placed {
		t.queue.add(q.queued)
	}
	ttft, tpot := time.Duration(-1), time.Duration(-1)
	if r.first > 0 {
		ttft = r.first - q.from
		t.ttft.add(ttft)
		if r.seen > 1 {
			tpot = (r.last - r.first) / time.Duration(r.seen-1)
			t.tpot.add(tpot)
		}
	}
	good := false
	switch o {
	case sluice.Completed:
		e2e := p.now - q.from
		t.completed++
		t.e2e.add(e2e)
		good = p.sources[q.source].Target.met(ttft, tpot, e2e)
	case sluice.Cancelled:
		t.cancelled++
		if q.leaves {
			t.willing++
		}
	case sluice.Rejected:
		t.rejected++
	default:
		t.failed++
	}
	if good {
		t.good++
	}
	m.series.ended(q, ttft, tpot, good)
	if !q.leaves || o != sluice.Cancelled {
		m.recovery.ended(p, q, good)
	}
}

// met reports whether a completed request's times are within the target.
func (t *Target) met(ttft, tpot, e2e time.Duration) bool {
	within := func(d, most time.Duration) bool { return most <= 0 || d <= most }
	return within(ttft, t.TTFT) && within(tpot, t.TPOT) && within(e2e, t.E2E)
}

// applied is another variant that has come into force.
func (m *measure) applied(v *Variant) {
	m.tables.set(v.Table)
	m.series.setWeights(v)
	m.fairness.applied(v)
}

// finish closes what is under way when the run is over.
func (m *measure) finish(p *play) {
	m.sample(p)
	if m.phase <= len(m.spans) { // it was interrupted
		m.turn(p)
	}
	m.series.finish(p)
	for q := p.roster.head; q != nil; q = q.next {
		m.of(q).unfinished++
		if !q.leaves {
			m.recovery.ended(p, q, false)
		}
	}
}

// result is the run's figures.
func (m *measure) result(p *play, r *Result) {
	for i, s := range m.spans {
		if s.from >= p.now && i > 0 {
			break // it was interrupted before
		}
		s.to = min(s.to, max(p.now, s.from))
		r.Phases = append(r.Phases, m.phaseOf(p, i+1, s))
	}
	if n := len(r.Phases); n > 0 {
		r.Phases[n-1].Books.Open = m.open
	}
	r.Marks, r.Series = m.marks, m.series.result()
}

func (m *measure) phaseOf(p *play, i int, s span) Phase {
	out := Phase{Name: s.name, From: s.from, To: s.to, Backends: m.use[i], Fairness: m.fair[i]}
	length := s.to - s.from
	var all tally
	classes, tenants := map[sluice.Class]*tally{}, map[sluice.TenantID]*tally{}
	for j := range p.s.Sources {
		x, t := &p.s.Sources[j], &m.tallies[i][j]
		all.merge(t)
		for _, to := range []*tally{group(classes, x.Class), group(tenants, x.Tenant)} {
			to.merge(t)
		}
	}
	out.All = all.figures(length, all.work)
	out.Retries, out.Books = all.retries(), all.books()
	for _, c := range sorted(classes) {
		out.Classes = append(out.Classes, Named{c.String(), classes[c].figures(length, all.work)})
	}
	for _, t := range sorted(tenants) {
		out.Tenants = append(out.Tenants, Named{string(t), tenants[t].figures(length, all.work)})
	}
	for j := range p.s.Sources {
		out.Sources = append(out.Sources, Named{p.s.Sources[j].Name, m.tallies[i][j].figures(length, all.work)})
	}
	return out
}

func group[K comparable](of map[K]*tally, k K) *tally {
	if of[k] == nil {
		of[k] = &tally{}
	}
	return of[k]
}

func sorted[K cmp.Ordered](of map[K]*tally) []K {
	keys := make([]K, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
