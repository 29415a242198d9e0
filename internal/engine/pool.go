package engine

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"sluice"
	"sluice/internal/demand"
	"sluice/internal/price"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// pool is a route.Pool with its queue and places. It outlives tables by name.
type pool struct {
	id      sluice.PoolID
	spec    *route.Pool
	weights route.Cost
	queue   *sched.Queue
	places  []*route.Place
	leaving []*route.Place // taken out of the table while they ran something; for the view
	blanks  []Candidate    // of each place, what is told of it whatever the request
	left    []route.Left   // scratch: one word per place
	asking  route.Asking   // scratch: what the last choice was for; empty if its rule does not look at that
	chooser *route.Chooser
	figures []route.Figure // scratch: of each place, of the last choice; empty if it preferred nothing
	room    room           // what the queue is shown while it is served
	kept    *route.Place   // what becomes free there is kept
	keptFor *sched.Item    // for this one, as long as the queue says that it gathers
	copies  []*request     // that run, in the order in which they began
	retries *route.Retries // the engine's
	others  [][]*pool      // for each model that names it, that one's other pools
	latency route.Latency  // of first contents
	shed    time.Time      // when it last had no room for a request that would have waited
	scanned uint64         // the epoch in which the queue was last searched for requests to move
	version uint64         // of its places: each table may bring others
	fit     fit
	usual   usual         // what serves most of its requests
	alike   group         // of what was asked for last
	meter   *demand.Meter // of what it is asked for; of guests, nil
	grade   *grade        // its ladder; nil if that is off

	sites   []*site       // its regions, where a model that it serves has a locality
	returns time.Duration // the longest that one of these takes to come back

	// Of the guests of one of its regions, whose places are those of host.
	host   *pool // nil for a pool itself
	region string
	within sched.Set // the places in the region
	share  int64     // of the region's capacity that they may occupy, in thousandths
}

// running is how many attempts of requests run on the pool's backends.
func (p *pool) running() (n int64) {
	if p.host != nil {
		return p.queue.Used()[sched.Slots]
	}
	for _, pl := range p.places {
		n += pl.Running()
	}
	for _, c := range p.copies {
		if slices.Contains(p.places, c.place) {
			n--
		}
	}
	return n
}

// open reports whether some backend could take some request now.
func (p *pool) open(now time.Time) bool {
	for _, pl := range p.places {
		if pl.Open(now) {
			return true
		}
	}
	return false
}

// fit is which of a pool's backends may serve the request that was asked for last at all,
// health and load aside. Every step of an arrival asks for it, and it stays the same until
// the table changes or a backend has failed the request, or may again be in one of its
// failed domains.
type fit struct {
	number   uint64 // of the request
	version  uint64
	tried    int
	maxSpend sluice.Nano
	region   string
	avoid    bool
	roam     bool
	maxRisk  sluice.Risk
	set      sched.Set
}

// eligible is the backends that may serve r at all.
func (p *pool) eligible(r *request) *sched.Set {
	f, maxRisk := &p.fit, r.maxRisk(p)
	if f.number == r.number && f.version == p.version && f.tried == len(r.tried) && f.avoid == r.avoid && f.maxSpend == r.maxSpend && f.maxRisk == maxRisk && f.roam == r.roam && (r.roam || f.region == r.region) {
		return &f.set
	}
	*f = fit{number: r.number, version: p.version, tried: len(r.tried), avoid: r.avoid, maxSpend: r.maxSpend, maxRisk: maxRisk, region: r.region, roam: r.roam}
	if r.plain() && p.usual.serving(p, r) {
		f.set = p.usual.set
		return &f.set
	}
	ask := r.ask(p)
	for i, pl := range p.places {
		if r.eligible(pl.Backend, &ask) == route.Chosen {
			f.set.Add(i)
		}
	}
	return &f.set
}

// judge fills left with a word for every place: may it serve r now?
func (p *pool) judge(now time.Time, r *request) []route.Left {
	need, queued := r.needOfPlace(), p == r.pool && r.call.Shadow == nil
	if len(p.left) != len(p.places) {
		p.left = make([]route.Left, len(p.places))
	}
	for i, pl := range p.places {
		var left route.Left
		if queued && r.item.Backends.Has(i) { // it may, as was found when it was weighed
			left = pl.Usable(now, &need)
		} else {
			left = p.judgeAt(now, r, i, &need)
		}
		if r.attempt > 0 && left == route.Chosen && p.retries.AllowsOn(now, pl) != route.Allowed {
			left = route.LeftRetries
		}
		p.left[i] = left
	}
	return p.left
}

// judgeAt is the word for the i-th place, retries aside.
func (p *pool) judgeAt(now time.Time, r *request, i int, need *route.Need) route.Left {
	pl := p.places[i]
	switch {
	case !p.eligible(r).Has(i):
		ask := r.ask(p)
		return r.eligible(pl.Backend, &ask)
	case r.call.Shadow == nil && r.dearer(pl.Backend): // a copy holds what it needs only once it has found a place
		return route.LeftDearer
	case r.call.Shadow != nil && p.asked() && pl.Health.Open(): // a copy that hangs as its probe would keep requests from it
		return route.LeftUnhealthy
	}
	return pl.Usable(now, need)
}

