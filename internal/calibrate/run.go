package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sluice"
	"sluice/internal/fleet"
)

// Options is what to measure and how much of it.
type Options struct {
	Target    string // base URL of the backend, with or without /v1
	Model     string // as the backend calls it
	Key       sluice.Secret
	Plan      fleet.PlanOptions
	Transport http.RoundTripper
	Timeout   time.Duration // of one request; 0 means five minutes
	Seed      uint64        // of prompts: one that was used before finds them cached
	Progress  io.Writer     // nil tells nothing
}

// Result is what was learned.
type Result struct {
	Profile  fleet.Profile
	Quality  fleet.Quality
	Told     bool // the engine itself said how much memory it has
	Requests int  // that were answered
	Refused  int  // that were not
	Tokens   sluice.Tokens
	Readings bool   // the engine's metrics could be read
	Stopped  string // why before the end of the plan; empty if not
}

// patience is the time of a request that names none.
const patience = 5 * time.Minute

// runner is one calibration.
type runner struct {
	o       Options
	base    *url.URL
	metrics string // URL, empty where there are none
	result  Result
	samples []fleet.Sample
	plain   bool // the backend refuses the parameters of engines

	mu    sync.Mutex
	sent  uint64  // prompts so far, guarded by mu
	words float64 // per token of a prompt, learned, guarded by mu
	frame float64 // tokens of an empty prompt, guarded by mu
}

// Run sends the plan's probes and fits a profile. An error means that nothing
// could be learned; a plan that was cut short is a result that says so.
func Run(ctx context.Context, o Options) (Result, error) {
	r := &runner{o: o, words: 1, frame: 8}
	r.o.Timeout = cmp.Or(o.Timeout, patience)
	base, err := url.Parse(o.Target)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return r.result, fmt.Errorf("%q is not the address of a backend: write http://HOST:PORT", o.Target)
	}
	base.Path = strings.TrimSuffix(strings.TrimSuffix(base.Path, "/"), "/v1")
	r.base = base
	if err := r.greet(ctx); err != nil {
		return r.result, err
	}
	r.findMetrics(ctx)
	r.o.Plan.Readings = r.metrics != ""
	plan, err := fleet.Plan(r.o.Plan)
	if err != nil {
		return r.result, err
	}
	r.play(ctx, plan)
	if len(r.samples) == 0 {
		return r.result, fmt.Errorf("nothing was measured: %s", cmp.Or(r.result.Stopped, "no probe was answered"))
	}
	told := r.result.Profile.KVCapacity
	r.result.Profile, r.result.Quality = fleet.Fit(r.samples)
	if told > 0 {
		r.result.Profile.KVCapacity, r.result.Told = told, true
	}
	return r.result, nil
}

// greet sends one short prompt, to see that the backend answers and how it counts.
func (r *runner) greet(ctx context.Context) error {
	for range 2 {
		run, err := r.request(ctx, fleet.Probe{Input: 256, Output: 2, Concurrency: 1, Repeat: 1})
		if e, ok := err.(*refusal); ok && e.status == http.StatusBadRequest && !r.plain {
			r.plain = true
			continue
		}
		if err == nil {
			r.result.Tokens += run.Input + 2
		}
		return err
	}
	return nil
}

// play sends the rounds of a plan until its end, the budget's or the context's.
func (r *runner) play(ctx context.Context, plan []fleet.Probe) {
	budget := cmp.Or(r.o.Plan.Budget, 2_000_000)
	rounds, done := 0, 0
	for _, p := range plan {
		rounds += p.Repeat
	}
	for _, p := range plan {
		for range p.Repeat {
			done++
			if ctx.Err() != nil {
				r.result.Stopped = "interrupted"
				return
			}
			if r.result.Tokens+(p.Input+p.Output)*sluice.Tokens(p.Concurrency) > budget+budget/10 {
				r.result.Stopped = fmt.Sprintf("the budget of %d tokens is spent", budget)
				return
			}
			r.say("round %d of %d: %d × %d in, %d out; %d tokens so far", done, rounds, p.Concurrency, p.Input, p.Output, r.result.Tokens)
			got, err := r.round(ctx, p)
			r.samples = append(r.samples, got...)
			if err != nil {
				r.result.Stopped = err.Error()
				return
			}
			if r.metrics == "" && filling(p) && len(got) > 0 && got[0].AtOnce < p.Concurrency {
				return // the memory is full: what follows would only be larger
			}
		}
	}
}

// filling reports whether a probe is one of those that fill the memory.
func filling(p fleet.Probe) bool { return p.Concurrency >= 32 && p.Input > 32 }

// round sends the requests of one round at one moment.
func (r *runner) round(ctx context.Context, p fleet.Probe) ([]fleet.Sample, error) {
	reading, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var readings []fleet.Reading
	if r.metrics != "" && p.Concurrency > 1 {
		watch.Go(func() { readings = r.watch(reading) })
	}
	runs := make([]fleet.Run, p.Concurrency)
	errs := make([]error, p.Concurrency)
	var requests sync.WaitGroup
	for i := range runs {
		requests.Go(func() { runs[i], errs[i] = r.request(ctx, p) })
	}
	requests.Wait()
	stop()
	watch.Wait()
	refused := 0
	var last error
	for i := range runs {
		if errs[i] != nil {
			runs[i].Arrivals, last = nil, errs[i]
			refused++
			continue
		}
		r.result.Tokens += runs[i].Input
		if n := len(runs[i].Arrivals); n > 0 {
			r.result.Tokens += runs[i].Arrivals[n-1].Tokens
		}
	}
	r.result.Requests += len(runs) - refused
	if ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted")
	}
	r.result.Refused += refused
	samples := fleet.Measure(p, runs, readings)
	if refused*2 > len(runs) {
		return samples, fmt.Errorf("%d of %d requests were not answered: %w", refused, len(runs), last)
	}
	return samples, nil
}

func (r *runner) say(format string, args ...any) {
	if r.o.Progress != nil {
		fmt.Fprintf(r.o.Progress, format+"\n", args...)
	}
}
