package engine

import (
	"fmt"
	"testing"
	"time"

	"sluice"
)

// TestCallersAreForgotten lets keys come that never come again, ten a second, beside one
// that comes on: no more are remembered than about twice those of the last minute.
func TestCallersAreForgotten(t *testing.T) {
	var cs callers
	stays := callerID{"t", "stays"}
	of := func(id callerID, ns int64) *caller { return cs.of(id, cs.index.Hash(id), ns) }
	first := of(stays, 0)
	for i := range 100_000 {
		ns := int64(i) * int64(time.Second/10)
		of(callerID{"t", sluice.KeyID(fmt.Sprint(i))}, ns)
		if of(stays, ns) != first {
			t.Fatalf("a caller that comes all the time was forgotten at %v", time.Duration(ns))
		}
		if n := cs.index.Len(); n > 1300 || n != len(cs.order) {
			t.Fatalf("%d callers and %d of the order after %v", n, len(cs.order), time.Duration(ns))
		}
	}
	if n := cs.index.Len(); n < 600 {
		t.Errorf("%d callers, fewer than came in the last minute", n)
	}
}
