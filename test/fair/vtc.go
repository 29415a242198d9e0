package fair

import (
	"cmp"
	"slices"
	"time"

	"sluice"
)

// Anchor is a published workload and what was measured with it on one A10G with
// Llama-2-7B.
type Anchor struct {
	Name    string
	Clients func(seed uint32, length time.Duration) []Client
	// How long arrivals lasted, in seconds, where VTC and where FCFS was measured.
	VTCLength, FCFSLength time.Duration
	// Requests per second from start to the end of the last answer.
	VTCThroughput, FCFSThroughput float64
	// Maximum accumulated service difference.
	VTC, FCFS int64
	// As VTC, with a prediction that is off by up to half; 0 where there is none.
	VTCPredicted int64
	// From the start: a client that asks for less than its share at first would
	// make the difference from the start that of the demands.
	Whole bool
	// The budget of memory with which our model, served first come first served,
	// reproduces FCFSThroughput.
	KV sluice.Tokens
}

// Anchors are those workloads in which every client wants more than its share
// for all or most of the time, so that a difference of service is unfairness.
func Anchors() []Anchor {
	return []Anchor{
		{
			Name: "overload", Whole: true, KV: 9600, Clients: uniform(0, 256, 1.5, 3), VTCLength: 360 * time.Second, FCFSLength: 600 * time.Second,
			VTCThroughput: 1.744, FCFSThroughput: 1.71, VTC: 7947, FCFS: 261_978, VTCPredicted: 7027,
		},
		{
			Name: "overload-multi", Whole: true, KV: 9600, Clients: uniform(0, 256, 0.4, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6), VTCLength: 360 * time.Second, FCFSLength: 360 * time.Second,
			VTCThroughput: 1.709, FCFSThroughput: 1.709, VTC: 3601, FCFS: 23_899, VTCPredicted: 2824,
		},
		{
			Name: "on_off_overload", Whole: true, KV: 9600, Clients: uniform(60*time.Second, 256, 2, 3), VTCLength: 600 * time.Second, FCFSLength: 600 * time.Second,
			VTCThroughput: 1.717, FCFSThroughput: 1.711, VTC: 8820, FCFS: 378_413,
		},
		{
			Name: "poisson_short_long", Whole: true, KV: 10500, Clients: poisson(Size{In: 64, Out: 64}, Size{In: 256, Out: 256}), VTCLength: 600 * time.Second, FCFSLength: 600 * time.Second,
			VTCThroughput: 7.73, FCFSThroughput: 7.895, VTC: 20_025, FCFS: 219_873,
		},
		{
			Name: "poisson_short_long_2", KV: 12300, Clients: poisson(Size{In: 512, Out: 32}, Size{In: 32, Out: 512}), VTCLength: 600 * time.Second, FCFSLength: 300 * time.Second,
			VTCThroughput: 3.071, FCFSThroughput: 3.535, VTC: 41_484, FCFS: 337_966,
		},
	}
}

func client(i int, rows []Row) Client {
	return Client{Tenant: sluice.TenantID(rune('a' + i)), Rows: rows}
}

// uniform is clients that ask for tokens in and tokens out at even intervals,
// each after a phase that is drawn, as many as rate × length. The first is silent
// in every second period.
func uniform(period time.Duration, tokens sluice.Tokens, rates ...float64) func(uint32, time.Duration) []Client {
	return func(seed uint32, length time.Duration) []Client {
		r := newMersenne(seed)
		var out []Client
		for i, rate := range rates {
			phase := r.Float64()
			var rows []Row
			for n := range int(rate*length.Seconds() + 1e-9) {
				at := time.Duration((phase + float64(n+1)) / rate * float64(time.Second))
				if period > 0 && i == 0 && at/period%2 == 1 {
					continue
				}
				rows = append(rows, Row{at, Size{In: tokens, Out: tokens}})
			}
			out = append(out, client(i, rows))
		}
		return out
	}
}

// poisson is two clients whose requests come as one Poisson process of 9.5 per
// second, each the first's with a probability of 8/9.5.
func poisson(first, second Size) func(uint32, time.Duration) []Client {
	return func(seed uint32, length time.Duration) []Client {
		const rate, one = 9.5, 8.0
		r := newMersenne(seed)
		whose := make([]int, int(rate*length.Seconds()))
		for i := range whose {
			if r.Float64() > one/rate {
				whose[i] = 1
			}
		}
		rows := make([][]Row, 2)
		at := 0.0
		for _, c := range whose {
			at += r.ExpFloat64() / rate
			rows[c] = append(rows[c], Row{time.Duration(at * float64(time.Second)), [...]Size{first, second}[c]})
		}
		return []Client{client(0, rows[0]), client(1, rows[1])}
	}
}

