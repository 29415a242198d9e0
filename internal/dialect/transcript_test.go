package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice"
	"sluice/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the transcripts' sent, client, usage and error")

// TestTranscripts runs testdata/*.txtar: one exchange each, as the dialects document
// them. The comment says what it shows, with a line "client: chat" or "client:
// messages", where the backend is not the other of these "backend: responses" or its
// like, where the policy is warn "warn", and where the client's path says that it
// streams "stream". Of the files
//
//	request   the client's body
//	sent      what the backend is sent; left out where the request is refused
//	upstream  the backend's stream, or its answer where none was asked for
//	client    what the client gets
//	usage     what is settled
//	error     why the request or the answer is refused; left out if it is not
//
// the first and the third are given, the others held to it; -update rewrites them.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(b)
			want := map[string]string{}
			for _, f := range a.Files {
				want[f.Name] = string(f.Data)
			}
			got := transcript(t, string(a.Comment), want["request"], want["upstream"])
			if *update {
				rewrite(t, name, a, want, got)
				return
			}
			for _, part := range []string{"sent", "client", "usage", "error"} {
				if d := cmp.Diff(want[part], got[part]); d != "" {
					t.Errorf("%s: %s", part, d)
				}
			}
		})
	}
}

// transcript is what becomes of one exchange.
func transcript(t *testing.T, comment, request, upstream string) map[string]string {
	op, to := opOf(t, comment, "client: ", wire.Chat), wire.Chat
	if op == wire.Chat {
		to = wire.Messages
	}
	to = opOf(t, comment, "backend: ", to)
	got := map[string]string{}
	h, err := wire.ScanIn(op, []byte(request), wire.InPath{Model: "m", Stream: strings.Contains(comment, "\nstream\n")})
	if err != nil {
		t.Fatal(err)
	}
	tr := Translate(h, []byte(request), http.Header{}, to, Options{Warn: strings.Contains(comment, "\nwarn\n"), MaxOutput: 4096})
	if tr.Err != nil {
		got["error"] = tr.Err.Param + ": " + tr.Err.Msg + ": " + tr.Err.Hint + "\n"
		return got
	}
	got["sent"] = string(tr.Body) + "\n"
	if lost := tr.Report.Paths(); lost != "" {
		got["sent"] += "sluice-dropped: " + lost + "\n"
	}
	tap := wire.NewTap(tr.Op, wire.TapOptions{})
	usage := func() sluice.Usage { u, _ := tap.Partial(); return u }
	var out []byte
	if h.Stream {
		out, err = tapped(tap, NewStream(tr.Op, op, StreamOptions{Usage: usage, Told: h.IncludeUsage, Now: made, Echo: tr.Echo}), strings.NewReader(upstream))
	} else if out, err = tap.Body([]byte(upstream)); err == nil {
		out, err = Whole(tr.Op, op, out, StreamOptions{Usage: usage, Now: made, Echo: tr.Echo})
		out = append(out, '\n')
	}
	got["client"] = string(out)
	if err != nil {
		e := sluice.AsError(err)
		got["error"] = fmt.Sprintf("%v: %s\n", e.Reason, e.Msg)
	}
	u, ok := tap.Usage()
	if !ok {
		u, _ = tap.Partial()
	}
	b, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	got["usage"] = string(b) + "\n"
	return got
}

// opOf is the operation that a line of the comment names.
func opOf(t *testing.T, comment, line string, other wire.Operation) wire.Operation {
	_, word, ok := strings.Cut("\n"+comment, "\n"+line)
	if !ok {
		return other
	}
	word, _, _ = strings.Cut(word, "\n")
	for _, c := range codecs {
		if c.op.String() == strings.TrimSpace(word) {
			return c.op
		}
	}
	t.Fatalf("%s%s is no operation", line, word)
	return other
}

// tapped moves a stream through tap and translation.
func tapped(tap *wire.Tap, s *Stream, r io.Reader) (out []byte, err error) {
	events := wire.NewEvents(r, 0)
	for {
		ev, err := events.Next()
		if err != nil {
			if step := tap.End(err); step.Err != nil {
				return out, step.Err
			}
			more, err := s.End()
			return append(out, more...), err
		}
		step := tap.Event(ev)
		if step.Err != nil {
			return out, step.Err
		}
		more, terr := s.Event(&ev, step.Terminal)
		if out = append(out, more...); terr != nil || step.Terminal {
			return out, errorOrNil(terr)
		}
	}
}

func errorOrNil(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func rewrite(t *testing.T, name string, a *txtar.Archive, have, got map[string]string) {
	out := &txtar.Archive{Comment: a.Comment}
	for _, part := range []string{"request", "sent", "upstream", "client", "usage", "error"} {
		text := got[part]
		if part == "request" || part == "upstream" {
			text = have[part]
		}
		if text != "" {
			out.Files = append(out.Files, txtar.File{Name: part, Data: []byte(text)})
		}
	}
	if err := os.WriteFile(name, bytes.TrimRight(txtar.Format(out), " "), 0o644); err != nil {
		t.Fatal(err)
	}
}
