package engine

import (
	"math"
	"math/bits"
	"time"

	"sluice"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// Options tune an Engine. Zero fields take the defaults.
type Options struct {
	// HoldTTL is how long a running request keeps its hold without activity; where
	// its backend may be silent for longer, that and a minute.
	HoldTTL time.Duration
	// MaxWait is the longest wait in a queue where neither the request, the
	// policy nor the pool says anything.
	MaxWait time.Duration
	// MaxExpired bounds how many expired holds are remembered for a late
	// settlement.
	MaxExpired int
}

// Defaults of Options.
const (
	DefaultHoldTTL    = 15 * time.Minute
	DefaultMaxWait    = 30 * time.Second
	DefaultMaxExpired = 16384
)

// MinOutput is the smallest output of one answer that is worth a request: one
// whose bound has to be clamped below it is refused.
const MinOutput sluice.Tokens = 16

// Config is what an Engine is made from.
type Config struct {
	Table   *route.Table
	Options Options
}

// Engine is the state machine. It is not safe for concurrent use: admit guards
// it with one mutex.
type Engine struct {
	opts  Options
	table *route.Table
	book  *quota.Book

	retries route.Retries

	now  time.Time // the latest moment seen
	base time.Time // of moments in heaps

	pools  []*pool // by id
	byID   map[sluice.PoolID]*pool
	places map[sluice.BackendID]*route.Place // retired ones too, while they run something

	requests map[sluice.RequestID]*request // open and expired
	running  int
	expiry   sched.Heap[*request, byCheck] // running and idle
	expired  sched.Heap[*request, byCheck]
	life     time.Duration // mean time from arrival to settlement; 0: unknown

	// epoch counts what may give a waiting request another pool: changes of
	// health and of the table. cools is when the next cool-down ends.
	epoch uint64
	cools time.Time

	spare   []*request
	answers answers      // what the next Advance returns
	told    answers      // what the last one returned
	rows    []*price.Row // scratch
	claims  [quota.MaxClaims]quota.Claim
}

// New makes an engine for a table. The table must be one that Prepare accepts;
// New panics otherwise, since a table is validated before it gets here.
func New(c Config) *Engine {
	o := c.Options
	if o.HoldTTL <= 0 {
		o.HoldTTL = DefaultHoldTTL
	}
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultMaxWait
	}
	if o.MaxExpired <= 0 {
		o.MaxExpired = DefaultMaxExpired
	}
	e := &Engine{
		opts:     o,
		book:     quota.NewBook(),
		byID:     make(map[sluice.PoolID]*pool),
		places:   make(map[sluice.BackendID]*route.Place),
		requests: make(map[sluice.RequestID]*request),
	}
	p, err := e.Prepare(c.Table)
	if err != nil {
		panic("engine: " + err.Error())
	}
	e.Swap(time.Time{}, p)
	return e
}

// byCheck is the order in which expiry is looked at.
type byCheck struct{}

func (byCheck) Key(r *request) (int64, uint64) { return r.due, 0 }
func (byCheck) Moved(r *request, i int)        { r.index = i }

// tick takes the time. An older moment than the latest is taken as the latest:
// nothing refills, expires or comes back by a clock that steps back.
func (e *Engine) tick(now time.Time) time.Time {
	if now.Before(e.now) {
		return e.now
	}
	e.now = now
	return now
}

// Open is how many requests wait or run.
func (e *Engine) Open() int { return len(e.requests) - e.expired.Len() }

// pool is a route.Pool with its queue and places. It outlives tables by name.
type pool struct {
	id      sluice.PoolID
	spec    *route.Pool
	weights route.Cost
	queue   *sched.Queue
	places  []*route.Place
	leaving []*route.Place // taken out of the table while they ran something; for the view
	left    []route.Left   // scratch: one word per place
	room    room           // what the queue is shown while it is served
	kept    *route.Place   // what becomes free there is kept
	keptFor *sched.Item    // for this one, as long as the queue says that it gathers
	retries *route.Retries // the engine's
	shed    time.Time      // when it last had no room for a request that would have waited
	scanned uint64         // the epoch in which the queue was last searched for requests to move
}

