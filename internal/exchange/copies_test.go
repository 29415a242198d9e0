package exchange

import (
	"context"
	"testing"

	"sluice/internal/route"
)

// However much is copied, so many copies run in a process, and keep so many bytes
// alive.
func TestCopiesAreBounded(t *testing.T) {
	var c copies
	c.ctx, c.cancel = context.WithCancelCause(t.Context())
	for i := range MaxCopies {
		if skip := c.enter(MaxCopyBytes / MaxCopies); skip != route.Sent {
			t.Fatalf("copy %d: %s", i, skip)
		}
	}
	if skip := c.enter(0); skip != route.SkipBusy {
		t.Errorf("one more copy: got %q, want busy", skip)
	}
	c.leave(MaxCopyBytes / MaxCopies)
	if skip := c.enter(MaxCopyBytes/MaxCopies + 1); skip != route.SkipBytes {
		t.Errorf("one more byte: got %q, want bytes", skip)
	}
	if skip := c.enter(MaxCopyBytes / MaxCopies); skip != route.Sent {
		t.Errorf("what fits again: %q", skip)
	}
	for range MaxCopies {
		c.leave(MaxCopyBytes / MaxCopies)
	}
	c.close() // waits for nobody
	if skip := c.enter(0); skip != route.SkipShutdown {
		t.Errorf("after the end: got %q", skip)
	}
	if c.ctx.Err() == nil {
		t.Error("copies are not told to end")
	}
}
