package dialect

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/rogpeppe/go-internal/txtar"

	"sluice"
	"sluice/internal/wire"
)

// fuzzStream holds a stream's translation to what must hold of any bytes: it does
// not depend on how they are cut, nor on the short way for events that are alike;
// and what the client gets is of its dialect.
func fuzzStream(f *testing.F, from, to wire.Operation) {
	for _, file := range transcripts(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		o := StreamOptions{Told: true, Now: made, Usage: func() sluice.Usage { return sluice.Usage{Input: 1, Output: 1} }}
		out, err := run(from, to, bytes.NewReader(stream), o, false)
		for _, slow := range []bool{false, true} {
			again, aerr := run(from, to, iotest.OneByteReader(bytes.NewReader(stream)), o, slow)
			if !bytes.Equal(out, again) || (err == nil) != (aerr == nil) || errors.Is(err, io.EOF) != errors.Is(aerr, io.EOF) {
				t.Fatalf("read another way (slow: %v) it is other: %v, %v\n%q\n%q", slow, err, aerr, out, again)
			}
		}
		wellFormed(t, codecOf(to).dialect, out)
	})
}

// transcripts are the upstream streams of the corpus.
func transcripts(t testing.TB) (out [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(b).Files {
			if f.Name == "upstream" {
				out = append(out, f.Data)
			}
		}
	}
	return out
}

func FuzzStreamFromOpenAI(f *testing.F)    { fuzzStream(f, wire.Chat, wire.Messages) }
func FuzzStreamFromAnthropic(f *testing.F) { fuzzStream(f, wire.Messages, wire.Chat) }

// FuzzRequest: what is accepted translates to what the target's scan accepts, and
// nothing panics.
func FuzzRequest(f *testing.F) {
	for d, all := range examples {
		for _, eg := range all {
			f.Add(d == wire.OpenAI, []byte(eg.body))
		}
	}
	f.Fuzz(func(t *testing.T, fromOpenAI bool, body []byte) {
		op := wire.Messages
		if fromOpenAI {
			op = wire.Chat
		}
		h, err := wire.Scan(op, body)
		if err != nil {
			return
		}
		tr := Translate(h, body, nil, other(op.Dialect()), Options{Warn: true, MaxOutput: 100})
		if tr.Err != nil {
			if tr.Err.Kind != sluice.KindInvalid {
				t.Fatalf("refused as %v: %v", tr.Err.Kind, tr.Err)
			}
			return
		}
		if tr.Head == nil || tr.Head.Stream != h.Stream || tr.Head.Model != h.Model {
			t.Fatalf("%s became %s", body, tr.Body)
		}
	})
}
