package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// chunks reads s in pieces of the given sizes, over and over.
type chunks struct {
	s     string
	sizes []int
	next  int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.s == "" {
		return 0, io.EOF
	}
	n := min(max(c.sizes[c.next%len(c.sizes)], 1), len(c.s), len(p))
	c.next++
	copy(p, c.s[:n])
	c.s = c.s[n:]
	return n, nil
}

type seen struct{ Name, Data, Raw string }

// collect reads all events; the rest is what ErrUnterminated gave.
func collect(r io.Reader, limit int) (events []seen, rest string, err error) {
	e := NewEvents(r, limit)
	for {
		ev, err := e.Next()
		s := seen{string(ev.Name), string(ev.Data), string(ev.Raw)}
		if ev.Data == nil {
			s.Data = "<nil>"
		}
		if err != nil {
			return events, s.Raw, err
		}
		events = append(events, s)
	}
}

// U18: what the format allows, cut in every way, gives the same events and bytes.
func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []seen
		rest         string
	}{
		{"lf", "data: a\n\ndata: b\n\n", []seen{{"", "a", "data: a\n\n"}, {"", "b", "data: b\n\n"}}, ""},
		{"crlf", "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n", []seen{{"", "a", "data: a\r\n\r\n"}, {"x", "b", "event: x\r\ndata: b\r\n\r\n"}}, ""},
		{"cr", "data: a\r\rdata: b\r\r", []seen{{"", "a", "data: a\r\r"}, {"", "b", "data: b\r\r"}}, ""},
		{"cr then crlf", "data: a\r\r\ndata: b\n\n", []seen{{"", "a", "data: a\r\r"}, {"", "b", "\ndata: b\n\n"}}, ""},
		{"byte order mark", "\ufeffdata: a\n\n", []seen{{"", "a", "\ufeffdata: a\n\n"}}, ""},
		{"comment", ": ping\n\n:\n\ndata: a\n\n", []seen{{"", "<nil>", ": ping\n\n"}, {"", "<nil>", ":\n\n"}, {"", "a", "data: a\n\n"}}, ""},
		{"blank lines", "\n\ndata: a\n\n", []seen{{"", "<nil>", "\n"}, {"", "<nil>", "\n"}, {"", "a", "data: a\n\n"}}, ""},
		{"lines", "data: a\ndata:b\ndata\ndata:  c\n\n", []seen{{"", "a\nb\n\n c", "data: a\ndata:b\ndata\ndata:  c\n\n"}}, ""},
		{"no space", "event:x\ndata:{}\n\n", []seen{{"x", "{}", "event:x\ndata:{}\n\n"}}, ""},
		{"empty data", "data:\n\n", []seen{{"", "", "data:\n\n"}}, ""},
		{"other fields", "id: 1\x00\nretry: 5\nfoo\ndata: a\n: c\nevent: y\nevent: z\n\n", []seen{{"z", "a", "id: 1\x00\nretry: 5\nfoo\ndata: a\n: c\nevent: y\nevent: z\n\n"}}, ""},
		{"characters", "data: h\u00e9 \u7f51\u5173 \U0001f600\n\n", []seen{{"", "h\u00e9 \u7f51\u5173 \U0001f600", "data: h\u00e9 \u7f51\u5173 \U0001f600\n\n"}}, ""},
		{"unterminated", "data: a\n\ndata: b\n", []seen{{"", "a", "data: a\n\n"}}, "data: b\n"},
		{"unterminated line", "data: a\n\ndata: b", []seen{{"", "a", "data: a\n\n"}}, "data: b"},
		{"crlf ends at cr", "data: a\r\n\r", []seen{{"", "a", "data: a\r\n\r"}}, ""},
		{"empty", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, sizes := range [][]int{{1}, {2}, {3, 1}, {1, 7}, {1 << 20}} {
				got, rest, err := collect(&chunks{s: tt.stream, sizes: sizes}, 0)
				if diff := cmp.Diff(got, tt.want); diff != "" {
					t.Errorf("chunks %v: %s", sizes, diff)
				}
				if rest != tt.rest {
					t.Errorf("chunks %v: got rest %q, want %q", sizes, rest, tt.rest)
				}
				if want := map[bool]error{true: io.EOF, false: ErrUnterminated}[tt.rest == ""]; err != want {
					t.Errorf("chunks %v: got %v, want %v", sizes, err, want)
				}
			}
		})
	}
}

// cS7: characters that arrive a byte at a time stay whole.
func TestEventsByteByByte(t *testing.T) {
	const stream = "data: {\"t\":\"😀网关\"}\n\ndata: [DONE]\n\n"
	got, _, err := collect(iotest.OneByteReader(strings.NewReader(stream)), 0)
	if err != io.EOF || len(got) != 2 || got[0].Raw+got[1].Raw != stream {
		t.Fatalf("got %q, %v", got, err)
	}
}

