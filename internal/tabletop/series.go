package tabletop

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
)

const (
	mostBuckets = 240
	mostTenants = 20 // that have a line of their own
	others      = "others"
)

// bucketLengths are those that people read easily.
var bucketLengths = []time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
}

// series is figures over time: one line for each class, and for each of the tenants
// that are expected to ask for most. Which these are does not depend on the policy,
// so that runs show the same.
type series struct {
	sources []Source
	weights []int64 // of each source's tenant
	class   []int   // line of each source
	tenant  []int

	bucket time.Duration
	count  int
	at     int // bucket under way
	length time.Duration

	lines  []*line
	pools  []PoolLine
	served [][]int64 // by bucket and source
	fair   [][]int64
}

// line is a Line under way.
type line struct {
	Line
	reasons [sluice.NumReasons][]int64
	cost    []sluice.Nano
	open    []int64 // requests of a bucket that have not ended
	ttft    []*histogram
	tpot    []*histogram
}

func newSeries(p *play) *series {
	s := &series{sources: p.s.Sources, length: p.s.Length}
	s.bucket = bucketLengths[len(bucketLengths)-1]
	for _, b := range bucketLengths {
		if (p.s.Length+b-1)/b <= mostBuckets {
			s.bucket = b
			break
		}
	}
	for (p.s.Length+s.bucket-1)/s.bucket > mostBuckets {
		s.bucket *= 2
	}
	s.count = max(int((p.s.Length+s.bucket-1)/s.bucket), 1)
	s.group(p.s)
	ids := map[sluice.PoolID]bool{}
	add := func(v *Variant) {
		for id := range v.Table.Pools {
			ids[id] = true
		}
	}
	add(&p.s.Policies[p.policy])
	for i := range p.events {
		if a := p.events[i].Apply; a != nil {
			add(&a[p.policy])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		s.pools = append(s.pools, PoolLine{
			Pool: id, Waiting: make([]int64, s.count), Running: make([]int64, s.count), KVUsed: make([]int64, s.count), Up: make([]int64, s.count), Demand: make([]int64, s.count),
		})
	}
	s.setWeights(&p.s.Policies[p.policy])
	s.served, s.fair = make([][]int64, s.count), make([][]int64, s.count)
	for i := range s.count {
		s.served[i], s.fair[i] = make([]int64, len(s.sources)), make([]int64, len(s.sources))
	}
	return s
}

// setWeights takes the tenants' weights of a variant.
func (s *series) setWeights(v *Variant) {
	s.weights = make([]int64, len(s.sources))
	for i := range s.sources {
		s.weights[i] = 1
		if p := v.Principals[i].Policy; p != nil {
			s.weights[i] = max(p.Weight, 1)
		}
	}
}

// group gives every source its lines.
func (s *series) group(sc *Scenario) {
	demand := map[sluice.TenantID]float64{}
	classes := map[sluice.Class]int{}
	for i := range sc.Sources {
		x := &sc.Sources[i]
		demand[x.Tenant] += x.demand(sc.Length)
		classes[x.Class] = 0
	}
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		classes[c] = s.line("class", c.String())
	}
	order := slices.SortedFunc(maps.Keys(demand), func(a, b sluice.TenantID) int {
		return cmp.Or(cmp.Compare(demand[b], demand[a]), cmp.Compare(a, b))
	})
	tenants := map[sluice.TenantID]int{}
	for i, t := range order {
		switch {
		case i < mostTenants:
			tenants[t] = s.line("tenant", string(t))
		case i == mostTenants:
			tenants[t] = s.line("tenant", others)
		default:
			tenants[t] = len(s.lines) - 1
		}
	}
	for i := range sc.Sources {
		s.class = append(s.class, classes[sc.Sources[i].Class])
		s.tenant = append(s.tenant, tenants[sc.Sources[i].Tenant])
	}
}

// demand is the tokens per second that a source is expected to ask for.
func (x *Source) demand(length time.Duration) float64 {
	if x.Arrivals.Process != Trace {
		return x.Arrivals.Rate * (x.Input.Average() + x.Output.Average())
	}
	sum := 0.0
	for i := range x.Arrivals.Rows {
		sum += float64(x.Arrivals.Rows[i].Input + x.Arrivals.Rows[i].Output)
	}
	return sum / max(length.Seconds(), 1)
}

func (s *series) line(kind, name string) int {
	n := s.count
	l := &line{cost: make([]sluice.Nano, n), open: make([]int64, n), ttft: make([]*histogram, n), tpot: make([]*histogram, n)}
	none := func() []time.Duration {
		d := make([]time.Duration, n)
		for i := range d {
			d[i] = -1
		}
		return d
	}
	l.Line = Line{
		Kind: kind, Name: name,
		Requests: make([]int64, n), Good: make([]int64, n), Input: make([]int64, n), KV: make([]int64, n),
		TTFT50: none(), TTFT99: none(), TPOT50: none(), TPOT99: none(), QueueAge: make([]time.Duration, n),
		Share: make([]int64, n), FairShare: make([]int64, n), PerGood: make([]sluice.Nano, n),
	}
	s.lines = append(s.lines, l)
	return len(s.lines) - 1
}

func (s *series) bucketOf(now time.Duration) int { return min(int(now/s.bucket), s.count-1) }

