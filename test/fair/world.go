package fair

import (
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// Machine is what serves a backend: fleet.Replica or fleet.Hosted.
type Machine interface {
	Submit(now time.Time, j fleet.Job) (fleet.JobID, error)
	Expect(now time.Time, id fleet.JobID, n sluice.Tokens)
	Advance(now time.Time) []fleet.Progress
	NextWake() (time.Time, bool)
	Cancel(now time.Time, id fleet.JobID) (sluice.Tokens, bool)
}

// Policy is how a run is scheduled.
type Policy uint8

// The policies.
const (
	Fair  Policy = iota // the engine as it is
	FIFO                // the control: the engine's own queue in order of arrival
	Naive               // a limit of requests per minute for each client, then FIFO
)

func (p Policy) String() string { return [...]string{"fair", "fifo", "naive"}[p] }

// World is what a run is made from. The same World gives the same Log.
type World struct {
	Pools   []*route.Pool // the first serves clients that name none
	Machine func(sluice.BackendID) Machine
	Clients []Client
	Policy  Policy
	Predict Predictor // nil: Exact
	Seed    uint64
	Length  time.Duration // arrivals end
	Drain   bool          // what waits then is served; else the run ends there
	Faults  []Fault
	Swaps   []Swap
	Gauges  bool // the engine's own figures after every event
	Options engine.Options
}

// Fault is a backend that dies and comes back.
type Fault struct {
	Backend  sluice.BackendID
	From, To time.Duration
}

// Swap puts other pools into force.
type Swap struct {
	At    time.Duration
	Pools []*route.Pool
}

// costOf is what a pool's tokens count for. All pools of a run have the same.
func costOf(p *route.Pool) Cost {
	c := p.Cost.WithDefaults()
	return Cost{c.Input, c.Output}
}

// epoch is when a run starts. Nothing depends on it.
var epoch = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// step is how many tokens of output lie between two reports to the engine.
const step sluice.Tokens = 64