// An event comes as soon as its blank line has: a read more would block for ever.
func TestEventsAtOnce(t *testing.T) {
	for _, stream := range []string{"data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", ": ping\n\n"} {
		r := io.MultiReader(strings.NewReader(stream), readerFunc(func([]byte) (int, error) {
			t.Fatalf("%q: the event was complete, but more was read", stream)
			return 0, io.EOF
		}))
		if ev, err := NewEvents(r, 0).Next(); err != nil || string(ev.Raw) != stream {
			t.Errorf("%q: got %q, %v", stream, ev.Raw, err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// U20: an endless line costs no more memory than the bound.
func TestEventsTooLarge(t *testing.T) {
	read := 0
	endless := readerFunc(func(p []byte) (int, error) {
		for i := range p {
			p[i] = 'x'
		}
		read += len(p)
		return len(p), nil
	})
	e := NewEvents(endless, 1<<16)
	if _, err := e.Next(); err != ErrEventTooLarge {
		t.Fatalf("got %v", err)
	}
	if _, err := e.Next(); err != ErrEventTooLarge {
		t.Fatalf("got %v the second time", err)
	}
	if read > 1<<16 || len(e.buf) > 1<<16 {
		t.Errorf("read %d bytes into a buffer of %d", read, len(e.buf))
	}
	fits := "data: " + strings.Repeat("y", 1000) + "\n\n"
	if got, _, err := collect(strings.NewReader(fits+fits), len(fits)); err != io.EOF || len(got) != 2 {
		t.Errorf("an event as large as the bound: got %d, %v", len(got), err)
	}
}

// U12: a broken connection is told as such, after the events that came whole.
func TestEventsBroken(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
	got, _, err := collect(r, 0)
	if len(got) != 1 || err != broken {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAppendEvent(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"", "a", "data: a\n\n"},
		{"error", "a", "event: error\ndata: a\n\n"},
		{"", "a\n\ndata: [DONE]\r\nx\ry", "data: a\ndata: \ndata: data: [DONE]\ndata: x\ndata: y\n\n"},
		{"x\ndata: y", "a", "event: x\ndata: a\n\n"},
	} {
		if got := string(AppendEvent(nil, tt.name, []byte(tt.data))); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got, want := string(AppendComment(nil, "a\nb")), ": a\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// loop gives the same bytes for ever.
type loop struct {
	s  string
	at int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.s[l.at:])
	l.at = (l.at + n) % len(l.s)
	return n, nil
}

func TestEventsAllocs(t *testing.T) {
	e := NewEvents(&loop{s: chatChunk("hello") + ": ping\n\n"}, 0)
	got := testing.AllocsPerRun(1000, func() {
		if _, err := e.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations per event, want 0", got)
	}
}

func chatChunk(text string) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n", text)
}

func BenchmarkEvents(b *testing.B) {
	chunk := chatChunk("hello")
	e := NewEvents(&loop{s: chunk}, 0)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzEvents: however the stream is cut, the events are the same and their bytes
// are the stream.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "\r\r\n\n\r\n: x\r\revent: e\ndata\n\n", "\ufeffdata:x\n\nrest", "\r", "\r\n\r\n"} {
		f.Add([]byte(s), uint8(1), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b uint8) {
		whole, rest, err := collect(bytes.NewReader(stream), 0)
		all := rest
		for i := len(whole) - 1; i >= 0; i-- {
			all = whole[i].Raw + all
		}
		if all != string(stream) {
			t.Fatalf("got bytes %q, want %q", all, stream)
		}
		for _, sizes := range [][]int{{1}, {int(a), int(b)}} {
			got, gotRest, gotErr := collect(&chunks{s: string(stream), sizes: sizes}, 0)
			if diff := cmp.Diff(got, whole); diff != "" || gotRest != rest || gotErr != err {
				t.Fatalf("chunks %v: %s rest %q want %q, %v want %v", sizes, diff, gotRest, rest, gotErr, err)
			}
		}
	})
}

// What a large event needed is given up with it, so that a stream that lasts does not
// hold it.
func TestLargeEventsAreLetGo(t *testing.T) {
	large := "data: " + strings.Repeat("x", 3<<20) + "\n\n"
	e := NewEvents(strings.NewReader(large+"data: a\n\n"+large+"data: b\ndata: c\n\n"), 0)
	for _, want := range []int{3 << 20, 1, 3 << 20, 3} {
		ev, err := e.Next()
		if err != nil || len(ev.Data) != want {
			t.Fatalf("an event of %d bytes, %v; want %d", len(ev.Data), err, want)
		}
		if want == 3 && len(e.buf) > keptBuffer {
			t.Errorf("%d bytes are held for an event of %d", len(e.buf), want)
		}
	}
	frame := func(size int) []byte {
		return AppendFrame(nil, []FrameHeader{{Name: ":event-type", Value: "x"}, {Name: ":message-type", Value: "event"}}, []byte(`{"x":"`+strings.Repeat("x", size)+`"}`))
	}
	f := NewFrames(Converse, bytes.NewReader(slices.Concat(frame(3<<20), frame(1))), 0)
	for range 2 {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.buf) > keptBuffer || cap(f.out) > keptBuffer {
		t.Errorf("%d and %d bytes are held for a small frame", len(f.buf), cap(f.out))
	}
}
