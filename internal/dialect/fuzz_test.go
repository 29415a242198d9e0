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
)

// FuzzStream holds a stream's translation, of any pair, to what must hold of any
// bytes: it does not depend on how they are cut, nor on the short way for events that
// are alike; and what the client gets is of its dialect.
func FuzzStream(f *testing.F) {
	for i := range pairs() {
		for _, file := range transcripts(f) {
			f.Add(byte(i), file)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, stream []byte) {
		all := pairs()
		p := all[int(which)%len(all)]
		from, to := p.backend.codec.op, p.client.codec.op
		o := StreamOptions{Told: true, Now: made, ID: "id1", Model: "m", Usage: func() sluice.Usage { return sluice.Usage{Input: 1, Output: 1} }}
		out, err := run(from, to, bytes.NewReader(stream), o, false)
		for _, slow := range []bool{false, true} {
			again, aerr := run(from, to, iotest.OneByteReader(bytes.NewReader(stream)), o, slow)
			if !bytes.Equal(out, again) || (err == nil) != (aerr == nil) || errors.Is(err, io.EOF) != errors.Is(aerr, io.EOF) {
				t.Fatalf("%v, read another way (slow: %v), is other: %v, %v\n%q\n%q", p, slow, err, aerr, out, again)
			}
		}
		wellFormed(t, p.client, out)
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

// FuzzRequest: what is accepted translates to what the target's scan accepts, for
// every pair, and nothing panics.
func FuzzRequest(f *testing.F) {
	for i, p := range pairs() {
		for _, eg := range p.client.examples {
			f.Add(byte(i), []byte(eg.body))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		all := pairs()
		p := all[int(which)%len(all)]
		h, err := scan(p.client.codec.op, body)
		if err != nil {
			return
		}
		tr := Translate(h, body, nil, p.backend.codec.op, Options{Warn: true, MaxOutput: 100})
		if tr.Err != nil {
			if tr.Err.Kind != sluice.KindInvalid {
				t.Fatalf("%v: refused as %v: %v", p, tr.Err.Kind, tr.Err)
			}
			return
		}
		if tr.Head == nil || tr.Head.Stream != h.Stream || tr.Head.Model != h.Model {
			t.Fatalf("%v: %s became %s", p, body, tr.Body)
		}
	})
}
