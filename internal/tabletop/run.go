package tabletop

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// Options is how a scenario is run.
type Options struct {
	Policy   string         // a name of Scenario.Policies; "sluice" if empty
	Seed     uint64         // 0 takes the scenario's
	Acts     []string       // names of Scenario.Acts
	Progress func(Progress) // called now and then; may be nil
	Watch    int64          // a request to follow, by its number from 1; 0 none, negative all
	Tell     func(Step)     // what happened to the watched request; may be nil
}

// Progress is how far a run is.
type Progress struct {
	Now, Of  time.Duration // virtual
	Requests int64
}

// Step is one thing that happened to a watched request.
type Step struct {
	At      time.Duration
	Request int64 // its number
	Text    string
}

// Run plays the scenario. It ends early when ctx does, with a Result that is
// Partial and whole up to there. An error says what of the scenario or the options
// is wrong.
func (s *Scenario) Run(ctx context.Context, o Options) (*Result, error) {
	expect := make([]Expectation, len(s.Expect))
	for i, e := range s.Expect {
		expect[i] = e
		if e.parsed {
			continue
		}
		p, err := ParseExpectation(e.Text, s.Names())
		if err != nil {
			return nil, fmt.Errorf("expectation %q: %w", e.Text, err)
		}
		p.Line = e.Line
		expect[i] = p
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p, err := newPlay(ctx, s, &o)
	if err != nil {
		return nil, err
	}
	p.loop()
	r := &Result{
		Scenario: s.Name, About: s.About, Policy: cmp.Or(o.Policy, "sluice"), Acts: o.Acts, Seed: p.seed,
		Warmup: s.Warmup, Length: s.Length, Ended: p.now, Partial: p.cut,
	}
	p.m.finish(p)
	p.close()
	p.m.result(p, r)
	r.Ladders = p.ladders
	s.judge(r, expect, p.m.recovery)
	return r, nil
}

// laddered notes what a pool's ladder did.
func (p *play) laddered(v *engine.PoolView) {
	if v.Ladder == nil {
		return
	}
	use := LadderUse{Pool: v.ID, Done: v.Ladder.Counts.Effects(), ClampedTokens: v.Ladder.Counts.ClampedTokens}
	for _, n := range use.Done {
		if n > 0 {
			p.ladders = append(p.ladders, use)
			return
		}
	}
}

// close ends what is still open, as a gateway that shuts down does, and looks at
// whether anything is left.
func (p *play) close() {
	for q := p.roster.head; q != nil; q = q.next {
		if q.hedge != nil {
			p.lose(q.hedge, sluice.ShuttingDown)
		}
		c := q.call
		switch {
		case c == nil:
		case q.run.on != nil:
			p.abandon(q)
			p.settled(q, p.gateway.End(p.time(), c, q.truth.input, q.run.cached, sluice.Cancelled, sluice.ShuttingDown, false))
		default:
			p.m.waited(q)
			p.settled(q, p.gateway.Leave(p.time(), c, sluice.ShuttingDown))
		}
	}
	v := p.gateway.Look(p.time(), engine.Zoom{}, math.MaxInt32)
	left := int64(v.Open)
	for i := range v.Pools {
		p.laddered(&v.Pools[i])
		for j := range v.Pools[i].Backends {
			b := &v.Pools[i].Backends[j]
			if b.Running != 0 || b.KVTokens != 0 || b.Prefill != 0 {
				left++
			}
		}
	}
	for i := range v.Top {
		left += int64(v.Top[i].Open)
	}
	p.m.open = left
}
