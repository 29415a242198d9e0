package rehearsal

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"sluice/internal/config"
	"sluice/internal/tabletop"
)

// growing is the noisy tenant's mix, in which its half of the requests grows by 500
// tokens every ten seconds from 1,000, as more and more of its users find the new
// feature.
func growing() string {
	var b strings.Builder
	b.WriteString(`
length: 3m20s
warmup: 20s
gateway:
  providers: {gpus: {dialect: openai, engine: vllm, price: free}}
  pools:
    chat:
      backends:
`)
	for i := range 12 {
		fmt.Fprintf(&b, "        - {name: gpu-%d, provider: gpus, model: m, capacity: {concurrency: 64, kv_tokens: 400k, prefill_tokens: 30k, prefill_rate: 30k, decode_rate: 8900}}\n", i)
	}
	b.WriteString(`
  models: {chat: {pools: [chat]}}
  tenants: {quiet: {}, noisy: {}}
fleet: {chat: {profile: llama-3.1-8b-1xh100}}
traffic:
  - {tenant: quiet, arrivals: 50/s, input: 1k, output: 100, max_tokens: 400}
  - {tenant: noisy, arrivals: 50/s, input: 1k, output: 100, max_tokens: 400}
events:
`)
	for k := range 16 {
		fmt.Fprintf(&b, "  - {at: %ds, label: \"%d tokens a prompt\", traffic: {sources: noisy, input: %d}}\n", 30+10*k, 1500+500*k, 1500+500*k)
	}
	return b.String()
}

// firsts is when the demand of the pool passed a share, when somebody had waited for a
// time, and the requests per second up to then.
type firsts struct {
	demand, queue time.Duration
	before, after float64 // requests/s until the mix began to change, and from then until the queue
	seconds       [2]float64
}

func leads(t *testing.T, r *tabletop.Result, change time.Duration, share int64, age time.Duration) (f firsts) {
	t.Helper()
	s := r.Series
	f.demand, f.queue = -1, -1
	at := func(b int) time.Duration { return time.Duration(b+1) * s.Bucket }
	for b := range s.Count {
		oldest, n := time.Duration(0), int64(0)
		for i := range s.Groups {
			if s.Groups[i].Kind == "class" {
				oldest, n = max(oldest, s.Groups[i].QueueAge[b]), n+s.Groups[i].Requests[b]
			}
		}
		switch {
		case at(b) <= change:
			f.before, f.seconds[0] = f.before+float64(n), f.seconds[0]+s.Bucket.Seconds()
		case f.queue < 0:
			f.after, f.seconds[1] = f.after+float64(n), f.seconds[1]+s.Bucket.Seconds()
		}
		if f.demand < 0 && s.Pools[0].Demand[b] >= share {
			f.demand = at(b)
		}
		if f.queue < 0 && oldest >= age {
			f.queue = at(b)
		}
	}
	f.before, f.after = f.before/f.seconds[0], f.after/f.seconds[1]
	if f.demand < 0 || f.queue < 0 {
		t.Fatalf("demand %v, queue %v: never", f.demand, f.queue)
	}
	return f
}

// flat holds the rate of requests to what it was, within three standard deviations of
// two counts.
func (f *firsts) flat(t *testing.T) {
	t.Helper()
	if off := 3 * math.Sqrt(f.before/f.seconds[0]+f.before/f.seconds[1]); math.Abs(f.after-f.before) > off {
		t.Errorf("%.1f requests/s, before %.1f ± %.1f: not flat", f.after, f.before, off)
	}
}

// target is until when the first token is to be there.
const target = 2 * time.Second

// The demand ratio rises before queues do under the noisy tenant's mix, while
// requests/s stays flat. Where the mix changes within a moment it passes 100 % before
// anybody has waited for as long as the target of the first token; where it changes
// over minutes it passes the target of the replicas before anybody waits, and ten
// seconds and more before anybody waits for that long.
func TestDemandRisesBeforeQueues(t *testing.T) {
	long(t)
	t.Parallel()
	s := shipped(t, "noisy-tenant", nil)
	for seed := 1; seed <= seeds(t); seed++ {
		f := leads(t, run(t, s, config.PolicySluice, seed), 80*time.Second, 1000, target)
		t.Logf("seed %d, at a stroke: demand above 100 %% at %v, a wait of %v at %v, %.1f requests/s and then %.1f", seed, f.demand, target, f.queue, f.before, f.after)
		if f.demand <= 80*time.Second || f.demand >= f.queue {
			t.Errorf("the demand passes 100 %% at %v, and a wait %v at %v", f.demand, target, f.queue)
		}
		f.flat(t)
	}
	r := play(t, written(t, growing()), 1)
	f := leads(t, r, 30*time.Second, 800, target)
	early := leads(t, r, 30*time.Second, 800, 100*time.Millisecond)
	t.Logf("over minutes: demand above 80 %% at %v, a wait of 100ms at %v and of %v at %v, %.1f requests/s and then %.1f", f.demand, early.queue, target, f.queue, f.before, f.after)
	if early.queue <= f.demand || f.queue-f.demand < 10*time.Second {
		t.Errorf("the demand passes the target at %v, a wait 100ms at %v and %v at %v: want it first, by 10s of the last", f.demand, early.queue, target, f.queue)
	}
	f.flat(t)
}
