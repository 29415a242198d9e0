package replay

import (
	"cmp"
	"slices"
	"time"
)

// Row is one request of a trace.
type Row struct {
	At          time.Duration // since the start of the trace
	Client      string        // whose; empty when the trace does not say
	Input       int64         // prompt tokens, at least 1
	Output      int64         // answer tokens, at least 1
	Model       string        // empty for the run's
	Task        string        // empty for none
	Whole       bool          // not streamed
	CancelAfter int           // leave after this many content events; 0 for never
	Blocks      []int64       // ids of prompt blocks, where equal leading ids share a prefix
	Line        int           // of its file; 0 for a row that is made up
}

// MaxRows bounds a trace.
const MaxRows = 5_000_000

// Sort puts rows in order of time; rows of one time keep theirs.
func Sort(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.At, b.At) })
}

// Cut keeps the rows before until (0 keeps all), at most limit of them (0 keeps
// all). The rows must be in order of time.
func Cut(rows []Row, until time.Duration, limit int) []Row {
	if until > 0 {
		n, _ := slices.BinarySearchFunc(rows, until, func(r Row, t time.Duration) int { return cmp.Compare(r.At, t) })
		rows = rows[:n]
	}
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return rows
}
