package fleet

import (
	"testing"
	"time"

	"sluice"
)

func cached(kv sluice.Tokens) Profile {
	p := simple()
	p.BlockTokens, p.KVCapacity = 100, kv
	return p
}

// chain is n blocks of one conversation.
func chain(conversation, n uint64) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = conversation*1000 + uint64(i)
	}
	return out
}

// last runs one job to its end and returns what it took and found.
func last(t *testing.T, r *Replica, now time.Time, j Job) (time.Duration, sluice.Tokens) {
	t.Helper()
	id, err := r.Submit(now, j)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range drain(t, r) {
		if e.ID == id && e.Done {
			return e.At.Sub(now), e.Cached
		}
	}
	t.Fatal("the job never ended")
	return 0, 0
}

func TestPrefixHitShortensPrefill(t *testing.T) {
	r := NewReplica(cached(10_000))
	now := epoch
	steps := []struct {
		name   string
		job    Job
		cached sluice.Tokens
		took   time.Duration
	}{
		{"cold", Job{Input: 1050, Output: 1, Blocks: chain(1, 10)}, 0, 1050 * time.Millisecond},
		{"the same again", Job{Input: 1050, Output: 1, Blocks: chain(1, 10)}, 1000, 50 * time.Millisecond},
		{"a longer one", Job{Input: 1500, Output: 1, Blocks: chain(1, 15)}, 1000, 500 * time.Millisecond},
		{"whole blocks, of which one token must be computed", Job{Input: 1500, Output: 1, Blocks: chain(1, 15)}, 1400, 100 * time.Millisecond},
		{"of another conversation", Job{Input: 500, Output: 1, Blocks: chain(2, 5)}, 0, 500 * time.Millisecond},
		{"without blocks", Job{Input: 500, Output: 1}, 0, 500 * time.Millisecond},
		{"with output that is hashed", Job{Input: 200, Output: 201, Blocks: chain(3, 4)}, 0, 2200 * time.Millisecond},
		{"its next turn", Job{Input: 450, Output: 1, Blocks: chain(3, 4)}, 400, 50 * time.Millisecond},
	}
	hits := sluice.Tokens(0)
	for _, s := range steps {
		took, found := last(t, r, now, s.job)
		if took != s.took || found != s.cached {
			t.Errorf("%s: took %s with %d cached, want %s with %d", s.name, took, found, s.took, s.cached)
		}
		hits += s.cached
		now = now.Add(time.Minute)
		r.Advance(now)
	}
	if got := r.Totals().CacheHits; got != hits {
		t.Errorf("got %d hits, want %d", got, hits)
	}
}

func TestPrefixCacheGivesWayOldestFirst(t *testing.T) {
	r := NewReplica(cached(3000))
	now := epoch
	run := func(j Job) sluice.Tokens {
		now = now.Add(time.Minute)
		_, found := last(t, r, now, j)
		return found
	}
	run(Job{Input: 1000, Output: 1, Blocks: chain(1, 10)})
	run(Job{Input: 1000, Output: 1, Blocks: chain(2, 10)})
	if got := r.Load().KVCached; got != 2000 {
		t.Fatalf("got %d tokens cached, want 2,000", got)
	}
	run(Job{Input: 1300, Output: 1}) // needs 300 more than are free: the oldest conversation's last blocks go
	if got := run(Job{Input: 1000, Output: 1, Blocks: chain(2, 10)}); got != 900 {
		t.Errorf("the newer conversation found %d, want 900", got)
	}
	if got := run(Job{Input: 1000, Output: 1, Blocks: chain(1, 10)}); got != 600 {
		t.Errorf("the older conversation found %d, want 600", got)
	}
	now = now.Add(time.Minute)
	r.Restart(now)
	if got := r.Load().KVCached; got != 0 {
		t.Errorf("%d tokens survived a restart", got)
	}
	if got := run(Job{Input: 1000, Output: 1, Blocks: chain(1, 10)}); got != 0 {
		t.Errorf("found %d after a restart", got)
	}
}

