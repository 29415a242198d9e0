package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

// body is one that a translation has made.
type body struct {
	Op   string          `json:"op"`   // whose it is
	Kind string          `json:"kind"` // request, answer or event
	From string          `json:"from"` // what it was made of
	Body json.RawMessage `json:"body"`
}

// TestCorpus makes bodies of all that is translated: for every pair the requests of
// every field, of the transcripts and of any shape, and answers of any shape, whole and
// streamed. Where SLUICE_DIALECT_CORPUS names a file they are written there, one a
// line: test/sdk holds them to the official clients' own types.
func TestCorpus(t *testing.T) {
	var all []body
	for _, p := range pairs() {
		all = append(all, p.requests(t)...)
		all = append(all, p.answers(t)...)
	}
	count := map[string]int{}
	var out bytes.Buffer
	for _, b := range all {
		count[b.Op+" "+b.Kind]++
		if err := json.NewEncoder(&out).Encode(b); err != nil {
			t.Errorf("%s: %v", b.From, err)
		}
	}
	for _, c := range codecs {
		if n := count[c.op.String()+" request"]; n < 200 {
			t.Errorf("only %d requests to %v", n, c.op)
		}
		for _, kind := range []string{"answer", "event"} {
			if n := count[c.op.String()+" "+kind]; c.parseRequest != nil && n < 80 {
				t.Errorf("only %d of kind %s for clients of %v", n, kind, c.op)
			}
		}
	}
	if path := os.Getenv("SLUICE_DIALECT_CORPUS"); path != "" {
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// asking is a client's request and where it is from.
type asking struct {
	from, body string
	header     http.Header
	stream     bool // where the path says so
}

// asked are requests of clients of one dialect.
func (p couple) asked(t *testing.T) (out []asking) {
	t.Helper()
	own := p.client
	for _, f := range slices.Sorted(maps.Keys(own.examples)) {
		out = append(out, asking{from: string(f), body: own.examples[f].body, header: own.examples[f].header})
	}
	for i, b := range own.nothing {
		out = append(out, asking{from: fmt.Sprintf("nothing %d", i), body: b})
	}
	for i := range 40 {
		r := genRequest.Example(i)
		for _, side := range []*rig{p.client, p.backend} {
			if side.keeps != nil {
				side.keeps(r)
			}
		}
		b := own.codec.emitRequest(nil, r, &reporter{from: own.codec, to: own.codec})
		out = append(out, asking{from: fmt.Sprintf("request %d", i), body: string(b), stream: r.Stream})
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		a := txtar.Parse(b)
		if opOf(t, string(a.Comment), "client: ", wire.Chat) == own.codec.op {
			out = append(out, asking{from: filepath.Base(name), body: string(a.Files[0].Data), stream: strings.Contains(string(a.Comment), "\nstream\n")})
		}
	}
	return out
}

// requests are what backends are sent, where they may be.
func (p couple) requests(t *testing.T) (out []body) {
	t.Helper()
	for _, a := range p.asked(t) {
		h, err := wire.ScanIn(p.client.codec.op, []byte(a.body), wire.InPath{Model: "m", Stream: a.stream})
		if err != nil {
			t.Fatalf("%v, %s: %v", p, a.from, err)
		}
		tr := Translate(h, []byte(a.body), a.header, p.backend.codec.op, Options{Warn: true, MaxOutput: 100})
		if tr.Err == nil {
			out = append(out, body{tr.Op.String(), "request", fmt.Sprintf("%v, %s", p, a.from), tr.Body})
		}
	}
	return out
}

// answers are what clients get, in one piece and streamed.
func (p couple) answers(t *testing.T) (out []body) {
	t.Helper()
	from, to := p.backend.codec.op, p.client.codec.op
	type given struct {
		answer *Answer
		stream []byte
	}
	of := rapid.Custom(func(t *rapid.T) given {
		a := genAnswer(p.backend).Draw(t, "answer")
		return given{a, p.backend.sent(t, a)}
	})
	many := rapid.Custom(func(t *rapid.T) given {
		a := genSeveral(p.backend).Draw(t, "answers")
		return given{a, interleaved(t, p.backend, a)}
	})
	for i := range 26 {
		g, name := of.Example(i), fmt.Sprintf("%v, answer %d", p, i)
		if i >= 20 {
			if !slices.Contains(told, from) || !slices.Contains(told, to) {
				break
			}
			g, name = many.Example(i), fmt.Sprintf("%v, answers %d", p, i)
		}
		o := StreamOptions{Told: true, Now: made, ID: "id1", Model: "m"}
		stream, err := run(from, to, bytes.NewReader(g.stream), o, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, data := range eventsOf(t, stream) {
			if string(data) != "[DONE]" {
				out = append(out, body{to.String(), "event", name, data})
			}
		}
		o.Usage = func() sluice.Usage { return g.answer.Usage }
		whole, err := Whole(from, to, p.backend.inOnePiece(g.answer), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, body{to.String(), "answer", name, whole})
	}
	return out
}
