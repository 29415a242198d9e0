package estimate

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tiktoken-go/tokenizer"
	"pgregory.net/rapid"

	"sluice"
)

// sample is a text and what the o200k vocabulary makes of it.
type sample struct {
	name  string
	text  []byte
	exact int
}

func samples(t testing.TB) []sample {
	t.Helper()
	a, err := txtar.ParseFile("testdata/samples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, f := range a.Files {
		name, count, _ := strings.Cut(f.Name, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out = append(out, sample{name, f.Data, n})
	}
	return out
}

func relative(got sluice.Tokens, want int) float64 { return float64(got)/float64(want) - 1 }

// TestSamples guards the weights on texts that no fit has seen. Half a kilobyte
// is little to be right about: long texts are in TestSources.
func TestSamples(t *testing.T) {
	sum := 0.0
	all := samples(t)
	for _, s := range all {
		rel := relative(Text(s.text), s.exact)
		sum += math.Abs(rel)
		if math.Abs(rel) > 0.25 {
			t.Errorf("%s: got %d, want %d (%+.1f %%)", s.name, Text(s.text), s.exact, 100*rel)
		}
	}
	if mean := sum / float64(len(all)); mean > 0.09 {
		t.Errorf("mean error is %.1f %%", 100*mean)
	}
}

func TestSamplesAreExact(t *testing.T) {
	codec := o200k(t)
	for _, s := range samples(t) {
		if got, err := codec.Count(string(s.text)); err != nil || got != s.exact {
			t.Errorf("%s: %d tokens (%v), the file says %d", s.name, got, err, s.exact)
		}
	}
}

// TestSources holds the error on Go's own sources and documents, in pieces of
// 2 KB.
func TestSources(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the vocabulary")
	}
	codec := o200k(t)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	n, sum, worst := 0, 0.0, 0.0
	for _, pattern := range []string{"src/net/http/*.go", "src/encoding/json/*.go", "src/runtime/*.md", "src/*.bash", "src/go/types/*.go"} {
		paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(goroot)), filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths[:min(len(paths), 6)] {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+2048 <= min(len(b), 16<<10); i += 2048 {
				p := b[i : i+2048]
				want, err := codec.Count(string(bytes.ToValidUTF8(p, nil)))
				if err != nil {
					t.Fatal(err)
				}
				rel := math.Abs(relative(Text(p), want))
				n, sum, worst = n+1, sum+rel, max(worst, rel)
			}
		}
	}
	if n == 0 {
		t.Skip("no sources in GOROOT")
	}
	t.Logf("%d pieces, mean error %.1f %%, worst %.1f %%", n, 100*sum/float64(n), 100*worst)
	if mean := sum / float64(n); mean > 0.06 || worst > 0.30 {
		t.Errorf("mean error %.1f %%, worst %.1f %%", 100*mean, 100*worst)
	}
}

func o200k(t testing.TB) tokenizer.Codec {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func TestEveryFeatureHasAWeight(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(weightText) {
		name, _, _ := strings.Cut(line, " ")
		known[name] = true
	}
	names := NewFeatures().Names()
	for _, n := range names {
		if !known[n] {
			t.Errorf("%s has no weight: run the fit again", n)
		}
	}
	if len(known) != len(names) {
		t.Errorf("%d weights for %d features", len(known), len(names))
	}
}

// genText makes text of every class, broken UTF-8 too.
var genText = rapid.Custom(func(t *rapid.T) []byte {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.StringN(0, 20, -1), rapid.StringOfN(rapid.RuneFrom([]rune("aeiouTHEnst 0123{}[]\",:-_\n\té")), 0, 20, -1),
		rapid.SampledFrom([]string{"привет", "ґава", "漢字かな", "한국어", "नमस्ते", "שלום", "مرحبا", "ไทย", "😀👩‍🚀", "────", "\xff", "\xe4\xb8", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}),
	), 0, 12).Draw(t, "parts")
	return []byte(strings.Join(parts, ""))
})

func TestChunkingMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genText.Draw(t, "text")
		var whole, cut Counter
		whole.Write(text)
		last := sluice.Tokens(0)
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			cut.Write(rest[:n])
			rest = rest[n:]
			if cut.Tokens() < last {
				t.Fatalf("the count fell from %d to %d", last, cut.Tokens())
			}
			last = cut.Tokens()
		}
		if whole != cut {
			t.Fatalf("whole %+v, cut %+v", whole, cut)
		}
		whole.Break()
		if whole.Bytes() != int64(len(text)) || int64(whole.Tokens()) > whole.Bytes() {
			t.Fatalf("%d bytes gave %d tokens of %d bytes", len(text), whole.Tokens(), whole.Bytes())
		}
		if (whole.Tokens() == 0) != (len(text) == 0) && strings.Trim(string(text), " \t\n\r") != "" {
			t.Fatalf("%q has %d tokens", text, whole.Tokens())
		}
	})
}

// TestHistogramSeesWhatTheCounterSees holds the fit to the counter.
func TestHistogramSeesWhatTheCounterSees(t *testing.T) {
	weight := map[string]int64{}
	for line := range strings.Lines(weightText) {
		name, w, _ := strings.Cut(strings.TrimSpace(line), " ")
		weight[name], _ = strconv.ParseInt(w, 10, 64)
	}
	f := NewFeatures()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(string(genText.Draw(t, "text")), "")
		sum := int64(0)
		for i, n := range f.Histogram(text) {
			sum += int64(n) * weight[f.Names()[i]]
		}
		var c Counter
		c.Write([]byte(text))
		if c.sum != sum {
			t.Fatalf("%q: the counter has %d, the histogram %d", text, c.sum, sum)
		}
	})
}

func TestWriteJSONCountsWhatTheStringSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(string(genText.Draw(t, "text")), "?")
		literal, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "ascii") {
			literal = escapeAll(text)
		}
		var plain, quoted Counter
		plain.Write([]byte(text))
		for rest := literal[1 : len(literal)-1]; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			quoted.WriteJSON(rest[:n])
			rest = rest[n:]
		}
		if plain != quoted {
			t.Fatalf("%q as %s: plain %+v, quoted %+v", text, literal, plain, quoted)
		}
	})
}

// escapeAll writes every character as \u, in UTF-16 units.
func escapeAll(s string) []byte {
	const digits = "0123456789aBcDeF"
	out := []byte{'"'}
	unit := func(u rune) {
		out = append(out, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	for _, r := range s {
		if r >= 0x10000 {
			unit(0xd800 + (r-0x10000)>>10)
			r = 0xdc00 + (r-0x10000)&0x3ff
		}
		unit(r)
	}
	return append(out, '"')
}

func TestWriteJSONOfBrokenEscapes(t *testing.T) {
	tests := []struct{ name, literal, text string }{
		{"high surrogate alone", `a\ud83db`, "a\ufffdb"},
		{"low surrogate alone", `a\ude00b`, "a\ufffdb"},
		{"two high ones", `\ud83d\ud83d\ude00`, "\ufffd😀"},
		{"high one and another escape", `\ud83d\n`, "\ufffd\n"},
		{"not hex", `\u00zz`, "\ufffdz"},
		{"cut off", `a\u12`, "a\ufffd"},
		{"cut off after the backslash", `a\`, "a"},
		{"high surrogate at the end", `a\ud83d`, "a\ufffd"},
		{"unknown escape", `\qa`, "qa"},
		{"the short ones", `\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t"},
		{"escape inside a character", "\xe4\xb8\\n", "\xe4\xb8\n"},
		{"no ASCII after the backslash", "\\é", "é"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got, want Counter
			got.WriteJSON([]byte(tt.literal))
			got.Break()
			want.Write([]byte(tt.text))
			want.Break()
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestBreakEndsAText(t *testing.T) {
	var c Counter
	c.Write([]byte("hello"))
	c.Break()
	c.Write([]byte("hello"))
	if got, want := c.sum, 2*textSum("hello"); got != want {
		t.Errorf("two texts weigh %d, want %d", got, want)
	}
	if one := textSum("hellohello"); one == c.sum {
		t.Error("a break makes no difference")
	}
}

func textSum(s string) int64 {
	var c Counter
	c.Write([]byte(s))
	return c.sum
}

// TestHostile bounds what text made to confuse can do: every estimate stays
// within the bytes, and none is zero.
func TestHostile(t *testing.T) {
	for name, unit := range map[string]string{
		"a": "a", "A": "A", "digits": "7", "blanks": " ", "newlines": "\n", "rulers": "-", "emoji": "😀", "private": "\U0010fffd", "nul": "\x00", "broken": "\xff",
	} {
		text := []byte(strings.Repeat(unit, 10_000))
		got := Text(text)
		if got < 0 || int(got) > len(text) {
			t.Errorf("%s: %d tokens in %d bytes", name, got, len(text))
		}
		if utf8.Valid(text) && got == 0 {
			t.Errorf("%s: no tokens in %d bytes", name, len(text))
		}
	}
}

func TestCounterAllocatesNothing(t *testing.T) {
	text := []byte("The quick brown fox: 12345, żółw, 漢字.\n")
	quoted := []byte(`The quick \"brown\" fox\n\ud83d\ude00`)
	var c Counter
	if n := testing.AllocsPerRun(100, func() {
		c.Write(text)
		c.WriteJSON(quoted)
		_ = c.Tokens()
		_ = Text(text)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCounter(f *testing.F) {
	f.Add([]byte(`a\ud83d\ude00 b`), 3)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		at = min(max(at, 0), len(b))
		var whole, cut, quoted Counter
		whole.Write(b)
		cut.Write(b[:at])
		cut.Write(b[at:])
		if whole != cut {
			t.Fatalf("cut at %d: whole %+v, cut %+v", at, whole, cut)
		}
		quoted.WriteJSON(b[:at])
		quoted.WriteJSON(b[at:])
		quoted.Break()
		if int64(quoted.Tokens()) > quoted.Bytes() || quoted.Bytes() > 3*int64(len(b))+3 {
			t.Fatalf("%d tokens, %d bytes of %d", quoted.Tokens(), quoted.Bytes(), len(b))
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for _, s := range samples(b) {
		text := bytes.Repeat(s.text, 1+64<<10/len(s.text))
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Text(text)
			}
		})
	}
}

func BenchmarkWriteJSON(b *testing.B) {
	literal := bytes.Repeat([]byte(`func main() {\n\tfmt.Println(\"hello, world\")\n}\n`), 1000)
	b.SetBytes(int64(len(literal)))
	for b.Loop() {
		var c Counter
		c.WriteJSON(literal)
	}
}
