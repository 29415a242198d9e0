package replay

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// A ServeGen trace has no requests: it has, per client and ten-minute window, a
// rate and a fitted distribution of the time between two; and, per client and
// six hours, the lengths. Requests are drawn from these.
var (
	rateColumns   = []string{"client", "window_start_s", "rate_rps", "cv_iat", "pattern", "arg1", "arg2"}
	lengthColumns = []string{"client", "window_start_s", "in_p50", "in_p90", "in_p99", "out_p50", "out_p90", "out_p99"}
)

const (
	rateWindow   = 600.0
	lengthWindow = 21_600.0
)

type lengths struct{ inP50, inP90, inMost, outP50, outP90, outMost float64 }

// common stands for clients that have no lengths.
var common = lengths{500, 1900, 16_000, 120, 450, 8_000}

func readServeGen(l *lines, at []int, o ReadOptions) ([]Row, error) {
	known, err := readLengths(o)
	if err != nil {
		return nil, fmt.Errorf("lengths: %w", err)
	}
	var rows []Row
	for stream := uint64(1); ; stream++ {
		b, ok := l.next()
		if !ok {
			return rows, l.err()
		}
		f, err := l.pick(b, at)
		if err != nil {
			return nil, err
		}
		v, err := floats(f[1], f[2], f[3])
		if err != nil {
			return nil, l.at(err)
		}
		start, rate, cv := v[0], v[1], v[2]
		if o.Until > 0 && start >= o.Until.Seconds() {
			continue // a later client may be within
		}
		w := window{client: f[0], start: start, rate: rate, cv: cv}
		if f[4] == "Weibull" {
			if v, err = floats(f[5], f[6]); err != nil {
				return nil, l.at(err)
			}
			w.shape = v[0]
		}
		if rows, err = w.draw(l, rows, lengthsAt(known, f[0], start), newDice(o.Seed, stream), o); err != nil {
			return nil, err
		}
	}
}

// window is one client's traffic in one window.
type window struct {
	client          string
	start, rate, cv float64
	shape           float64 // of a Weibull; 0 for a Gamma
}

// draw appends the window's requests. The mean is the rate's: fitted scales of
// bursty windows are in other units now and then.
func (w window) draw(l *lines, rows []Row, n lengths, d dice, o ReadOptions) ([]Row, error) {
	if !(w.rate > 0) || w.rate > 1e6 {
		return rows, nil
	}
	end := rateWindow
	if o.Until > 0 {
		end = min(end, o.Until.Seconds()-w.start)
	}
	gap := func() float64 { return d.gamma(1/w.rate, min(max(w.cv, 0), 100)) }
	if w.shape > 0.05 {
		scale := 1 / (w.rate * math.Gamma(1+1/w.shape))
		gap = func() float64 { return d.weibull(w.shape, scale) }
	}
	var err error
	for t := gap() * d.Float64(); t < end; t += gap() {
		row := Row{
			At: time.Duration((w.start + t) * float64(time.Second)), Client: w.client,
			Input:  d.length(n.inP50, n.inP90, n.inMost),
			Output: d.length(n.outP50, n.outP90, n.outMost),
		}
		if rows, err = l.add(rows, row); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func lengthsAt(known map[string]lengths, client string, start float64) lengths {
	slot := math.Floor(start / lengthWindow)
	for s := slot; s >= 0; s-- {
		if n, ok := known[lengthKey(client, s*lengthWindow)]; ok {
			return n
		}
	}
	return common
}

func lengthKey(client string, start float64) string { return fmt.Sprintf("%s/%g", client, start) }

func readLengths(o ReadOptions) (map[string]lengths, error) {
	out := map[string]lengths{}
	if o.Lengths == nil {
		return out, nil
	}
	l := newLines(o.Lengths)
	header, ok := l.next()
	if !ok {
		return out, l.err()
	}
	at, ok := columnsOf(split(string(header)), lengthColumns)
	if !ok {
		return nil, l.at(fmt.Errorf("the columns %q are wanted", lengthColumns))
	}
	for b, ok := l.next(); ok; b, ok = l.next() {
		f, err := l.pick(b, at)
		if err != nil {
			return nil, err
		}
		v, err := floats(f[1:]...)
		if err != nil {
			return nil, l.at(err)
		}
		// The longest are a few times the 99 % quantile.
		out[lengthKey(f[0], v[0])] = lengths{v[1], v[2], max(2*v[3], v[2]), v[4], v[5], max(2*v[6], v[5])}
	}
	return out, l.err()
}

func floats(texts ...string) ([]float64, error) {
	out := make([]float64, len(texts))
	for i, s := range texts {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || v < 0 {
			return nil, fmt.Errorf("number %q: write one that is not negative", s)
		}
		out[i] = v
	}
	return out, nil
}
