package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// shape is what is known of a public trace: enough to make rows like its own.
type shape struct {
	rate    float64 // requests per second
	cv      float64 // of the time between two
	inP50   float64
	inP90   float64
	inMost  float64
	outP50  float64
	outP90  float64
	outMost float64
	clients []float64 // weights; empty for a trace without clients
	span    time.Duration
	turns   turns
}

// arena is the number of requests of each of its 27 clients.
var arena = []float64{296, 262, 199, 120, 67, 66, 56, 52, 48, 44, 41, 38, 35, 32, 28, 24, 20, 17, 14, 11, 9, 7, 5, 4, 3, 1, 1}

// shapes by name, from the published traces' measured summaries.
var shapes = map[string]shape{
	"azure-code": {
		rate: 2.57, cv: 13.2, inP50: 1469, inP90: 5186, inMost: 7437, outP50: 13, outP90: 55, outMost: 1899,
		span: 57 * time.Minute,
	},
	"azure-conv": {
		rate: 5.53, cv: 1.09, inP50: 1020, inP90: 2734, inMost: 14_050, outP50: 129, outP90: 424, outMost: 1000,
		span: 58 * time.Minute,
	},
	"mooncake-conversation": {
		rate: 3.4, cv: 1, inP50: 6935, inP90: 27_463, inMost: 126_195, outP50: 350, outP90: 598, outMost: 2000,
		span: 58*time.Minute + 12*time.Second, turns: turns{block: 512, first: true, share: 0.79, live: 600, looks: 6, ends: 0.03, rest: 150},
	},
	"mooncake-synthetic": {
		rate: 3.91, cv: 1, inP50: 11_587, inP90: 33_000, inMost: 126_195, outP50: 90, outP90: 350, outMost: 2000,
		span: 17*time.Minute + 2*time.Second, turns: turns{block: 512, share: 0.77, live: 500, looks: 28, ends: 0.03, grow: 0.05},
	},
	"vtc-arena": {
		rate: 2.5, cv: 1, inP50: 40, inP90: 432, inMost: 1020, outP50: 211, outP90: 513, outMost: 1020,
		span: 10 * time.Minute, clients: arena,
	},
	"servegen-m-large": {
		rate: 50, cv: 1.16, inP50: 741, inP90: 1981, inMost: 16_000, outP50: 60, outP90: 432, outMost: 4000,
		span: 10 * time.Minute, clients: zipf(60, 1.1),
	},
	"servegen-deepseek-r1": {
		rate: 20, cv: 1.04, inP50: 498, inP90: 4669, inMost: 32_000, outP50: 727, outP90: 1409, outMost: 16_000,
		span: 10 * time.Minute, clients: zipf(73, 1.2),
	},
}

// zipf is weights of clients that fall with their rank.
func zipf(n int, s float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Pow(float64(i+1), -s)
	}
	return out
}

// Shapes are the names that Synthesise knows.
func Shapes() []string {
	var out []string
	for name := range shapes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Synthesise makes a trace of a known shape: o.Limit rows, or those until
// o.Until, or as many minutes as the original has. Same seed, same rows.
func Synthesise(name string, o ReadOptions) ([]Row, error) {
	s, ok := shapes[name]
	if !ok {
		return nil, fmt.Errorf("unknown shape %q: use one of %s", name, strings.Join(Shapes(), ", "))
	}
	until := s.span
	if o.Until > 0 {
		until = o.Until
	}
	rate := s.rate
	if o.Rate > 0 {
		rate = o.Rate
	}
	a := &arrivals{d: newDice(o.Seed, 1), mean: 1 / rate, cv: s.cv}
	d := newDice(o.Seed, 2)
	c := conversations{turns: s.turns, d: newDice(o.Seed, 3)}
	var rows []Row
	for at := a.next(); at < until && len(rows) < MaxRows; at = a.next() {
		if o.Limit > 0 && len(rows) == o.Limit {
			break
		}
		row := Row{At: at, Input: d.length(s.inP50, s.inP90, s.inMost), Output: d.length(s.outP50, s.outP90, s.outMost)}
		if len(s.clients) > 0 {
			row.Client = fmt.Sprintf("c%d", d.pick(s.clients))
		}
		if s.turns.block > 0 {
			row.Blocks = c.prompt(row.Input)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (d dice) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	x := d.Float64() * sum
	for i, w := range weights {
		if x -= w; x < 0 {
			return i
		}
	}
	return len(weights) - 1
}
