package fleet

import (
	"testing"
	"time"

	"sluice"
)

// BenchmarkReplica offers 8 replicas 120 requests/s of 800 tokens in and 300 out
// on average, as the lab's opening question does, each request with two
// expectations besides its first token and its end. One operation is one request.
func BenchmarkReplica(b *testing.B) {
	plain := Llama8BOnH100()
	hashed := plain
	hashed.BlockTokens = 16
	paged := hashed
	paged.Paged = true
	for _, bb := range []struct {
		name    string
		profile Profile
	}{{"reserved", plain}, {"prefix", hashed}, {"paged", paged}} {
		b.Run(bb.name, func(b *testing.B) {
			benchmarkFleet(b, bb.profile)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

func benchmarkFleet(b *testing.B, p Profile) {
	fleet := make([]*Replica, 8)
	wakes := make([]time.Time, len(fleet))
	for i := range fleet {
		fleet[i] = NewReplica(p)
	}
	conversations := make([][]uint64, 100)
	for i := range conversations {
		conversations[i] = chain(uint64(i), 25)
	}
	advance := func(i int, to time.Time) {
		for {
			at, ok := fleet[i].NextWake()
			if !ok || at.After(to) {
				wakes[i] = at
				if !ok {
					wakes[i] = to.Add(time.Hour)
				}
				return
			}
			fleet[i].Advance(at)
		}
	}
	now := epoch
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Second / 120)
		for k := range fleet {
			if !wakes[k].After(now) {
				advance(k, now)
			}
		}
		u := draw(1, uint64(i), 1)
		j := Job{Input: sluice.Tokens(400 + below(u, 800)), Output: sluice.Tokens(100 + below(u*31, 400)), Blocks: conversations[u%100]}
		k := i % len(fleet)
		id, err := fleet[k].Submit(now, j)
		if err != nil {
			b.Fatal(err)
		}
		fleet[k].Expect(now, id, 64)
		advance(k, now)
	}
	for _, r := range fleet {
		if l := r.Load(); l.Waiting > 100 {
			b.Fatalf("over water: %+v", l)
		}
	}
}
