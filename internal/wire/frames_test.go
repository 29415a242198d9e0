package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func told(name, payload string) []byte {
	return AppendFrame(nil, []FrameHeader{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}}, []byte(payload))
}

// The test vectors of the format: what is whole is read, what is not is refused for
// its checksum. They have no type, which the events of a service must have.
func TestFrameVectors(t *testing.T) {
	for _, tt := range []struct{ name, frame, want string }{
		{"empty", "000000100000000005c248eb7d98c8ff", "it is no event"},
		{"payload", "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936", "it is no event"},
		{"one header", "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1", "it is no event"},
		{"a number", "0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0", "it is no event"},
		{"every kind of header", "000000cc000000af0fae64ca0a6576656e742d74797065040000a00c0c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0a626f6f6c2066616c73650109626f6f6c207472756500046279746502cf08627974652062756606001449276d2061206c6974746c6520746561706f74210974696d657374616d70080000000000845fed05696e74313603002a05696e7436340500000000028757b20475756964090102030405060708090a0b0c0d0e0f107b27666f6f273a27626172277daba5f10c", "it is no event"},
		{"length", "0000003e0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1", "checksum of its lengths"},
		{"length of the headers", "0000003d0000002107fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1", "checksum of its lengths"},
		{"headers", "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b61666f6f273a27626172277d8d9c08b1", "its checksum"},
		{"of the payload", "0000001d00000000fd528c5a5b27666f6f273a27626172277dc3653936", "its checksum"},
	} {
		b, err := hex.DecodeString(tt.frame)
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewFrames(Converse, bytes.NewReader(b), 0).Next()
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	one := AppendFrame(nil, []FrameHeader{{"content-type", "application/json"}}, []byte("{'foo':'bar'}"))
	if got := hex.EncodeToString(one); got != "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1" {
		t.Errorf("written: %s", got)
	}
}

func TestFrames(t *testing.T) {
	exception := func(kind, payload string) []byte {
		return AppendFrame(nil, []FrameHeader{{":exception-type", kind}, {":message-type", "exception"}}, []byte(payload))
	}
	for _, tt := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"event", told("messageStart", `{"role":"assistant"}`), "event: messageStart\ndata: {\"role\":\"assistant\"}\n\n"},
		{"padded", told("contentBlockDelta", `{"delta":{"text":"a"},"p":"abcXYZ01"}`), "event: contentBlockDelta\ndata: {\"delta\":{\"text\":\"a\"}}\n\n"},
		{"no padding", told("x", `{"delta":{"text":",\"p\":\"ab"}}`), "event: x\ndata: {\"delta\":{\"text\":\",\\\"p\\\":\\\"ab\"}}\n\n"},
		{"padding of another kind", told("x", `{"a":1,"p":"a b"}`), "event: x\ndata: {\"a\":1,\"p\":\"a b\"}\n\n"},
		{"lines", told("x", "{\n\"a\":1}"), "event: x\ndata: {\ndata: \"a\":1}\n\n"},
		{"exception", exception("throttlingException", `{"message":"slow \"down\""}`), `event: error` + "\n" + `data: {"error":{"type":"throttlingException","message":"slow \"down\""}}` + "\n\n"},
		{"exception of no words", exception("internalServerException", ""), `event: error` + "\n" + `data: {"error":{"type":"internalServerException","message":""}}` + "\n\n"},
		{
			"error", AppendFrame(nil, []FrameHeader{{":message-type", "error"}, {":error-code", "Bad"}, {":error-message", "it is"}}, nil),
			`event: error` + "\n" + `data: {"error":{"type":"Bad","message":"it is"}}` + "\n\n",
		},
	} {
		ev, err := NewFrames(Converse, bytes.NewReader(tt.frame), 0).Next()
		if err != nil || string(ev.Raw) != tt.want {
			t.Errorf("%s: got %q, %v", tt.name, ev.Raw, err)
		}
	}
}

