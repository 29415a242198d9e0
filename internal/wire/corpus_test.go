package wire

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice"
)

var update = flag.Bool("update", false, "rewrite what the corpora want")

// TestCorpus runs testdata/tap/*.txtar. The comment holds prose and lines
// "op: NAME", "strip: usage|continuous", "input: N", "crlf". The section upstream is
// the answer (stream) or body is an answer that was not streamed; client is what
// the client gets, result what the tap says. With -update they are rewritten: read
// the difference.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/tap/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpora: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, chunk := range [][]int{{1 << 20}, {1}, {3, 11}} {
				runCase(t, a, chunk)
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func section(a *txtar.Archive, name string) *[]byte {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i].Data
		}
	}
	if name == "client" || name == "result" {
		a.Files = append(a.Files, txtar.File{Name: name})
		return &a.Files[len(a.Files)-1].Data
	}
	return nil
}

func runCase(t *testing.T, a *txtar.Archive, sizes []int) {
	t.Helper()
	op, o, crlf := Chat, TapOptions{}, false
	for line := range strings.Lines(string(a.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "op":
			for i := range Operation(NumOperations) {
				if i.String() == value {
					op = i
				}
			}
		case "strip":
			o.StripUsage, o.StripContinuous = value == "usage", value == "continuous"
		case "input":
			fmt.Sscan(value, &o.Input)
		case "crlf":
			crlf = true
		}
	}
	tap := NewTap(op, o)
	var client []byte
	var result strings.Builder
	if body := section(a, "body"); body != nil {
		out, err := tap.Body(*body)
		client = out
		writeErr(&result, err)
	} else {
		stream := string(*section(a, "upstream"))
		stream = strings.ReplaceAll(stream, "<EOF>\n", "")
		if crlf {
			stream = strings.ReplaceAll(stream, "\n", "\r\n")
		}
		client = pump(tap, stream, sizes, &result)
		if crlf {
			client = bytes.ReplaceAll(client, []byte("\r\n"), []byte("\n"))
		}
	}
	describe(&result, tap)
	for _, side := range [...][2]string{{"client", string(client)}, {"result", result.String()}} {
		name, got := side[0], side[1]
		want := section(a, name)
		if *update {
			*want = []byte(got)
		} else if diff := cmp.Diff(string(*want), got); diff != "" {
			t.Errorf("chunks %v, %s (-want +got):\n%s", sizes, name, diff)
		}
	}
}

// pump relays a stream as the exchange does, but holds nothing back.
func pump(tap *Tap, stream string, sizes []int, result *strings.Builder) (client []byte) {
	events := NewEvents(&chunks{s: stream, sizes: sizes}, 0)
	for n := 0; ; n++ {
		ev, err := events.Next()
		if err != nil && err != ErrUnterminated {
			return finish(tap, err, client, result)
		}
		s := tap.Event(ev)
		client = append(client, s.Out...)
		if s.Content && !strings.Contains(result.String(), "content") {
			fmt.Fprintf(result, "content from event %d\n", n)
		}
		switch {
		case s.Err != nil:
			writeErr(result, s.Err)
			return append(client, errorEvent(tap, s.Err)...)
		case s.Terminal:
			fmt.Fprintf(result, "terminal at event %d\n", n)
			return client
		case err != nil:
			return finish(tap, err, client, result)
		}
	}
}

func finish(tap *Tap, cause error, client []byte, result *strings.Builder) []byte {
	s := tap.End(cause)
	client = append(client, s.Out...)
	if s.Err != nil {
		writeErr(result, s.Err)
		return append(client, errorEvent(tap, s.Err)...)
	}
	result.WriteString("terminal at the end\n")
	return client
}

func writeErr(w io.Writer, err error) {
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		fmt.Fprintf(w, "error %s %s: %s\n", e.Kind, e.Reason, e.Msg)
	}
}

func describe(w io.Writer, tap *Tap) {
	fmt.Fprintf(w, "finished=%v finish=%q model=%q delivered=%v\n", tap.Finished(), tap.FinishReason(), tap.ServedModel(), tap.Delivered() > 0)
	u, ok := tap.Usage()
	if ok {
		fmt.Fprintf(w, "usage %s\n", usageText(u))
	} else if u, ok = tap.Partial(); ok {
		fmt.Fprintf(w, "partial %s\n", usageText(u))
	} else {
		fmt.Fprintln(w, "no usage")
	}
}

// usageText prints the classes that are not zero.
func usageText(u sluice.Usage) string {
	var b strings.Builder
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"input", int64(u.Input)},
		{"cache_read", int64(u.CacheRead)},
		{"cache_write", int64(u.CacheWrite)},
		{"cache_write_1h", int64(u.CacheWrite1h)},
		{"audio_input", int64(u.AudioInput)},
		{"output", int64(u.Output)},
		{"reasoning", int64(u.Reasoning)},
		{"audio_output", int64(u.AudioOutput)},
		{"tool_calls", u.ToolCalls},
		{"web_searches", u.WebSearches},
	} {
		if c.n != 0 {
			fmt.Fprintf(&b, "%s=%d ", c.name, c.n)
		}
	}
	if u.ServiceTier != "" {
		fmt.Fprintf(&b, "tier=%s ", u.ServiceTier)
	}
	if u.Anomalous {
		b.WriteString("anomalous ")
	}
	return b.String() + u.Source.String()
}

func errorEvent(tap *Tap, e *sluice.Error) []byte {
	if tap.op == Responses {
		return ResponsesErrorEvent(e, "req_1", tap.Sequence())
	}
	return ErrorEvent(tap.op.Dialect(), e, "req_1")
}
