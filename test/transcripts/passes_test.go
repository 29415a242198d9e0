package transcripts

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What nobody here has heard of, as a member of an object. What is inside of it is
// nobody's business, a null error least of all.
const unknownMember = `"x_unknown":{"a":[1,null,"é\u00e9"],"error":null,"usage":{"x":1}},`

// unknownEvent is an event that nobody here has heard of.
const unknownEvent = "event: novel\nid: 7\ndata: {\"novel\":[1,2.50,\"é\"]}\n\n"

// withMember puts a member first into each object that stands alone on a line.
func withMember(text, member string) string {
	text = strings.ReplaceAll(text, "data: {", "data: {"+member)
	if strings.HasPrefix(text, "{") {
		text = "{" + member + text[1:]
	}
	return text
}

// sameDialect are the transcripts in which client and backend speak one dialect, and
// all went well.
func sameDialect(t *testing.T) (out []*transcript) {
	t.Helper()
	for _, tr := range all(t) {
		asked, _, _ := strings.Cut(tr.files["request"], "\n")
		sent, _, _ := strings.Cut(tr.files["sent"], "\n")
		last := func(line string) string { return line[strings.LastIndex(line, "/")+1:] }
		if tr.answers == 1 && sent != "" && last(asked) == last(sent) && strings.Contains(tr.files["outcome"], "attempt 1: completed") {
			out = append(out, tr)
		}
	}
	if len(out) < 40 {
		t.Errorf("only %d transcripts stay in one dialect", len(out))
	}
	return out
}

// bodyOf is the body of a message as a transcript has it, its final line feed left
// out.
func bodyOf(message string) string {
	_, body, _ := strings.Cut(message, "\n\n")
	return strings.TrimSuffix(body, "\n")
}

// saying makes an answer say other text in one part for each run of n bytes, n random.
func saying(change func(string) string, seed uint64) func(*answer) {
	return func(a *answer) {
		var all []byte
		for _, p := range a.parts {
			all = append(all, p.data...)
		}
		a.parts = []part{{data: []byte(change(string(all)))}}
		rnd := rand.New(rand.NewPCG(seed, 1))
		a.cutAt(func() int { return 1 + rnd.IntN(60) })
	}
}

// Fields, events and headers that are not known arrive byte for byte, in both
// directions, however they are cut.
func TestUnknownPasses(t *testing.T) {
	for i, tr := range sameDialect(t) {
		t.Run(tr.name, func(t *testing.T) {
			stream := strings.Contains(tr.files["upstream"], "text/event-stream")
			change := func(text string) string {
				if !stream { // white space may stand before it
					return strings.Replace(text, "{", "{"+unknownMember, 1)
				}
				return unknownEvent + withMember(text, unknownMember)
			}
			given := tr.files["request"]
			head, body, _ := strings.Cut(given, "\n\n")
			tr.files["request"] = head + "\nX-Novel-Question: why\n\n" + withMember(body, unknownMember)
			res := tr.run(t, func(a *answer) {
				saying(change, uint64(i))(a)
				a.header = append(a.header, "X-Novel-Answer: because")
			})
			if d := cmp.Diff(change(bodyOf(tr.files["client"])), bodyOf(res.client)); d != "" {
				t.Errorf("the client: %s", d)
			}
			if d := cmp.Diff(withMember(bodyOf(tr.files["sent"]), unknownMember), bodyOf(res.sent[0])); d != "" {
				t.Errorf("the provider: %s", d)
			}
			if !strings.Contains(res.sent[0], "\nX-Novel-Question: why\n") || !strings.Contains(res.client, "\nX-Novel-Answer: because\n") {
				t.Errorf("headers that are not known stay behind: %s %s", res.sent[0], res.client)
			}
		})
	}
}

// A null error, which breaks client libraries, reaches no client.
func TestNullErrorIsTakenOut(t *testing.T) {
	for i, tr := range sameDialect(t) {
		if strings.HasPrefix(tr.name, "anthropic/") || !strings.Contains(tr.files["upstream"], "text/event-stream") {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			for _, change := range []func(string) string{
				func(s string) string { return withMember(s, `"error":null,`) },
				func(s string) string { return strings.ReplaceAll(s, "}\n\n", `, "error" : null}`+"\n\n") },
			} {
				res := tr.run(t, saying(change, uint64(i)))
				if d := cmp.Diff(tr.files["client"], res.client); d != "" {
					t.Error(d)
				}
				judge(t, tr, res)
			}
		})
	}
}

// The last event of a stream gets the blank line that it lacks.
func TestLastEventIsEnded(t *testing.T) {
	for i, tr := range streamed(t) {
		if tr.framed() {
			continue // its events are whole when their frames are
		}
		t.Run(tr.name, func(t *testing.T) {
			for _, cut := range []string{"\n", "\n\n"} {
				res := tr.run(t, saying(func(s string) string { return strings.TrimSuffix(s, cut) }, uint64(i)))
				if d := cmp.Diff(tr.files["client"], res.client); d != "" {
					t.Errorf("without %q: %s", cut, d)
				}
			}
		})
	}
}

// What the gateway says of itself is in its own headers alone: an answer has no other
// that the provider did not send.
func TestNoHeadersAreInvented(t *testing.T) {
	for _, tr := range sameDialect(t) {
		head, _, _ := strings.Cut(tr.files["client"], "\n\n")
		for _, line := range strings.Split(head, "\n")[1:] {
			name, _, _ := strings.Cut(line, ": ")
			if !strings.HasPrefix(name, "Sluice-") && !strings.Contains(tr.files["upstream"], http.CanonicalHeaderKey(name)+": ") {
				t.Errorf("%s: %s was not sent by the provider", tr.name, line)
			}
		}
	}
}
