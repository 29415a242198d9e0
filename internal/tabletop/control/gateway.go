package control

import (
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/estimate"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/route"
)

// unknownMaxOutput bounds the output of a request where neither client, plan nor
// model says anything, and believedMaxOutput that of one of which only a backend
// could say more: as the exchange has it.
const (
	unknownMaxOutput  sluice.Tokens = 32_768
	believedMaxOutput sluice.Tokens = 1 << 24
)

// Ask is what a gateway sees of one request.
type Ask struct {
	Principal sluice.Principal
	Model     sluice.ModelID
	Dialect   string
	Class     sluice.Class
	Task      string
	Counted   sluice.Tokens // what a counter makes of its input
	Bytes     int64         // of its body
	Bound     sluice.Tokens // the output bound that it names; 0 none
	Prefix    route.Prefix  // of its prompt, where some pool reads it
	MaxWait   time.Duration // 0 does not queue, negative leaves it to plan and pool
}

// Call is one request that the gateway has taken.
type Call struct {
	Ask
	ID      sluice.RequestID
	Number  int64 // of the calls of this gateway, from 1
	Tag     int   // the driver's own
	Work    sluice.Work
	Verdict engine.Verdict // at arrival

	Place    engine.Grant // of the attempt that runs or ran last; its lists are not kept
	Attempts int
	Failure  sluice.Reason // of its last attempt that failed
	Queued   time.Duration // over all waits
	Usage    sluice.Usage  // of attempts that have ended
	Cost     sluice.Nano

	price    *price.Row
	seen     sluice.Tokens // of the attempt that runs
	told     sluice.Tokens // of seen, what the engine knows
	toldAt   time.Time
	began    time.Time
	heldTo   sluice.Tokens
	high     sluice.Nano // what a hard budget is charged
	reported bool        // the backend reports its usage as it goes
	running  bool

	beside *Call // of a hedge, the call that it is beside
	apart  apart
}

// Gateway is an engine and what is learned beside it.
type Gateway struct {
	eng     *engine.Engine
	table   *route.Table
	learned *estimate.Model
	calls   map[sluice.RequestID]*Call
	spare   []*Call
	number  int64

	shapes map[shapeKey]shape // of the table in force
}

// New makes a gateway for a table, which must be valid.
func New(t *route.Table, o engine.Options) *Gateway {
	return &Gateway{
		eng: engine.New(engine.Config{Table: t, Options: o}), table: t, learned: estimate.New(estimate.Options{}),
		calls: map[sluice.RequestID]*Call{}, shapes: map[shapeKey]shape{},
	}
}

// Arrive brings a request to the engine. The Call is nil where it was refused.
func (g *Gateway) Arrive(now time.Time, a Ask, tag int) (*Call, engine.Verdict) {
	g.number++
	c := g.newCall()
	c.Ask, c.Tag, c.Number = a, tag, g.number
	c.ID = sluice.RequestID(strconv.FormatInt(g.number, 10))
	v := g.arrive(now, c)
	if v.Err != nil {
		g.drop(c)
		return nil, v
	}
	c.Verdict = v
	g.calls[c.ID] = c
	return c, v
}

// arrive asks the engine, and where a ladder has a smaller model serve the request, once
// more: for that, and where that does not take it, for its own.
func (g *Gateway) arrive(now time.Time, c *Call) (v engine.Verdict) {
	own, asIs := c.Model, false
	for {
		call, refusal := g.plan(c)
		if v = (engine.Verdict{Err: refusal}); refusal == nil {
			call.Whole = asIs
			v = g.eng.Arrive(now, call)
		}
		switch {
		case v.Smaller != "":
			c.Model, asIs = v.Smaller, true
		case v.Err != nil && c.Model != own:
			c.Model = own
		default:
			return v
		}
	}
}

// Call finds an open call.
func (g *Gateway) Call(id sluice.RequestID) *Call { return g.calls[id] }

// Advance is the engine's. Where a grant ends a wait, End is to follow.
func (g *Gateway) Advance(now time.Time) []engine.Grant { return g.eng.Advance(now) }

// NextWake is the engine's.
func (g *Gateway) NextWake() (time.Time, bool) { return g.eng.NextWake() }

// Observe tells the engine of a backend.
func (g *Gateway) Observe(now time.Time, s engine.Signal) { g.eng.Observe(now, s) }

// Look is a picture of the engine.
func (g *Gateway) Look(now time.Time, z engine.Zoom, limit int) engine.View {
	return g.eng.Dump(now, z, limit)
}

// Pin keeps the ladder of a pool on a tier for a while. It reports whether there is one
// that can be.
func (g *Gateway) Pin(now time.Time, pool sluice.PoolID, tier ladder.Tier, d time.Duration) bool {
	_, err := g.eng.Operate(now, engine.Order{Pool: pool, Pin: &ladder.Pin{Tier: tier, Author: "rehearsal", Reason: "rehearsal", Expires: now.Add(d)}})
	return err == nil
}

// Swap puts a table into force, or changes nothing and says why.
func (g *Gateway) Swap(now time.Time, t *route.Table) error {
	p, err := g.eng.Prepare(t)
	if err != nil {
		return err
	}
	g.eng.Swap(now, p)
	g.table = t
	clear(g.shapes)
	return nil
}

// Open is how many calls have not ended.
func (g *Gateway) Open() int { return len(g.calls) }

func (g *Gateway) newCall() *Call {
	if n := len(g.spare); n > 0 {
		c := g.spare[n-1]
		g.spare = g.spare[:n-1]
		return c
	}
	return &Call{}
}

const spareCalls = 4096

func (g *Gateway) drop(c *Call) {
	delete(g.calls, c.ID)
	*c = Call{}
	if len(g.spare) < spareCalls {
		g.spare = append(g.spare, c)
	}
}