// A stream that ends inside of a frame is cut, wherever that is.
func TestFramesCut(t *testing.T) {
	whole := append(told("a", `{"x":1}`), told("b", `{"y":2}`)...)
	first := len(told("a", `{"x":1}`))
	for n := range len(whole) {
		f := NewFrames(Converse, bytes.NewReader(whole[:n]), 0)
		var err error
		seen := 0
		for ; err == nil; seen++ {
			_, err = f.Next()
		}
		want := ErrUnterminated
		if n == 0 || n == first {
			want = io.EOF
		}
		if err != want || seen-1 != n/first || !Framing(err) {
			t.Fatalf("cut at %d: %v after %d", n, err, seen-1)
		}
	}
	cause := errors.New("reset")
	f := NewFrames(Converse, io.MultiReader(bytes.NewReader(whole[:first+3]), iotest.ErrReader(cause)), 0)
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(); err != cause || Framing(err) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestFramesBounded(t *testing.T) {
	large := told("a", `{"text":"`+strings.Repeat("x", 5000)+`"}`)
	if _, err := NewFrames(Converse, bytes.NewReader(large), 4096).Next(); err != ErrEventTooLarge {
		t.Errorf("got %v", err)
	}
	if ev, err := NewFrames(Converse, bytes.NewReader(large), len(large)).Next(); err != nil || len(ev.Data) != 5011 {
		t.Errorf("at the bound: %d bytes, %v", len(ev.Data), err)
	}
	long := AppendFrame(nil, nil, make([]byte, 600<<20>>10)) // a length that nothing follows grows no buffer
	f := NewFrames(Converse, iotest.DataErrReader(bytes.NewReader(long[:prelude])), 1<<30)
	if _, err := f.Next(); err != ErrUnterminated || len(f.buf) > 2*firstBuffer {
		t.Errorf("got %v with a buffer of %d", err, len(f.buf))
	}
}

// However a stream is cut into reads, its events are the same; a byte that is changed
// anywhere is seen before its frame is.
func TestFramesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []string
		var ends []int
		for i := range rapid.IntRange(1, 6).Draw(t, "frames") {
			payload := `{"text":"` + strings.Repeat("é", rapid.IntRange(0, 3000).Draw(t, "size")) + `"}`
			stream = append(stream, told("e"+string(rune('0'+i)), payload)...)
			want, ends = append(want, payload), append(ends, len(stream))
		}
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream)), iotest.HalfReader(bytes.NewReader(stream))} {
			f := NewFrames(Converse, r, 0)
			for _, w := range want {
				if ev, err := f.Next(); err != nil || string(ev.Data) != w {
					t.Fatalf("got %q, %v", ev.Data, err)
				}
			}
			if _, err := f.Next(); err != io.EOF || f.Buffered() != 0 {
				t.Fatalf("got %v at the end", err)
			}
		}
		at := rapid.IntRange(0, len(stream)-1).Draw(t, "changed")
		bad := bytes.Clone(stream)
		bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		f := NewFrames(Converse, bytes.NewReader(bad), 0)
		for i := range want {
			_, err := f.Next()
			if at >= ends[i] != (err == nil) {
				t.Fatalf("byte %d of %v: frame %d gave %v", at, ends, i, err)
			}
			if err != nil {
				break
			}
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(told("messageStart", `{"role":"assistant"}`))
	f.Add(AppendFrame(nil, []FrameHeader{{":exception-type", "x"}, {":message-type", "exception"}}, []byte(`{"message":1}`)))
	f.Add(append(told("a", `{"a":1,"p":"x"}`), 0, 0, 0, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		src := NewFrames(Converse, bytes.NewReader(b), 1<<16)
		tap := NewTap(Converse, TapOptions{})
		for {
			ev, err := src.Next()
			if err != nil {
				if !Framing(err) {
					t.Fatalf("an error of nobody: %v", err)
				}
				if s := tap.End(err); s.Err == nil && tap.FinishReason() == "" && !tap.failed {
					t.Fatalf("success without a stop: %v", err)
				}
				return
			}
			if len(ev.Raw) > 1<<17 {
				t.Fatalf("an event of %d bytes", len(ev.Raw))
			}
			back, err := NewEvents(bytes.NewReader(ev.Raw), 0).Next()
			if err != nil || !bytes.Equal(back.Raw, ev.Raw) {
				t.Fatalf("%q is not one event: %v", ev.Raw, err)
			}
			if s := tap.Event(ev); s.Terminal || s.Err != nil {
				return
			}
		}
	})
}

// Models that are called in their own dialect have its events in the frames.
func TestFramesOfChunks(t *testing.T) {
	chunk := func(data string) []byte {
		return told("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`","p":"abc"}`)
	}
	stop := AppendFrame(nil, []FrameHeader{{":message-type", "exception"}, {":exception-type", "throttlingException"}}, []byte(`{"message":"slow"}`))
	f := NewFrames(Messages, bytes.NewReader(bytes.Join([][]byte{chunk(`{"type":"message_stop","x":1}`), stop, told("chunk", `{"bytes":"!"}`)}, nil)), 0)
	for _, want := range []string{
		"event: message_stop\ndata: {\"type\":\"message_stop\",\"x\":1}\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n",
	} {
		if ev, err := f.Next(); err != nil || string(ev.Raw) != want {
			t.Errorf("got %q, %v, want %q", ev.Raw, err, want)
		}
	}
	if _, err := f.Next(); !errors.Is(err, ErrFrame) {
		t.Errorf("got %v", err)
	}
}
