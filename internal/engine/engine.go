package engine

import (
	"hash/maphash"
	"time"

	"sluice"
	"sluice/internal/byname"
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
	opts    Options
	table   *route.Table
	edition uint32 // of the table: it changes when that does
	book    *quota.Book

	callers callers
	retries route.Retries

	now  time.Time // the latest moment seen
	ns   int64     // now, in nanoseconds from base
	base time.Time // the first moment seen, from which others are counted

	pools  []*pool // by id
	queues []*pool // of them, and of the guests of their regions
	byID   map[sluice.PoolID]*pool
	last   found                             // what was asked for by name last: most often it is again
	places map[sluice.BackendID]*route.Place // retired ones too, while they run something

	requests byname.Index[sluice.RequestID, request, ids] // open and expired
	running  int
	races    int                 // of two attempts at one request
	expiry   sched.Heap[request] // running and idle, by check
	expired  sched.Heap[request]
	life     time.Duration // mean time from arrival to settlement; 0: unknown

	// epoch counts what may give a waiting request another pool: changes of
	// health and of the table. cools is when the next cool-down ends.
	epoch uint64
	cools time.Time

	domains  []*route.Domain   // by name
	keys     route.Credentials // of all places
	keyViews []route.KeyView   // scratch
	states   states
	changes  []HealthChange

	ladders  bool         // some pool has one
	looked   int64        // when they were looked at last, in nanoseconds from base
	restless bool         // one of them may move though nothing happens
	moves    []TierChange // for TierChanges
	declined declined     // the first pool whose ladder did not take the request that arrives, while it has none

	ahead   ahead // of the next grant
	spare   []*request
	numbers uint64         // that were given to requests
	takens  []*route.Taken // spare
	figures []route.Figure // scratch, of pools
	answers *answers       // what the next Advance returns
	told    *answers       // what the last one returned
	rows    []*price.Row   // scratch
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
		opts:   o,
		looked: -int64(ladderEvery), // never
		book:   quota.NewBook(),
		states: make(states),
		byID:   make(map[sluice.PoolID]*pool),
		places: make(map[sluice.BackendID]*route.Place),

		answers: &answers{},
		told:    &answers{},
	}
	p, err := e.Prepare(c.Table)
	if err != nil {
		panic("engine: " + err.Error())
	}
	e.Swap(time.Time{}, p)
	return e
}

// ids is how requests are found.
type ids struct{}

func (ids) Name(r *request) sluice.RequestID { return r.call.ID }

func (ids) Hash(seed maphash.Seed, id sluice.RequestID) uint64 {
	return maphash.String(seed, string(id))
}

// found is what was found by name. Nil is nothing.
type found struct {
	pool  *pool
	model *route.Model
	name  sluice.ModelID // of model, in the table in force
}

// poolOf is the pool of a name, nil if there is none.
func (e *Engine) poolOf(id sluice.PoolID) *pool {
	if p := e.last.pool; p != nil && p.id == id {
		return p
	}
	p := e.byID[id]
	e.last.pool = p
	return p
}

// modelNamed is the model of a name in the table in force, nil if that has none.
func (e *Engine) modelNamed(id sluice.ModelID) *route.Model {
	if m := e.last.model; m != nil && e.last.name == id {
		return m
	}
	m := e.table.Models[id]
	e.last.model, e.last.name = m, id
	return m
}

// newTaken is memory for what an attempt takes. What has just ended is in the
// processor's caches, as the request that has waited is not.
func (e *Engine) newTaken() *route.Taken {
	n := len(e.takens)
	if n == 0 {
		return &route.Taken{}
	}
	t := e.takens[n-1]
	e.takens = e.takens[:n-1]
	return t
}

// tick takes the time. An older moment than the latest is taken as the latest:
// nothing refills, expires or comes back by a clock that steps back.
func (e *Engine) tick(now time.Time) time.Time {
	if now != e.now {
		e.pass(now)
	}
	return e.now
}

// pass is tick of a moment that is not the latest.
func (e *Engine) pass(now time.Time) {
	if now.Before(e.now) {
		return
	}
	if e.base.IsZero() {
		e.base = now
	}
	e.now, e.ns = now, int64(now.Sub(e.base))
}

// Open is how many requests wait or run.
func (e *Engine) Open() int { return e.requests.Len() - e.expired.Len() - e.races }