// Jobs that run side by side hold their common blocks once.
func TestPrefixIsSharedByRunningJobs(t *testing.T) {
	r := NewReplica(cached(3100))
	long := Job{Input: 1000, Output: 500, Blocks: chain(1, 10)}
	if _, err := r.Submit(epoch, long); err != nil {
		t.Fatal(err)
	}
	r.Advance(after(1100 * time.Millisecond))
	for range 3 {
		if _, err := r.Submit(after(1100*time.Millisecond), long); err != nil {
			t.Fatal(err)
		}
	}
	r.Advance(after(1700 * time.Millisecond))
	// Alone, 1,500 each, two would fit. The first holds 1,000 in blocks and 500 for
	// its output. Each of the others finds 900, takes 600 and gives 100 back when
	// its last block turns out to be there: all share 1,000.
	l := r.Load()
	if l.Running != 4 || l.KVReserved != 3000 {
		t.Errorf("got %+v, want four jobs in 3,000", l)
	}
	drain(t, r)
	if l := r.Load(); l.KVReserved != 0 || l.KVCached != 1000 {
		t.Errorf("got %+v, want 1,000 cached", l)
	}
}

// As it grows, the older job takes the newer one's memory, which starts again.
func TestPagedMemoryPreemptsTheNewest(t *testing.T) {
	p := simple()
	p.Paged, p.KVCapacity = true, 1000
	r := NewReplica(p)
	first, _ := r.Submit(epoch, Job{Input: 300, Output: 400})
	second, _ := r.Submit(epoch, Job{Input: 300, Output: 400})
	third, _ := r.Submit(epoch, Job{Input: 600, Output: 100})
	at := map[JobID]time.Time{}
	first2 := 0
	for _, e := range drain(t, r) {
		if e.Done {
			at[e.ID] = e.At
		}
		if e.ID == second && e.Tokens == 1 {
			first2++
		}
	}
	if first2 != 1 {
		t.Errorf("the preempted job told its first token %d times", first2)
	}
	// The first prefills in 300 ms, the second in the next step. After 198 more, 300
	// + 200 and 300 + 199 tokens leave no room for two. The first goes on alone to
	// its 400; the second then computes its 499 again and makes its last 201.
	if want := after(300*time.Millisecond + 310*time.Millisecond + 398*10*time.Millisecond); !at[first].Equal(want) {
		t.Errorf("the first ends at %s, want %s", at[first], want)
	}
	got := r.Totals()
	if got.Preempted != 1 || got.Recomputed != 499 || got.Generated != 900 || got.Prefilled != 1699 {
		t.Errorf("got %+v, want one preemption and 499 tokens again", got)
	}
	if !at[second].After(at[first]) || !at[third].After(at[second]) {
		t.Errorf("ends at %v, want the order of submission", at)
	}
}

// Whole-context reservation never preempts, at the price of a smaller batch.
func TestReservationDoesNotPreempt(t *testing.T) {
	p := simple()
	p.KVCapacity = 1000
	r := NewReplica(p)
	for range 2 {
		if _, err := r.Submit(epoch, Job{Input: 300, Output: 400}); err != nil {
			t.Fatal(err)
		}
	}
	r.Advance(after(time.Second))
	if l := r.Load(); l.Running != 1 || l.Waiting != 1 {
		t.Errorf("got %+v, want one running and one waiting", l)
	}
	drain(t, r)
	if got := r.Totals(); got.Preempted != 0 || got.Recomputed != 0 || got.Done != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestQuadraticPrefill(t *testing.T) {
	p := simple()
	p.PrefillPerPair = 1000 // 1 ns
	want := 10*time.Second + 10_000*10_001/2*time.Nanosecond
	if got := p.Prefill(0, 10_000); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// In chunks it takes as long, and a cached head is attended to.
	p.ChunkTokens, p.KVCapacity = 300, 20_000
	r := NewReplica(p)
	if took, _ := last(t, r, epoch, Job{Input: 10_000}); took != want {
		t.Errorf("in chunks: %s, want %s", took, want)
	}
	r = NewReplica(p)
	want = p.Prefill(9000, 1000)
	if took, _ := last(t, r, epoch, Job{Input: 10_000, Cached: 9000}); took != want {
		t.Errorf("with 9,000 cached: %s, want %s", took, want)
	}
}
