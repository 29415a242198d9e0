package transcripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/wire"
)

// The faults of reliability that lie in what a provider says, played on every
// provider's own transcripts: a fault is made of a stream that went well. A provider
// whose stream is not of text events has tests of its own.

// streamed are the transcripts of streams of events that one provider answered well.
func streamed(t *testing.T) (out []*transcript) {
	t.Helper()
	seen := map[string]bool{}
	for _, tr := range all(t) {
		head, body, _ := strings.Cut(tr.files["upstream"], "\n\n")
		if tr.answers != 1 || !strings.HasPrefix(head, "200") || !strings.Contains(head, "text/event-stream") || strings.Contains(body, "⟨close") ||
			strings.Contains(body, "⟨reset") || !strings.Contains(tr.files["outcome"], "attempt 1: completed") {
			continue
		}
		seen[strings.Split(tr.name, "/")[0]] = true
		out = append(out, tr)
	}
	if len(seen) < 14 {
		t.Errorf("only %d providers have a stream that went well", len(seen))
	}
	return out
}

// each runs a fault on each of those transcripts, in a subtest.
func each(t *testing.T, f func(t *testing.T, tr *transcript, events []string)) {
	t.Helper()
	for _, tr := range streamed(t) {
		t.Run(tr.name, func(t *testing.T) { f(t, tr, tr.events(t)) })
	}
}

// events are the events of its stream, without what comes between.
func (tr *transcript) events(t *testing.T) (out []string) {
	t.Helper()
	a, err := parseAnswer(tr.files["upstream"])
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, p := range a.parts {
		all = append(all, p.data...)
	}
	events := wire.NewEvents(bytes.NewReader(all), 8<<20)
	for {
		ev, err := events.Next()
		if err != nil {
			return out
		}
		if len(ev.Data) > 0 {
			out = append(out, string(ev.Raw))
		}
	}
}

// says plays the transcript with another stream.
func (tr *transcript) says(t *testing.T, events ...string) *result {
	t.Helper()
	return tr.run(t, func(a *answer) {
		a.parts = nil
		for _, e := range events {
			a.parts = append(a.parts, part{data: []byte(e)})
		}
	})
}

// last is the last entry of a result.
func (r *result) last(t *testing.T) *ledger.Entry {
	t.Helper()
	if len(r.entries) == 0 {
		t.Fatalf("nothing was settled: %s", r.client)
	}
	return &r.entries[len(r.entries)-1]
}

// want checks how it ended.
func (r *result) want(t *testing.T, o sluice.Outcome, why sluice.Reason) *ledger.Entry {
	t.Helper()
	e := r.last(t)
	if e.Outcome != o || e.Reason != why {
		t.Errorf("ended %v %q, want %v %q: %s", e.Outcome, e.Reason, o, why, r.client)
	}
	if o == sluice.Completed && e.Cost == 0 {
		t.Errorf("it cost nothing: %+v", e.Usage)
	}
	return e
}

// broken checks an answer that failed: before content its status says so, after it the
// stream is aborted with the reason in it, and never ends as a success does.
func (r *result) broken(t *testing.T, content bool, why sluice.Reason) {
	t.Helper()
	r.want(t, sluice.Failed, why)
	if content != (r.status == 200) || content != r.aborted || !strings.Contains(r.client, why.String()) {
		t.Errorf("after content %v the client got: %s", content, r.client)
	}
	for _, end := range []string{"[DONE]", "message_stop", "response.completed"} {
		if strings.Contains(string(r.body), end) {
			t.Errorf("a failure ends with %s", end)
		}
	}
}

// TestFault_U17_EveryProvider: an event that is not JSON.
func TestFault_U17_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		const junk = "data: {\"choices\":[{junk}]}\n\n"
		tr.says(t, junk).broken(t, false, sluice.UpstreamMalformed)
		res := tr.says(t, slices.Insert(slices.Clone(events), len(events)-1, junk)...)
		res.broken(t, true, sluice.UpstreamMalformed)
		if strings.Contains(res.client, "junk") {
			t.Error("what is not JSON reached the client")
		}
	})
}

// framed is what a stream's events mean, however they are framed.
func framed(stream []byte) (out []string) {
	events := wire.NewEvents(bytes.NewReader(stream), 8<<20)
	for {
		ev, err := events.Next()
		if err != nil {
			return out
		}
		if len(ev.Data) == 0 {
			continue
		}
		var compact bytes.Buffer
		if json.Compact(&compact, ev.Data) != nil {
			compact.Write(ev.Data)
		}
		out = append(out, fmt.Sprintf("%s %s", ev.Name, compact.Bytes()))
	}
}

// TestFault_U18_EveryProvider: line ends, byte order mark, fields, comments, several
// data lines.
func TestFault_U18_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		stream := strings.Join(events, "")
		plain := tr.says(t, stream)
		want, outcome := framed(plain.body), plain.outcome()
		for name, as := range map[string]string{
			"CRLF": strings.ReplaceAll(stream, "\n", "\r\n"), "CR": strings.ReplaceAll(stream, "\n", "\r"), "byte order mark": "\ufeff" + stream,
			"no space": strings.ReplaceAll(stream, "data: ", "data:"), "fields": strings.ReplaceAll(stream, "data: ", "id: 1\x00\nretry: 5\nnone\ndata: "),
			"lines": strings.ReplaceAll(stream, "data: {", "data: {\ndata: "), "comments": strings.ReplaceAll(stream, "data: ", ": note\ndata: "),
		} {
			res := tr.says(t, as)
			if d := cmp.Diff(want, framed(res.body)); d != "" {
				t.Errorf("%s: %s", name, d)
			}
			if d := cmp.Diff(outcome, res.outcome()); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	})
}

// TestFault_U19_EveryProvider: bytes that are no UTF-8.
func TestFault_U19_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		stream := strings.Join(events, "")
		if !strings.Contains(stream, "\"abc\"") {
			return
		}
		res := tr.says(t, strings.Replace(stream, "\"abc\"", "\"a\xe7\xbdc\"", 1))
		res.want(t, sluice.Completed, sluice.ReasonNone)
		if !utf8.Valid(res.body) || !strings.Contains(strings.ReplaceAll(string(res.body), "\ufffd\ufffd", "\ufffd"), "a\ufffdc") {
			t.Errorf("got %q", res.body)
		}
	})
}

// TestFault_U20_EveryProvider: an event beyond the bound.
func TestFault_U20_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		large := "data: {\"x\":\"" + strings.Repeat("x", wire.DefaultEventLimit) + "\"}\n\n"
		tr.says(t, large).broken(t, false, sluice.UpstreamTooLarge)
		tr.says(t, slices.Insert(slices.Clone(events), len(events)-1, large)...).broken(t, true, sluice.UpstreamTooLarge)
	})
}

// TestFault_U21_EveryProvider: an encoding that nobody asked for.
func TestFault_U21_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, _ []string) {
		for _, kind := range []string{"gzip", "br", "zstd"} {
			tr.run(t, func(a *answer) { a.header = append(slices.Clone(a.header), "Content-Encoding: "+kind) }).broken(t, false, sluice.UpstreamMalformed)
		}
	})
}