// answer is when a request's tokens came.
type answer struct {
	client     int
	from, to   time.Duration
	work       float64
	asked, end time.Duration
}

// answers lists the requests that were served to the end.
func (l *Log) answers() []answer {
	first := make([]time.Duration, len(l.Requests))
	var out []answer
	for _, e := range l.Events {
		switch e.Kind {
		case First:
			first[e.Req] = e.At
		case End:
			q := &l.Requests[e.Req]
			if e.Seen > 0 && e.Reason == sluice.ReasonNone {
				out = append(out, answer{q.Client, first[e.Req], e.At, float64(l.Cost.Of(q.True.In-q.True.Cached, e.Seen)), q.At, e.At})
			}
		}
	}
	return out
}

// delivered is each client's work at every tick until the last arrival: a request's
// whole work counts evenly from its first token to its end.
func (l *Log) delivered(every time.Duration) [][]float64 {
	until := l.Requests[len(l.Requests)-1].At.Truncate(time.Second)
	n := int(until/every) + 1
	out := make([][]float64, len(l.Clients))
	for c := range out {
		out[c] = make([]float64, n)
	}
	for _, a := range l.answers() {
		rate := a.work / max(float64(a.to-a.from), 1)
		for i := int(a.from / every); i < n-1; i++ {
			from, to := max(a.from, time.Duration(i)*every), min(a.to, time.Duration(i+1)*every)
			if to <= from {
				break
			}
			out[a.client][i+1] += rate * float64(to-from)
		}
	}
	for _, sum := range out {
		for i := range sum[1:] {
			sum[i+1] += sum[i]
		}
	}
	return out
}

// AccumulatedDifference is the artifact's measure: at each tick the largest sum of
// any client less the smallest; the maximum of that. The artifact has 19 ticks,
// which 0 asks for; more are stricter. It counts what one client had while another
// asked for nothing.
func (l *Log) AccumulatedDifference(every time.Duration) float64 {
	if every == 0 {
		every = l.Requests[len(l.Requests)-1].At.Truncate(time.Second) / 20
	}
	sums := l.delivered(every)
	worst := 0.0
	for i := range sums[0] {
		least, most := sums[0][i], sums[0][i]
		for _, s := range sums {
			least, most = min(least, s[i]), max(most, s[i])
		}
		worst = max(worst, most-least)
	}
	return worst
}

// BackloggedDifference is the same over any interval in which two clients have
// something waiting throughout: the largest by which one gains on the other.
func (l *Log) BackloggedDifference(every time.Duration) float64 {
	sums := l.delivered(every)
	n := len(sums[0])
	busy := make([][]bool, len(sums)) // throughout the tick that ends there
	waiting := make([]int, len(sums))
	for c := range busy {
		busy[c] = make([]bool, n)
	}
	next := 0
	for i := range n {
		for c := range busy {
			busy[c][i] = waiting[c] > 0
		}
		for ; next < len(l.Events) && l.Events[next].At <= time.Duration(i)*every; next++ {
			e := &l.Events[next]
			switch e.Kind {
			case Enqueue:
				waiting[l.Requests[e.Req].Client]++
			case Dispatch, Shed, Leave:
				c := l.Requests[e.Req].Client
				if waiting[c]--; waiting[c] == 0 {
					busy[c][i] = false
				}
			}
		}
	}
	worst := 0.0
	for a := range sums {
		for b := range a {
			lo, hi, open := 0.0, 0.0, false
			for i := range n {
				d := sums[a][i] - sums[b][i]
				if !busy[a][i] || !busy[b][i] {
					open = false
					continue
				}
				if !open {
					lo, hi, open = d, d, true
				}
				lo, hi = min(lo, d), max(hi, d)
				worst = max(worst, hi-lo)
			}
		}
	}
	return worst
}

// Throughput is answers per second from the start to the end of the last one.
func (l *Log) Throughput() float64 {
	a := l.answers()
	if len(a) == 0 {
		return 0
	}
	last := slices.MaxFunc(a, func(x, y answer) int { return cmp.Compare(x.end, y.end) })
	return float64(len(a)) / last.end.Seconds()
}
