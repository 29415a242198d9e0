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
// provider's own transcripts: a fault is made of a stream that went well. A stream of
// binary frames is told as the events that it means, and said in frames again.

// streamed are the transcripts of streams of events that one provider answered well.
func streamed(t *testing.T) (out []*transcript) {
	t.Helper()
	seen := map[string]bool{}
	for _, tr := range all(t) {
		head, body, _ := strings.Cut(tr.files["upstream"], "\n\n")
		if tr.answers != 1 || !strings.HasPrefix(head, "200") || !tr.framed() && !strings.Contains(head, "text/event-stream") || strings.Contains(body, "⟨close") ||
			strings.Contains(body, "⟨reset") || !strings.Contains(tr.files["outcome"], "attempt 1: completed") {
			continue
		}
		seen[strings.Split(tr.name, "/")[0]] = true
		out = append(out, tr)
	}
	if len(seen) < 15 {
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
	events := wire.NewSource(wire.Converse, tr.framed(), bytes.NewReader(all), 8<<20)
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

// framed reports a transcript whose provider streams in frames.
func (tr *transcript) framed() bool {
	return strings.Contains(tr.files["upstream"], "application/vnd.amazon.eventstream")
}

// says plays the transcript with another stream.
func (tr *transcript) says(t *testing.T, events ...string) *result {
	t.Helper()
	return tr.run(t, func(a *answer) {
		a.parts = nil
		for _, e := range events {
			a.parts = append(a.parts, part{data: tr.said(e)})
		}
	})
}

// said is an event as the provider sends it. One without a name is a piece of content
// where there are frames, which need one.
func (tr *transcript) said(event string) []byte {
	if !tr.framed() {
		return []byte(event)
	}
	name, data := "contentBlockDelta", event
	if rest, ok := strings.CutPrefix(event, "event: "); ok {
		name, data, _ = strings.Cut(rest, "\n")
	}
	return appendFrame(nil, "frame", name, strings.TrimSuffix(strings.TrimPrefix(data, "data: "), "\n\n"))
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
		if tr.framed() {
			return // TestFault_U18_Frames
		}
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

// TestFault_U18_Frames: what becomes of a stream of frames that are framed otherwise: a
// bit of any of them is another, one is cut short, or follows what is no frame.
func TestFault_U18_Frames(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		if !tr.framed() {
			return
		}
		for i, e := range events {
			frame := tr.said(e)
			at := (7*i + 3) % len(frame)
			for name, as := range map[string][]byte{"a bit": flipped(frame, at), "an end": frame[:len(frame)-1-at], "no frame": append([]byte("event: "), frame...)} {
				res := tr.run(t, func(a *answer) {
					a.parts = nil
					for _, before := range events[:i] {
						a.parts = append(a.parts, part{data: tr.said(before)})
					}
					a.parts = append(a.parts, part{data: as})
				})
				e := res.last(t)
				whole := i == len(events)-1 // the stop was told, and figures alone are missing
				broken := e.Reason == sluice.UpstreamMalformed || e.Reason == sluice.UpstreamTruncated
				if !broken && !whole || res.aborted != (res.status == 200 && e.Outcome != sluice.Completed) {
					t.Errorf("%s of frame %d: ended %v %q: %s", name, i, e.Outcome, e.Reason, res.client)
				}
				if e.Usage.Source == sluice.UsageReported {
					t.Errorf("%s of frame %d: settled at %+v", name, i, e.Usage)
				}
			}
		}
	})
}

func flipped(frame []byte, at int) []byte {
	frame = bytes.Clone(frame)
	frame[at] ^= 4
	return frame
}

// TestFault_U19_EveryProvider: bytes that are no UTF-8.
func TestFault_U19_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		at := slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, "\"abc\"") })
		if at < 0 {
			return
		}
		events[at] = strings.Replace(events[at], "\"abc\"", "\"a\xe7\xbdc\"", 1)
		res := tr.says(t, events...)
		res.want(t, sluice.Completed, sluice.ReasonNone)
		if !utf8.Valid(res.body) || !strings.Contains(strings.ReplaceAll(string(res.body), "\ufffd\ufffd", "\ufffd"), "a\ufffdc") {
			t.Errorf("got %q", res.body)
		}
	})
}

// TestFault_U20_EveryProvider: an event beyond the bound.
func TestFault_U20_EveryProvider(t *testing.T) {
	each(t, func(t *testing.T, tr *transcript, events []string) {
		large := "data: {\"x\":\"" + strings.Repeat("x", eventLimit) + "\"}\n\n"
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
