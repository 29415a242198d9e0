package answer_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/answer"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/quota"
	"sluice/internal/route"
)

// client keeps what it gets.
type client struct {
	head   *exchange.Head
	parts  [][]byte
	body   []byte
	broken error
}

func (c *client) Events(h *exchange.Head, p []byte) error {
	c.head = h
	c.parts = append(c.parts, bytes.Clone(p))
	return c.broken
}

func (c *client) Answer(h *exchange.Head, body []byte) error {
	c.head, c.body = h, bytes.Clone(body)
	return c.broken
}

func (c *client) Committed() bool { return c.head != nil }

func head() *exchange.Head {
	book, now, r := quota.NewBook(), time.Now(), quota.Reservation{}
	book.Open(now, &r, []quota.Claim{{Limits: []sluice.Limit{{Dimension: sluice.Concurrency, Amount: 1}}}})
	return &exchange.Head{
		Status: 200, Dropped: "max_tokens=5",
		Upstream: http.Header{"X-Request-Id": {"up-1"}, "Set-Cookie": {"a=b"}, "X-Ratelimit-Remaining-Requests": {"3"}},
		Grant:    engine.Grant{Policy: "v7", Backend: &route.Backend{ID: "gpu-a"}, Limits: book.Limits(now, &r, nil)},
	}
}

func TestStreamIsKeptAndReplayedAsItCame(t *testing.T) {
	to := &client{}
	r := answer.NewRecorder(to, 1<<20)
	event := "data: " + strings.Repeat("x", 900) + "\n\n"
	var sent strings.Builder
	for range 100 {
		if err := r.Events(head(), []byte(event)); err != nil {
			t.Fatal(err)
		}
		sent.WriteString(event)
	}
	if got := bytes.Join(to.parts, nil); string(got) != sent.String() {
		t.Error("the client got something else than was sent")
	}
	a, ok := r.Whole(&exchange.Result{})
	if !ok {
		t.Fatal("a whole answer is not kept")
	}
	want := &answer.Answer{
		Status: 200, Stream: true, Body: []byte(sent.String()), Backend: "gpu-a", Policy: "v7", Dropped: "max_tokens=5",
		Header: http.Header{"X-Request-Id": {"up-1"}},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	back, err := answer.Parse(a.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	again := &client{}
	if err := back.Replay(back.Head(), again); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(again.parts, nil); string(got) != sent.String() {
		t.Error("the replay is not byte-equal")
	}
	if len(again.parts) < 2 {
		t.Errorf("the replay came in %d parts, want several", len(again.parts))
	}
	for i, p := range again.parts {
		if !bytes.HasSuffix(p, []byte("\n\n")) || len(p) > 34<<10 {
			t.Errorf("part %d of %d bytes is not whole events of about 32 KiB", i, len(p))
		}
	}
	if again.head.Grant.Backend.ID != "gpu-a" || again.head.Status != 200 || again.head.Grant.Limits.Len() != 0 {
		t.Errorf("replayed with head %+v", again.head)
	}
}

func TestAnswerInOnePiece(t *testing.T) {
	r := answer.NewRecorder(&client{}, 10)
	if err := r.Answer(&exchange.Head{Status: 200, Type: "audio/mpeg"}, []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	a, ok := r.Whole(&exchange.Result{})
	if !ok || a.Stream || a.Type != "audio/mpeg" {
		t.Fatalf("kept %+v, %v", a, ok)
	}
	again := &client{}
	if err := a.Replay(a.Head(), again); err != nil || string(again.body) != "0123456789" || again.head.Type != "audio/mpeg" {
		t.Errorf("replayed %q with %+v, %v", again.body, again.head, err)
	}
	if again.head.Grant.Backend != nil {
		t.Error("an answer of no backend names one")
	}
}

func TestWhatIsNotWholeIsNotKept(t *testing.T) {
	failed := &exchange.Result{Err: &sluice.Error{Reason: sluice.UpstreamTruncated}}
	for name, test := range map[string]struct {
		to   *client
		send func(*answer.Recorder)
		res  *exchange.Result
		over bool
	}{
		"nothing came":         {send: func(*answer.Recorder) {}},
		"it failed":            {send: func(r *answer.Recorder) { r.Events(head(), []byte("data: a\n\n")) }, res: failed},
		"the client left":      {to: &client{broken: errors.New("gone")}, send: func(r *answer.Recorder) { r.Events(head(), []byte("data: a\n\n")) }},
		"it is too large":      {send: func(r *answer.Recorder) { r.Answer(head(), make([]byte, 101)) }, over: true},
		"together too large":   {send: func(r *answer.Recorder) { r.Events(head(), make([]byte, 60)); r.Events(head(), make([]byte, 60)) }, over: true},
		"large, and then less": {send: func(r *answer.Recorder) { r.Events(head(), make([]byte, 101)); r.Events(head(), make([]byte, 1)) }, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			to, res := test.to, test.res
			if to == nil {
				to = &client{}
			}
			if res == nil {
				res = &exchange.Result{}
			}
			r := answer.NewRecorder(to, 100)
			test.send(r)
			if a, ok := r.Whole(res); ok {
				t.Errorf("kept %+v", a)
			}
			if r.Over() != test.over {
				t.Errorf("Over is %v", r.Over())
			}
		})
	}
}

func TestEncodingIsOneForEachAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 12, 40)
		a := &answer.Answer{
			Status: rapid.IntRange(0, 999).Draw(t, "status"), Type: text.Draw(t, "type"), Stream: rapid.Bool().Draw(t, "stream"),
			Body: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body"), Backend: sluice.BackendID(text.Draw(t, "backend")),
			Policy: text.Draw(t, "policy"), Dropped: text.Draw(t, "dropped"),
		}
		if h := rapid.MapOfN(text, rapid.SliceOfN(text, 1, 3), 0, 4).Draw(t, "header"); len(h) > 0 {
			a.Header = h
		}
		b := a.Append([]byte("before"))[len("before"):]
		back, err := answer.Parse(bytes.Clone(b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, back, cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}

// FuzzParse sees that damaged records are refused or have one encoding, and cost no
// more than their size.
func FuzzParse(f *testing.F) {
	a := answer.Of(head(), true, []byte("data: a\n\n"))
	whole := a.Append(nil)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{1, 200, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := answer.Parse(bytes.Clone(b))
		if err != nil {
			return
		}
		if again := a.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%x is read and written again as %x", b, again)
		}
	})
}
