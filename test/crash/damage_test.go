package crash

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDamagedRecord damages a record in the middle of the journal, as no crash and
// no loss of power does: the gateway does not start, since it cannot know what the
// record was, nor drop those after it. With the byte back in its place nothing is
// lost.
func TestDamagedRecord(t *testing.T) {
	c := newCrash(t, 1)
	c.killAt(t, 300*time.Millisecond)
	segments, err := filepath.Glob(filepath.Join(c.g.Dir, "journal", "journal-*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	middle := written(t, segments[0]) / 2
	if err := spoil(segments[0], middle); err != nil {
		t.Fatal(err)
	}
	if err := c.g.TryStart(); err == nil || !strings.Contains(err.Error(), "is damaged at byte") {
		t.Errorf("with a damaged record in the middle of its journal the gateway starts, or says: %v", err)
		return
	}
	if err := spoil(segments[0], middle); err != nil {
		t.Fatal(err)
	}
	c.g.Start()
	c.audit.check()
}
