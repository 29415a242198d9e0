package scenarios

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/replay"
)

var update = flag.Bool("update", false, "rewrite the traces")

// made are the traces that ship: so many minutes in the shape of a published
// recording.
var made = []struct {
	file, shape string
	until       time.Duration
	rate        float64 // 0 for the recording's own
}{
	{"conversation.csv", "azure-conv", 6 * time.Minute, 0},
	{"code.csv", "azure-code", 6 * time.Minute, 0},
	{"documents.csv", "mooncake-conversation", 6 * time.Minute, 1.5},
	{"arena.csv", "vtc-arena", 6 * time.Minute, 0},
}

// The traces are what their shapes give, and no recording.
func TestTracesAreMade(t *testing.T) {
	for _, m := range made {
		rows, err := replay.Synthesise(m.shape, replay.ReadOptions{Seed: 1, Until: m.until, Rate: m.rate})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.WriteString("at_s,input,output\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "%.3f,%d,%d\n", r.At.Seconds(), r.Input, r.Output)
		}
		path := filepath.Join("traces", m.file)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, b.Bytes()) {
			t.Errorf("%s is stale, rewrite with -update", path)
		}
	}
}
