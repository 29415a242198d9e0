package dryrun

import (
	"encoding/json"
	"slices"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/route"
)

// Side is one of the two versions.
type Side struct {
	Table *route.Table
	// Principal is the caller of a key under it; an error is that the key would not be
	// admitted.
	Principal func(sluice.KeyID) (sluice.Principal, error)
}

// Asked is one request of the ledger: its final entry with its Detail, and what it took
// over all its attempts.
type Asked struct {
	Entry ledger.Entry
	Took  sluice.Usage
}

// facts is what of an entry's Detail the routing depended on.
type facts struct {
	Estimate *struct {
		Input       sluice.Tokens `json:"input"`
		InputBound  sluice.Tokens `json:"input_bound"`
		Output      sluice.Tokens `json:"output"`
		OutputHold  sluice.Tokens `json:"output_hold"`
		OutputBound sluice.Tokens `json:"output_bound"`
	} `json:"estimate"`
	Needs     string              `json:"needs"`
	Into      string              `json:"translated"` // the dialect that it was put into
	Risk      string              `json:"risk"`
	Session   string              `json:"session"`
	KeptAt    *route.Pin          `json:"kept_at"` // what it refers to
	Regions   []string            `json:"regions"`
	Providers []sluice.ProviderID `json:"providers"`
}

// fate is what becomes of a request under one table.
type fate struct {
	refused *sluice.Error
	pool    sluice.PoolID
	backend sluice.BackendID
	row     *price.Row
	others  []engine.Candidate
}

// takes reports whether a backend could have served the request: chosen or not.
func (f *fate) takes(b sluice.BackendID) bool {
	return slices.ContainsFunc(f.others, func(c engine.Candidate) bool {
		return c.Backend == b && (c.Left == string(route.Chosen) || c.Left == string(route.LeftOther))
	})
}

// bench is an engine under one table, to which one request comes at a time.
type bench struct {
	side Side
	eng  *engine.Engine
	now  time.Time
}

// apart is the time between two requests: all that was held is back by then.
const apart = time.Hour

func newBench(s Side) *bench {
	t := *s.Table // without limits: others used them too
	t.Fleet = nil
	t.Models = make(map[sluice.ModelID]*route.Model, len(s.Table.Models))
	for id, m := range s.Table.Models {
		bare := *m
		bare.Limits = nil
		t.Models[id] = &bare
	}
	return &bench{side: s, eng: engine.New(engine.Config{Table: &t}), now: time.Unix(0, 0)}
}

// try sends a request.
func (b *bench) try(c engine.Call, principal sluice.Principal) (f fate) {
	b.now = b.now.Add(apart)
	c.Principal = bare(principal)
	if v := b.eng.Arrive(b.now, c); v.Err != nil {
		return fate{refused: v.Err}
	}
	for _, g := range b.eng.Advance(b.now) {
		switch {
		case g.ID != c.ID:
		case g.Err != nil:
			f = fate{refused: g.Err}
		default:
			f = fate{pool: g.Pool, backend: g.Backend.ID, row: g.Backend.Row(), others: slices.Clone(g.Candidates)}
		}
	}
	b.eng.Cancel(b.now, c.ID, sluice.ClientGone)
	b.eng.Advance(b.now)
	return f
}

// bare is a caller without limits.
func bare(p sluice.Principal) sluice.Principal {
	if p.Policy != nil {
		policy := *p.Policy
		policy.Mode = sluice.Off
		p.Policy = &policy
	}
	return p
}

// callOf is a request as the engine was asked, without its caller; false if the ledger
// does not have the facts.
func callOf(e *ledger.Entry) (c engine.Call, f facts, ok bool) {
	if json.Unmarshal(e.Detail, &f) != nil || f.Estimate == nil || e.Model == "" {
		return c, f, false
	}
	c = engine.Call{
		ID: e.Request, Model: e.Model, Dialect: e.Dialect, Class: e.Class, Task: e.Task, Streaming: e.Stream, MaxWait: -1, Pin: f.KeptAt,
		Free: e.Operation == "count_tokens",
		Work: sluice.Work{
			Input: f.Estimate.Input, InputBound: f.Estimate.InputBound, Output: f.Estimate.Output, OutputHold: f.Estimate.OutputHold, OutputBound: f.Estimate.OutputBound,
		},
	}
	for _, n := range splitNeeds(f.Needs) {
		need, known := route.NeedNamed(n)
		if !known {
			return c, f, false
		}
		c.Needs |= need
	}
	if e.Stream {
		c.Needs |= route.NeedStream
	}
	_, surface := spoken(e.Operation)
	c.Needs |= surface
	if f.Into != "" { // into others it may go or not: nobody knows
		into, surface := spoken(f.Into)
		c.Others = []route.Translation{{Dialect: into, Needs: c.Needs&^(route.NeedCache|route.Surfaces) | surface}}
	}
	if c.Session, ok = route.ParseSession(f.Session); !ok {
		return c, f, false
	}
	if f.Risk != "" && c.Risk.UnmarshalText([]byte(f.Risk)) != nil {
		return c, f, false
	}
	return c, f, true
}

// caller is who made a request, under one side. A key that is no longer there is taken
// as it was, as far as the ledger tells.
func (s *Side) caller(e *ledger.Entry, f *facts) (sluice.Principal, error) {
	p, err := s.Principal(e.Key)
	if err != nil {
		p = sluice.Principal{Tenant: e.Tenant, Project: e.Project, Key: e.Key, Policy: &sluice.Policy{Weight: 1, Regions: f.Regions, Providers: f.Providers}}
	}
	p.User, p.Run = e.User, e.Run
	return p, err
}

// Run puts requests, oldest first, through both sides.
func Run(before, after Side, asked []Asked) Report {
	a, b := newBench(before), newBench(after)
	r := newReport()
	for i := range asked {
		e := &asked[i].Entry
		call, f, ok := callOf(e)
		if !ok {
			r.Unknown++
			continue
		}
		was, errA := before.caller(e, &f)
		is, errB := after.caller(e, &f)
		x, y := a.try(call, was), b.try(call, is)
		if errA == nil && errB != nil { // it would not be admitted any more
			y = fate{refused: sluice.AsError(errB)}
		}
		r.add(e, asked[i].Took, &x, &y)
	}
	r.close()
	return *r.Report
}

// spoken is the dialect of what a request was made by or put into, and what of it a
// backend must have: a dialect's word, or an operation's.
func spoken(word string) (dialect string, surface route.Needs) {
	switch word {
	case "chat", "openai":
		return "openai", route.NeedChat
	case "responses":
		return "openai", route.NeedResponses
	}
	return word, 0
}
