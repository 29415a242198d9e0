package wire

import (
	"encoding/json"
	"math"
	"math/rand/v2"
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

// scanned is the estimate of a text, and what a full count makes of it.
func scanned(t *testing.T, text string) (got, full float64, h *Head) {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	h = mustScan(t, Chat, `{"model":"m","messages":[{"role":"user","content":`+string(quoted)+`}]}`)
	var c estimate.Counter
	c.WriteJSON(quoted[1 : len(quoted)-1])
	c.Break()
	return float64(h.Text - framePerMessage - frameReply), float64(c.Tokens()), h
}

// What is sampled of a long text stands for the whole. The texts are what they are on
// the day: the bounds are half as much again as they have been found to be.
func TestSampleError(t *testing.T) {
	for _, tt := range []struct {
		size            int
		average, atMost float64
	}{{40 << 10, .03, .12}, {80 << 10, .03, .12}, {400 << 10, .02, .06}} {
		var sum, worst float64
		pieces := corpus(t, tt.size)
		for _, text := range pieces {
			got, full, h := scanned(t, text)
			off := math.Abs(got/full - 1)
			sum, worst = sum+off, max(worst, off)
			if h.Bound < sluice.Tokens(len(text)) {
				t.Errorf("got bound %d of %d bytes", h.Bound, len(text))
			}
		}
		n := float64(len(pieces))
		t.Logf("%d pieces of %d KB are off by %.1f %% on average and %.1f %% at most", len(pieces), tt.size>>10, 100*sum/n, 100*worst)
		if n < 4 || sum/n > tt.average || worst > tt.atMost {
			t.Errorf("that is more than %.1f %% and %.1f %%", 100*tt.average, 100*tt.atMost)
		}
	}
}

// Texts of other kinds than sources and documents, each with what it may be off.
func TestSampleKinds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	some := func(n int, of ...string) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(of[random.IntN(len(of))])
		}
		return b.String()
	}
	words := strings.Fields("the water of a river that comes down from hills in spring is let through gate by gate while keepers write what they have seen")
	for i := range words {
		words[i] += " "
	}
	chinese := []string{"网关", "在调用", "上游之前", "读取", "整个", "请求体", "，", "预算", "的", "令牌"}
	logs := []string{"2026-11-29T10:00:00.123Z ", "INFO ", "WARN ", "request=4f1c ", "status=200 ", "took=12ms\n", "path=/v1/chat\n"}
	mixed := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(some(500+random.IntN(8000), words...))
			b.WriteString(some(500+random.IntN(8000), chinese...))
			b.WriteString(some(500+random.IntN(8000), logs...))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"prose": some(100<<10, words...), "chinese": some(100<<10, chinese...), "logs": some(100<<10, logs...),
		"blanks": strings.Repeat(" ", 100<<10), "hex": some(100<<10, "0", "3", "7", "a", "f"),
	} {
		if got, full, _ := scanned(t, text); math.Abs(got/max(full, float64(len(text)/sampleLeast))-1) > .05 {
			t.Errorf("%s: got %.0f, a full count is %.0f", name, got, full)
		}
	}
	for range 5 { // pages of one kind among pages of another
		if got, full, _ := scanned(t, mixed(400<<10)); math.Abs(got/full-1) > .1 {
			t.Errorf("mixed: got %.0f, a full count is %.0f", got, full)
		}
	}
}

// The worst that a text made for it can do: to be cheap where it is looked at. The
// estimate has its floor, and the bound does not depend on it.
func TestSampleFooled(t *testing.T) {
	head := len(`{"model":"m","messages":[{"role":"user","content":"`)
	for name, kinds := range map[string][2]byte{"dense between": {' ', '%'}, "cheap between": {'%', ' '}} {
		text := make([]byte, 200<<10)
		for i := range text {
			text[i] = kinds[1]
			if (head+i)%thinStride < sampleWindow {
				text[i] = kinds[0]
			} else if kinds[1] == '%' {
				text[i] = "%q7#Z@"[i%6]
			}
		}
		got, full, h := scanned(t, string(text))
		if got < float64(len(text)/sampleLeast) || got > float64(len(text)) {
			t.Errorf("%s: got %.0f of %d bytes, which a full count makes %.0f of", name, got, len(text), full)
		}
		if h.Bound < sluice.Tokens(len(text)) {
			t.Errorf("%s: the bound is %d, of %d bytes", name, h.Bound, len(text))
		}
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
	filler := strings.Repeat(" ", thinStride)
	var body strings.Builder
	body.WriteString(`{"model":"m","messages":[` + strings.Repeat(" ", sampleWindow))
	for range 20 {
		body.WriteString(filler[:thinStride-len(body.String())%thinStride] + strings.Repeat(" ", sampleWindow) + `{"role":"user","content":"twelve bytes"},`)
	}
	h := mustScan(t, Chat, body.String()+`{}]}`)
	if per := h.Text/21 - framePerMessage; per < 2 || per > 12 {
		t.Errorf("got %d tokens for twelve bytes", per)
	}
}
