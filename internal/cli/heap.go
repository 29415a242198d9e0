package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapFloor is the size of the heap below which it is not collected. What lives in
// a gateway is a few megabytes, and twice that would be filled by a few hundred
// requests: the collector would run for one request in ten.
const heapFloor = 48 << 20

// collectLate keeps the collector from running before the heap has heapFloor bytes;
// from there on it runs as it would. It does nothing where the operator has set
// GOGC or GOMEMLIMIT. The pacing is the process's own, so that it belongs to the
// command, and lasts as long as the process.
func collectLate(getenv func(string) (string, bool)) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if v, ok := getenv(name); ok && v != "" {
			return
		}
	}
	pace(&pacer{live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}})
}

// pacer sets the pace after each collection.
type pacer struct {
	live    []metrics.Sample
	percent int
}

// pace runs now and, since what it registers is garbage at once, after each
// collection.
func pace(p *pacer) {
	metrics.Read(p.live)
	percent := growth(p.live[0].Value.Uint64())
	if percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new([64]byte), pace, p)
}

// growth is by how many percent a heap of live bytes may grow: twice its size, or
// the floor if that is more.
func growth(live uint64) int {
	if live == 0 {
		live = 1 << 20
	}
	if live >= heapFloor/2 {
		return 100
	}
	return int((heapFloor - live) * 100 / live / 25 * 25) // in steps, so that it rarely changes
}