// serves tells how far r could be served by the pool: by no backend at all, by
// one whose health is in the way, by one whose failure domain has failed, or by one
// that is at most full.
func (p *pool) serves(now time.Time, r *request) service {
	best, may := never, p.eligible(r)
	for i, pl := range p.places {
		if !may.Has(i) {
			continue
		}
		switch {
		case pl.FitWith(now, r.only()) != route.Chosen:
			best = max(best, unhealthy)
		case pl.Avoided() && !(p.queue.Len() == 0 && pl.Scouts(now)):
			best = max(best, avoided)
		default:
			best = serves
		}
		if best == serves {
			break
		}
	}
	switch s := p.site(r.region); {
	case best < avoided:
	case p.host != nil && !p.holds(now, r), s != nil && !r.roam && s.Lost() && p.queue.Len() > 0: // its probe waits
		return unhealthy
	}
	return best
}

type service uint8

const (
	never service = iota
	unhealthy
	avoided // one whose failure domain has failed
	serves
)

// wait predicts how long r would wait in the pool; 0 only if it would not.
func (p *pool) wait(now time.Time, r *request) time.Duration {
	class, t := r.call.Class, &r.item
	if !p.queue.Competes(class) && !p.defers(r) && p.atOnce(now, r) {
		return 0
	}
	if p.host != nil {
		p.queue.LearnFrom(p.host.queue)
	}
	wait := p.queue.Wait(class, t.Flow.Tenant, t.Weight, p.running())
	if p.host != nil {
		if c, waits := p.host.queue.Foremost(&p.within); waits && c <= class { // they go first
			wait = max(wait, p.host.queue.Wait(class, t.Flow.Tenant, t.Weight, p.host.running()))
		}
	}
	if p.rated() {
		wait = max(wait, p.paces(now, r, p.position(r, wait)))
	}
	if p.defers(r) {
		wait = max(wait, p.deferral(now))
	}
	return max(time.Millisecond, wait) // who may not wait must go elsewhere
}

// atOnce reports whether some place could take r now.
func (p *pool) atOnce(now time.Time, r *request) bool {
	need, may := r.needOfPlace(), p.eligible(r)
	if p.host != nil {
		if c, waits := p.host.queue.Foremost(&p.within); waits && c <= r.call.Class {
			return false
		}
		m := room{p: p, now: now}
		if all, free := m.headroom(); !fitsIn(sched.Amounts{1, int64(need.KV), int64(need.Prefill)}, all, free) {
			return false
		}
	}
	for i, pl := range p.places {
		if pl == p.keeps() || !may.Has(i) {
			continue
		}
		if left := pl.Usable(now, &need); left == route.Chosen || left == route.LeftFull && p.base().yields(pl) {
			return true
		}
	}
	return false
}

// rated reports whether some provider's rate is known.
func (p *pool) rated() bool {
	for _, pl := range p.places {
		if pl.Rated() {
			return true
		}
	}
	return false
}

// paces predicts when the providers' rates will have let so many requests ahead
// through that are like r, and r; 0 where they do not stand in the way.
func (p *pool) paces(now time.Time, r *request, ahead int) (wait time.Duration) {
	w, may := r.work(r.bound), p.eligible(r)
	need := [route.NumRates]int64{
		route.RateRequests: 1, route.RateInput: int64(w.Input), route.RateOutput: int64(w.OutputHold), route.RateTokens: int64(w.Input + w.OutputHold),
	}
	for rate, n := range need {
		left, perMinute, bounded := int64(0), int64(0), true
		for i, pl := range p.places {
			if !may.Has(i) || pl.Share(now) == 0 {
				continue
			}
			some, all, known := pl.RateLeft(now, route.Rate(rate))
			bounded = bounded && known
			left, perMinute = left+some, perMinute+all
		}
		if lacks := n*int64(ahead+1) - left; bounded && perMinute > 0 && lacks > 0 {
			hi, lo := bits.Mul64(uint64(lacks), uint64(time.Minute))
			if hi >= uint64(perMinute) {
				return math.MaxInt64
			}
			most, _ := bits.Div64(hi, lo, uint64(perMinute))
			wait = max(wait, time.Duration(min(most, math.MaxInt64)))
		}
	}
	return wait
}

// position is about how many requests are served before r, whose predicted wait is
// known.
func (p *pool) position(r *request, wait time.Duration) int {
	return p.queue.Position(r.call.Class, r.item.Flow.Tenant, wait, p.running())
}

// set is the backends that may serve r at what it holds, health and load aside; a
// further attempt, those that may be given one now.
func (p *pool) set(r *request) sched.Set {
	may := p.eligible(r)
	s := *may
	if g := p.group(may); r.attempt == 0 && len(g.rows) == 1 && r.pays(g.rows[0]) {
		return s
	}
	for i, pl := range p.places {
		if may.Has(i) && (r.dearer(pl.Backend) || r.attempt > 0 && p.retries.AllowsOn(r.item.Since, pl) != route.Allowed) {
			s.Drop(i)
		}
	}
	return s
}

// offers appends what the pool's backends would bill r at, each row once.
func (p *pool) offers(r *request, to []*price.Row) []*price.Row {
	for _, row := range p.group(p.eligible(r)).rows {
		if !slices.Contains(to, row) {
			to = append(to, row)
		}
	}
	return to
}
