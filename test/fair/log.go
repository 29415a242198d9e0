package fair

import (
	"fmt"
	"time"

	"sluice"
	"sluice/internal/route"
)

// Kind says what an Event tells.
type Kind uint8

// The kinds of event.
const (
	Arrive   Kind = iota // a client asks
	Refuse               // refused at arrival: nothing is held
	Enqueue              // it waits, for a first or a further attempt
	Dispatch             // it has a place. Cost: what was estimated
	First                // its first token
	Correct              // more has been seen than was estimated. Cost: the difference
	End                  // it has ended and left its place. Cost: the difference to what it took
	Fail                 // an attempt has failed and left its place. Cost: as End
	Shed                 // its wait ended without a place
	Leave                // its client left while it waited
	Capacity             // a table came into force
	Down                 // a backend died
	Up                   // and came back
	Gauge                // what the engine says of itself
)

func (k Kind) String() string {
	return [...]string{"arrive", "refuse", "enqueue", "dispatch", "first", "correct", "end", "fail", "shed", "leave", "capacity", "down", "up", "gauge"}[k]
}

// Event is one line of the log.
type Event struct {
	At      time.Duration // since the start of the run
	Kind    Kind
	Req     int // index in Log.Requests; none of the last four kinds has one
	Backend sluice.BackendID
	Cost    int64         // work, in units of the pool's cost
	Seen    sluice.Tokens // output generated so far: First, Correct, End, Fail
	Reason  sluice.Reason // Refuse, Shed, Fail, End
	Wait    time.Duration // Enqueue: predicted; Dispatch: what the engine says it waited
	Tables  int           // Capacity: index in Log.Tables
	State   *State        // Gauge
}

// Request is what is known of a request when it arrives, and its true length.
type Request struct {
	Client  int // index in Log.Clients
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Class   sluice.Class
	Pool    sluice.PoolID
	Work    sluice.Work
	True    Size
	At      time.Duration
}

// State is the engine's own figures after an event, to be held against the log.
type State struct {
	Open, Running int
	Waiting       map[sluice.PoolID]int
	Gathers       map[sluice.PoolID]Gather
	Backends      map[sluice.BackendID]route.Capacity // what is in use
}

// Gather is the request that what becomes free is kept for.
type Gather struct {
	Req     int
	Backend sluice.BackendID // that is kept; empty: the pool's part is

	// Overtaken is, for each class, a request that does not fit, and which those of the
	// class that are ahead of it may not pass meanwhile; -1 if there is none.
	Overtaken [sluice.NumClasses]int
}

// Log is one run: everything that the oracles may know.
type Log struct {
	Cost     Cost
	Clients  []Client
	Requests []Request
	Tables   []*route.Table
	Events   []Event
	Length   time.Duration // arrivals end
	Ended    time.Duration // everything has
}

// Cost is the work of a request: In × uncached input + Out × output.
type Cost struct{ In, Out int64 }

// Of is the work of so many tokens.
func (c Cost) Of(in, out sluice.Tokens) int64 { return c.In*int64(in) + c.Out*int64(out) }

// Estimate is what a request is charged when it is dispatched.
func (c Cost) Estimate(w sluice.Work) int64 {
	return c.Of(max(0, w.Input-w.CachedInput), w.Output)
}

// Violation is an oracle's verdict: what the log shows that must not be.
type Violation struct {
	Oracle string
	At     time.Duration
	Text   string
}

func (v *Violation) Error() string { return fmt.Sprintf("%s at %v: %s", v.Oracle, v.At, v.Text) }

func violation(oracle string, at time.Duration, format string, args ...any) error {
	return &Violation{oracle, at, fmt.Sprintf(format, args...)}
}