// end is when the bucket under way ends.
func (s *series) end() time.Duration {
	if s.at >= s.count {
		return math.MaxInt64
	}
	return min(time.Duration(s.at+1)*s.bucket, s.length)
}

// of is the lines of a source.
func (s *series) of(source int) [2]*line {
	return [2]*line{s.lines[s.class[source]], s.lines[s.tenant[source]]}
}

func (s *series) began(q *request) {
	for _, l := range s.of(q.source) {
		l.Requests[q.bucket]++
		l.Input[q.bucket] += int64(q.truth.input)
		l.open[q.bucket]++
	}
}

// refused counts by the time of the refusal.
func (s *series) refused(q *request, why sluice.Reason) {
	for _, l := range s.of(q.source) {
		if l.reasons[why] == nil {
			l.reasons[why] = make([]int64, s.count)
		}
		l.reasons[why][min(s.at, s.count-1)]++
	}
}

func (s *series) settled(q *request, cost sluice.Nano) {
	for _, l := range s.of(q.source) {
		l.cost[q.bucket] += cost
	}
}

// share takes what a source was served of the bucket under way, and was due.
func (s *series) share(source int, served, fair int64) {
	if s.at < s.count {
		s.served[s.at][source] += served
		s.fair[s.at][source] += fair
	}
}

func (s *series) ended(q *request, ttft, tpot time.Duration, good bool) {
	b := q.bucket
	for _, l := range s.of(q.source) {
		if ttft >= 0 {
			sampled(l.ttft, b, ttft)
		}
		if tpot >= 0 {
			sampled(l.tpot, b, tpot)
		}
		if good {
			l.Good[b]++
		}
		if l.open[b]--; l.open[b] == 0 && b < s.at {
			l.close(b)
		}
	}
}

func sampled(in []*histogram, b int, d time.Duration) {
	if in[b] == nil {
		in[b] = &histogram{}
	}
	in[b].add(d)
}

// close reads off the percentiles of a bucket whose requests have ended, and lets go
// of the samples.
func (l *line) close(b int) {
	if h := l.ttft[b]; h != nil {
		l.TTFT50[b], l.TTFT99[b], l.ttft[b] = h.quantile(50_000), h.quantile(99_000), nil
	}
	if h := l.tpot[b]; h != nil {
		l.TPOT50[b], l.TPOT99[b], l.tpot[b] = h.quantile(50_000), h.quantile(99_000), nil
	}
	if l.Good[b] > 0 {
		l.PerGood[b] = l.cost[b] / sluice.Nano(l.Good[b])
	}
}

// sample ends the bucket under way.
func (s *series) sample(p *play) {
	b := s.at
	for q := p.roster.head; q != nil; q = q.next {
		for _, l := range s.of(q.source) {
			if q.call != nil && !q.call.Running() {
				l.QueueAge[b] = max(l.QueueAge[b], p.now-q.since)
			}
			if q.run.seen > 0 && q.run.on != nil {
				l.KV[b] += int64(q.truth.input + q.run.seen)
			}
		}
	}
	s.levels(p, b)
	s.at++
	for _, l := range s.lines {
		for i := range s.at {
			if l.open[i] == 0 {
				l.close(i)
			}
		}
	}
}

// levels takes what the pools have at the end of a bucket.
func (s *series) levels(p *play, b int) {
	v := p.gateway.Look(p.time(), engine.Zoom{Levels: true}, math.MaxInt32)
	for i := range v.Pools {
		pv := &v.Pools[i]
		k, ok := slices.BinarySearchFunc(s.pools, pv.ID, func(l PoolLine, id sluice.PoolID) int { return cmp.Compare(l.Pool, id) })
		if !ok {
			continue
		}
		l := &s.pools[k]
		l.Waiting[b] = int64(pv.Waiting)
		if _, ratio, known := pv.Demand.Ratios.Most(); known {
			l.Demand[b] = ratio / 1000
		}
		var used, capacity sluice.Tokens
		for j := range pv.Backends {
			m := p.byID[pv.Backends[j].ID]
			l.Running[b] += pv.Backends[j].Running
			m.sync(p.time())
			load := m.sim.Load()
			used, capacity = used+load.KVUsed, capacity+load.KVCapacity
			if load.Health == fleet.Serving {
				l.Up[b]++
			}
		}
		l.KVUsed[b] = permille(used, capacity)
	}
}

// finish reads off what is still open.
func (s *series) finish(p *play) {
	if s.at < s.count {
		s.sample(p)
	}
	for _, l := range s.lines {
		for b := range s.count {
			l.close(b)
		}
	}
}

// result is the figures of the buckets that were reached.
func (s *series) result() Series {
	out := Series{Bucket: s.bucket, Count: s.count, Pools: s.pools}
	for i, l := range s.lines {
		for b := range s.count {
			var all, served, fair int64
			for x := range s.sources {
				all += s.served[b][x]
				if s.class[x] == i || s.tenant[x] == i {
					served, fair = served+s.served[b][x], fair+s.fair[b][x]
				}
			}
			l.Share[b], l.FairShare[b] = permille(served, all), permille(fair, all)
		}
		for why, counts := range l.reasons {
			if counts != nil {
				l.Rejected = append(l.Rejected, ReasonLine{sluice.Reason(why), counts})
			}
		}
		out.Groups = append(out.Groups, l.Line)
	}
	return out
}
