package acceptance

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice"
	"sluice/internal/egress/egresstest"
	"sluice/internal/fakellm"
	"sluice/internal/fleet"
	"sluice/internal/replay"
	"sluice/test/bubble"
)

// step is the time that the provider of these runs takes for a token, however
// much it has to do. It is long, so that what a client misses that leaves is
// small against what it has seen, as it is in life.
const step = 100 * time.Millisecond

func steady() []fakellm.Model {
	return []fakellm.Model{{
		Name: "sim-small", Ratio: 1130, Context: 131_072,
		Engine: &fleet.Profile{PrefillRate: 1_000_000, StepBase: step, Slots: 4096},
	}}
}

// warm is how many calls the gateway learns from before clients begin to leave.
const warm = 300

// TestAbortsBeforeAnEngine is cD4 before an engine that tells usage in every
// event, so that a cut stream is exact up to its cut.
func TestAbortsBeforeAnEngine(t *testing.T) {
	aborts(t, "vllm", replay.OpenAI, 1000)
}

// TestAbortsBeforeAProvider is cD4 before a provider that tells usage at the end
// alone: of a stream that was cut all is estimated.
func TestAbortsBeforeAProvider(t *testing.T) {
	aborts(t, "", replay.OpenAI, 2000)
}

// TestAbortsInTheOtherDialect is cD4 where the input is told at the start, and
// the output at the end.
func TestAbortsInTheOtherDialect(t *testing.T) {
	aborts(t, "", replay.Anthropic, 1000)
}

// aborts replays, in virtual time, calls of which a quarter is left by its client, half of all in
// one piece, and wants the ledger to be within 2 % of the provider's own count:
// over all, and over the estimates by themselves once there was something to
// learn from.
func aborts(t *testing.T, engine string, d replay.Dialect, calls int) {
	t.Helper()
	if race { // its run-time gives up on so long a bubble; scripts/test runs this without it
		t.Skip("a long bubble under the race detector")
	}
	bubble.Test(t, func(t *testing.T) { abortsInBubble(t, engine, d, calls) })
}

func abortsInBubble(t *testing.T, engine string, d replay.Dialect, calls int) {
	var network egresstest.Net
	rows := trace(t, "vtc_arena_27clients.csv", "vtc-arena", replay.ReadOptions{Seed: 1})
	rows = repeated(rows, warm+calls*scale(t))
	leave(rows)
	g := start(t, setup{clients: clientsOf(rows), fleet: fakellm.Options{Models: steady(), Seed: 3}, engine: engine, stops: true, net: &network})
	w, began := newWire(t, network.Dial), time.Now()
	o := replay.Options{Speed: 27, MaxInput: 300, MaxOutput: 40, Dialect: d, Seed: 4}
	o.Rows = rows[:warm]
	g.run(w, o)
	learned := time.Now()
	o.Rows = since(rows[warm:])
	r := g.run(w, o)
	if share := float64(r.Cancelled) / float64(r.Sent); share < 0.15 {
		t.Errorf("%.0f %% of the clients left, want about a quarter", 100*share)
	}
	b := g.close(w)
	b.log(t)
	if !b.Exact {
		t.Errorf("reported entries differ: %+v", b.Sources["reported"])
	}
	all := b.sum(began, sluice.UsageReported, sluice.UsageCounted, sluice.UsageEstimated)
	estimates := b.sum(learned, sluice.UsageCounted, sluice.UsageEstimated)
	all.within(t, "all", 2)
	estimates.within(t, "estimates", 2)
}

// leave lets every fourth client leave, but for the warm ones: a stream after 8 to
// 20 events with content, an answer in one piece after 1.6 to 3.6 s, if it has not
// come by then.
func leave(rows []replay.Row) {
	draw := rand.New(rand.NewPCG(5, 6))
	for i := range rows {
		row := &rows[i]
		row.Whole = i%2 == 1
		switch {
		case i < warm || draw.IntN(4) > 0:
		case row.Whole:
			row.CancelAfter = 80 + draw.IntN(100) // in 20 ms
		default:
			row.CancelAfter = 8 + draw.IntN(13)
		}
	}
}
