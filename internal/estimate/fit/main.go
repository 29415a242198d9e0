// Command fit fits the weights of package estimate to texts.
//
//	go run ./internal/estimate/fit [-out weights.txt] [-ridge R] [-unfitted KIND,…] FILE…
//
// A file's kind is the name of its directory. Within a kind every fourth file
// is held out: the fit never sees it, and the errors that are printed are those
// of the held-out files, on pieces of 2 KB and on whole files. The truth is the
// o200k vocabulary. Texts stay where they are; only weights are written.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"sluice/internal/estimate"
)

const pieceBytes = 2048

func main() {
	out := flag.String("out", "", "file to write the weights to; none if empty")
	ridge := flag.Float64("ridge", 1e-2, "pull of the prior on rare features")
	unfitted := flag.String("unfitted", "", "kinds, comma-separated, that are only reported on")
	flag.Parse()
	if err := run(*out, *ridge, strings.Split(*unfitted, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(out string, ridge float64, unfitted, paths []string) error {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return err
	}
	features := estimate.NewFeatures()
	train, test, err := load(codec, features, unfitted, paths)
	if err != nil {
		return err
	}
	names := features.Names()
	weights := solve(train, names, ridge)
	for i := range weights {
		weights[i] = float64(int(weights[i]*1024+0.5)) / 1024 // what the table can hold
	}
	report(test, weights)
	if out == "" {
		return nil
	}
	lines := make([]string, len(names))
	for i, n := range names {
		lines[i] = fmt.Sprintf("%s %d\n", n, int(weights[i]*1024+0.5))
	}
	slices.Sort(lines)
	return os.WriteFile(out, []byte(strings.Join(lines, "")), 0o644)
}

// text is a piece or a whole file: the features that occur in it, and how many
// tokens it truly has.
type text struct {
	kind  string
	whole bool
	ids   []uint16
	n     []float64
	truth float64
}

// load reads, cuts and counts the files.
func load(codec tokenizer.Codec, f estimate.Features, unfitted, paths []string) (train, test []text, err error) {
	slices.Sort(paths)
	seen := map[string]int{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		kind := filepath.Base(filepath.Dir(path))
		seen[kind]++
		into := &train
		if seen[kind]%4 == 0 || slices.Contains(unfitted, kind) {
			into = &test
		}
		total := 0.0
		for _, p := range pieces(strings.ToValidUTF8(string(b), "")) {
			n, err := codec.Count(p)
			if err != nil {
				return nil, nil, fmt.Errorf("count %s: %w", path, err)
			}
			if len(p) >= pieceBytes/2 && n > 0 {
				*into = append(*into, newText(f, kind, p, float64(n)))
			}
			total += float64(n)
		}
		if into == &test && total > 0 {
			t := newText(f, kind, string(b), total)
			t.whole = true
			test = append(test, t)
		}
	}
	return train, test, nil
}

func newText(f estimate.Features, kind, s string, truth float64) text {
	t := text{kind: kind, truth: truth}
	for i, n := range f.Histogram(s) {
		if n > 0 {
			t.ids = append(t.ids, uint16(i))
			t.n = append(t.n, float64(n))
		}
	}
	return t
}

// pieces cuts a text every pieceBytes, at a character's edge.
func pieces(s string) (out []string) {
	for len(s) > pieceBytes {
		n := pieceBytes
		for !utf8.RuneStart(s[n]) {
			n--
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return append(out, s)
}

func (t *text) estimate(w []float64) float64 {
	sum := 0.0
	for i, id := range t.ids {
		sum += w[id] * t.n[i]
	}
	return sum
}
