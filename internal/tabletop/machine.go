package tabletop

import (
	"time"

	"sluice"
	"sluice/internal/fleet"
	"sluice/internal/route"
)

// simulator is what plays a backend: *fleet.Replica or *fleet.Hosted.
type simulator interface {
	Submit(now time.Time, j fleet.Job) (fleet.JobID, error)
	Expect(now time.Time, id fleet.JobID, n sluice.Tokens)
	Advance(now time.Time) []fleet.Progress
	NextWake() (time.Time, bool)
	Cancel(now time.Time, id fleet.JobID) (sluice.Tokens, bool)
	Tokens(id fleet.JobID) (sluice.Tokens, fleet.State)
	Load() fleet.Load
	Totals() fleet.Totals
	Fail(now time.Time)
	Restart(now time.Time)
	SetSpeed(now time.Time, permille int64)
}

// machine is one backend's simulator, with what befalls it.
type machine struct {
	spec   Machine
	sim    simulator
	hosted *fleet.Hosted            // nil of an engine
	jobs   map[fleet.JobID]*request // nil for an answer that nobody waits for any more
	fail   Fail
	speed  int64 // permille of its own

	wake time.Duration // when the simulator next has something to say
	busy bool          // wake is set

	use use
}

func newMachine(spec Machine, seed uint64) *machine {
	m := &machine{spec: spec, jobs: map[fleet.JobID]*request{}, speed: 1000}
	if spec.Replica != nil {
		m.sim = fleet.NewReplica(*spec.Replica)
		return m
	}
	service := *spec.Hosted
	service.Seed ^= mix(seed ^ hashName(string(spec.Backend)))
	m.hosted = fleet.NewHosted(service)
	m.sim = m.hosted
	return m
}

// hints is what a provider's headers tell of its rates, as of now.
func (m *machine) hints(now time.Time) (hints []route.Hint) {
	if m.hosted == nil || m.spec.Hosted.RequestsPerMinute <= 0 && m.spec.Hosted.TokensPerMinute <= 0 {
		return nil
	}
	requests, tokens, full, tokensFull := m.hosted.Remaining(now)
	if n := m.spec.Hosted.RequestsPerMinute; n > 0 {
		hints = append(hints, route.Hint{Rate: route.RateRequests, Limit: n, Remaining: requests, Reset: full.Round(time.Millisecond), At: now})
	}
	if n := m.spec.Hosted.TokensPerMinute; n > 0 {
		hints = append(hints, route.Hint{Rate: route.RateTokens, Limit: int64(n), Remaining: tokens, Reset: tokensFull.Round(time.Millisecond), At: now})
	}
	return hints
}

// touched finds the next wake after something has been done with the simulator.
func (m *machine) touched(now time.Duration) {
	m.use.touched(m, now)
	at, ok := m.sim.NextWake()
	m.wake, m.busy = at.Sub(epoch), ok
}

// sync brings the simulator to a moment and keeps what it has to say for later.
func (m *machine) sync(now time.Time) { m.sim.Expect(now, 0, 0) }
