package wire

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice"
	"sluice/internal/estimate"
)

// corpus is this repository's own sources and documents in pieces of a size.
func corpus(t *testing.T, size int) (pieces []string) {
	t.Helper()
	for _, pattern := range []string{"../*/*.go", "../../docs/*.md", "../*/testdata/*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		text := strings.ToValidUTF8(all.String(), "?")
		for ; len(text) >= size; text = text[size:] {
			pieces = append(pieces, strings.ToValidUTF8(text[:size], "?"))
		}
	}
	return pieces
}

// What is sampled of a long text stands for the whole.
func TestSampleError(t *testing.T) {
	var sum, worst float64
	pieces := corpus(t, 80<<10)
	for _, text := range pieces {
		quoted, _ := json.Marshal(text)
		h := mustScan(t, Chat, `{"model":"m","messages":[{"role":"user","content":`+string(quoted)+`}]}`)
		got := h.Text - framePerMessage - frameReply
		var full estimate.Counter
		full.WriteJSON(quoted[1 : len(quoted)-1])
		full.Break()
		off := math.Abs(float64(got)/float64(full.Tokens()) - 1)
		sum, worst = sum+off, max(worst, off)
		if h.Bound < sluice.Tokens(len(text)) {
			t.Errorf("got bound %d of %d bytes", h.Bound, len(text))
		}
	}
	if n := len(pieces); n < 10 || sum/float64(n) > .03 || worst > .1 {
		t.Errorf("%d pieces are off by %.1f %% on average and %.1f %% at most", n, 100*sum/float64(n), 100*worst)
	}
}

// Nothing depends on where the windows fall: short texts, escapes and characters
// that they cut.
func TestSampleEdges(t *testing.T) {
	for name, text := range map[string]string{
		"escapes":     strings.Repeat(`\\`, 40_000),
		"quotes":      strings.Repeat(`\"a`, 30_000),
		"code points": strings.Repeat(`\u00e9\ud83d\ude00`, 5_000),
		"characters":  strings.Repeat("網關", 20_000),
		"one word":    strings.Repeat("x", 80_000),
	} {
		h := mustScan(t, Chat, `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
		var full estimate.Counter
		full.WriteJSON([]byte(text))
		full.Break()
		got, want := float64(h.Text), float64(full.Tokens())
		if math.Abs(got/want-1) > .05 {
			t.Errorf("%s: got %.0f, a full count is %.0f", name, got, want)
		}
	}
	// Texts so short and so far apart that no window meets one.
	filler := strings.Repeat(" ", sampleStride)
	var body strings.Builder
	body.WriteString(`{"model":"m","messages":[` + strings.Repeat(" ", sampleWindow))
	for range 20 {
		body.WriteString(filler[:sampleStride-len(body.String())%sampleStride] + strings.Repeat(" ", sampleWindow) + `{"role":"user","content":"twelve bytes"},`)
	}
	h := mustScan(t, Chat, body.String()+`{}]}`)
	if per := h.Text/21 - framePerMessage; per < 2 || per > 12 {
		t.Errorf("got %d tokens for twelve bytes", per)
	}
}