// running is how many attempts run on the pool's backends.
func (p *pool) running() (n int64) {
	for _, pl := range p.places {
		n += pl.Running()
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

// judge fills left with a word for every place: may it serve r now?
func (p *pool) judge(now time.Time, r *request) []route.Left {
	ask, need := r.ask(), r.needOfPlace()
	p.left = p.left[:0]
	for _, pl := range p.places {
		left := r.eligible(pl.Backend, &ask)
		if left == route.Chosen && r.dearer(pl.Backend) {
			left = route.LeftDearer
		}
		if left == route.Chosen {
			left = pl.Usable(now, need)
		}
		if left == route.Chosen && r.attempt > 0 && p.retries.AllowsOn(now, pl) != route.Allowed {
			left = route.LeftRetries
		}
		p.left = append(p.left, left)
	}
	return p.left
}

// serves tells how far r could be served by the pool: by no backend at all, by
// one whose health is in the way, or by one that is at most full.
func (p *pool) serves(now time.Time, r *request) service {
	ask, best := r.ask(), never
	for _, pl := range p.places {
		if r.eligible(pl.Backend, &ask) != route.Chosen {
			continue
		}
		if pl.Health.Usable(now) {
			return serves
		}
		best = unhealthy
	}
	return best
}

type service uint8

const (
	never service = iota
	unhealthy
	serves
)

// wait predicts how long r would wait in the pool; 0 only if it would not.
func (p *pool) wait(now time.Time, r *request) time.Duration {
	class, t := r.call.Class, &r.item
	if !p.queue.Competes(class) {
		need := r.needOfPlace()
		ask := r.ask()
		for _, pl := range p.places {
			if pl != p.keeps() && r.eligible(pl.Backend, &ask) == route.Chosen && pl.Usable(now, need) == route.Chosen {
				return 0
			}
		}
	}
	wait := p.queue.Wait(class, t.Flow.Tenant, t.Weight, p.running())
	wait = max(wait, p.rated(now, r, p.position(r, wait)))
	return max(time.Millisecond, wait) // who may not wait must go elsewhere
}

// rated predicts when the providers' rates will have let so many requests ahead
// through that are like r, and r; 0 where they do not stand in the way.
func (p *pool) rated(now time.Time, r *request, ahead int) (wait time.Duration) {
	w, ask := r.work(r.bound), r.ask()
	need := [route.NumRates]int64{
		route.RateRequests: 1, route.RateInput: int64(w.Input), route.RateOutput: int64(w.OutputHold), route.RateTokens: int64(w.Input + w.OutputHold),
	}
	for rate, n := range need {
		left, perMinute, bounded := int64(0), int64(0), true
		for _, pl := range p.places {
			if r.eligible(pl.Backend, &ask) != route.Chosen || pl.Share(now) == 0 {
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

// set is the backends that may serve r, health and load aside; a further attempt,
// those that may be given one now.
func (p *pool) set(r *request) (s sched.Set) {
	ask := r.ask()
	for i, pl := range p.places {
		if r.eligible(pl.Backend, &ask) == route.Chosen && !r.dearer(pl.Backend) &&
			(r.attempt == 0 || p.retries.AllowsOn(r.since, pl) == route.Allowed) {
			s.Add(i)
		}
	}
	return s
}

// offers appends what the pool's backends would bill r at, each row once.
func (p *pool) offers(r *request, to []*price.Row) []*price.Row {
	ask := r.ask()
next:
	for _, pl := range p.places {
		if r.eligible(pl.Backend, &ask) != route.Chosen {
			continue
		}
		row := pl.Backend.Row()
		for _, have := range to {
			if have == row {
				continue next
			}
		}
		to = append(to, row)
	}
	return to
}
