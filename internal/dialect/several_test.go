package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/wire"
)

// told are the dialects whose clients are told several answers.
var told = []wire.Operation{wire.Chat, wire.GenerateContent}

// several is two or three answers of any shape as one.
func genSeveral(backend *rig) *rapid.Generator[*Answer] {
	return rapid.Custom(func(t *rapid.T) *Answer {
		a := genAnswer(backend).Draw(t, "answer 0")
		for i := range rapid.IntRange(1, 2).Draw(t, "others") {
			o := genAnswer(backend).Draw(t, fmt.Sprint("answer ", i+1))
			a.Others = append(a.Others, Said{o.Parts, o.Stop})
		}
		return a
	})
}

// interleaved is the stream of several answers: each as the rig sends it, with its own
// index, by turns in any order, and the figures and the terminal marker once, at the end.
func interleaved(t *rapid.T, backend *rig, a *Answer) []byte {
	var lists [][][]byte
	a.each(func(nth int, parts []Part, s Stop) {
		one := *a
		one.Parts, one.Stop, one.Others = parts, s, nil
		var list [][]byte
		for _, data := range eventsOf(t, backend.sent(t, &one)) {
			if data = renumbered(t, data, nth); data != nil {
				list = append(list, data)
			}
		}
		lists = append(lists, list)
	})
	var out []byte
	for {
		var left []int
		for i := range lists {
			if len(lists[i]) > 0 {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			break
		}
		i := rapid.SampledFrom(left).Draw(t, "whose turn")
		out = wire.AppendEvent(out, "", lists[i][0])
		lists[i] = lists[i][1:]
	}
	if backend.codec.op == wire.Chat {
		out = wire.AppendEvent(out, "", []byte("[DONE]"))
	}
	return out
}

// renumbered is an event with another index; nil of one that belongs to no answer.
func renumbered(t fataler, data []byte, nth int) []byte {
	if string(data) == "[DONE]" {
		return nil
	}
	var o obj
	decode(t, data, &o)
	for _, name := range []string{"choices", "candidates"} {
		list, _ := o[name].([]any)
		for _, c := range list {
			c.(obj)["index"] = nth
		}
		if list != nil && len(list) == 0 {
			return nil
		}
	}
	return compact(o)
}

// apart are the answers of a body or a stream, each by itself as if it were the only one,
// by its index.
func apart(t fataler, data []byte) map[string][]byte {
	var o obj
	decode(t, data, &o)
	out := map[string][]byte{}
	for _, name := range []string{"choices", "candidates"} {
		list, _ := o[name].([]any)
		for _, c := range list {
			nth := string(compact(c.(obj)["index"]))
			c.(obj)["index"] = 0
			one := obj{}
			maps.Copy(one, o)
			one[name] = []any{c}
			out[nth] = compact(one)
		}
	}
	return out
}

// TestSeveralAnswers puts several answers from chat to Gemini and back, whole and streamed,
// and wants each to be what it would be alone.
func TestSeveralAnswers(t *testing.T) {
	all := rigs()
	for _, from := range told {
		for _, to := range told {
			if from == to {
				continue
			}
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				backend, client := all[from], all[to]
				rapid.Check(t, func(t *rapid.T) {
					a := genSeveral(backend).Draw(t, "answers")
					o := StreamOptions{Told: true, Now: made, ID: "id1", Model: "m", Usage: func() sluice.Usage { return a.Usage }}
					stream, err := run(from, to, bytes.NewReader(interleaved(t, backend, a)), o, false)
					if err != nil {
						t.Fatal(err)
					}
					whole, err := Whole(from, to, backend.inOnePiece(a), o)
					if err != nil {
						t.Fatal(err)
					}
					wholes, streams := apart(t, whole), map[string][]byte{}
					var finishes []string
					for _, data := range eventsOf(t, stream) {
						if string(data) == "[DONE]" {
							continue
						}
						for nth, one := range apart(t, data) {
							streams[nth] = wire.AppendEvent(streams[nth], "", one)
							if bytes.Contains(one, []byte(`"finish_reason":"`)) || bytes.Contains(one, []byte(`"finishReason":"`)) {
								finishes = append(finishes, nth)
							}
						}
					}
					if n := 1 + len(a.Others); len(wholes) != n || len(streams) != n || len(finishes) != n {
						t.Fatalf("%d answers became %d whole, %d streamed with %v ends", n, len(wholes), len(streams), finishes)
					}
					a.each(func(nth int, parts []Part, s Stop) {
						one := *a
						one.Parts, one.Stop, one.Others = parts, s, nil
						alone, err := Whole(from, to, backend.inOnePiece(&one), o)
						if err != nil {
							t.Fatal(err)
						}
						key := fmt.Sprint(nth)
						if d := cmp.Diff(said1(client.whole(t, alone)), said1(client.whole(t, wholes[key]))); d != "" {
							t.Errorf("answer %d, alone and among others (-alone +among):\n%s", nth, d)
						}
						end := streams[key]
						if to == wire.Chat {
							end = wire.AppendEvent(end, "", []byte("[DONE]"))
						}
						if d := cmp.Diff(said1(client.whole(t, wholes[key])), said1(client.assemble(t, end))); d != "" {
							t.Errorf("answer %d (-whole +streamed):\n%s", nth, d)
						}
					})
				})
			})
		}
	}
}

// said1 is what of an assembled answer belongs to one of several: the figures are of all.
func said1(assembled any) obj {
	b, _ := json.Marshal(assembled)
	var o obj
	_ = json.Unmarshal(b, &o)
	for _, name := range []string{"Usage", "usage"} {
		delete(o, name)
	}
	return o
}

// Several answers that nobody can be told are an error and not the first of them.
func TestSeveralAnswersElsewhere(t *testing.T) {
	two := map[wire.Operation]struct{ whole, event string }{
		wire.Chat: {
			`{"id":"i","choices":[{"index":1,"message":{"content":"b"},"finish_reason":"stop"},{"index":0,"message":{"content":"a"},"finish_reason":"length"}]}`,
			`{"id":"i","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]",
		},
		wire.GenerateContent: {
			`{"responseId":"i","candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}`,
			`{"responseId":"i","candidates":[{"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`,
		},
	}
	o := StreamOptions{Now: made, Usage: func() sluice.Usage { return sluice.Usage{Input: 1, Output: 2} }}
	for from, in := range two {
		for _, c := range codecs {
			if c.op == from || c.parseRequest == nil {
				continue
			}
			got, err := Whole(from, c.op, []byte(in.whole), o)
			if (err == nil) != c.several {
				t.Errorf("%v to %v: %s, %v", from, c.op, got, err)
			}
			if _, err := run(from, c.op, strings.NewReader("data: "+in.event+"\n\n"), o, false); (err == nil) != c.several {
				t.Errorf("%v to %v, streamed: %v", from, c.op, err)
			}
			if !c.several {
				continue
			}
			for nth, want := range map[string][2]string{"0": {`"a"`, "length MAX_TOKENS"}, "1": {`"b"`, "stop STOP"}} {
				one := string(apart(t, got)[nth])
				finish := strings.Fields(want[1])
				if !strings.Contains(one, want[0]) || !strings.Contains(one, `"`+finish[0]+`"`) && !strings.Contains(one, `"`+finish[1]+`"`) {
					t.Errorf("answer %s of %v is %s", nth, c.op, one)
				}
			}
		}
	}
	for _, wrong := range []string{`{"choices":[{"index":128,"delta":{"content":"b"}}]}`, `{"choices":[{"index":-1,"delta":{"content":"b"}}]}`} {
		if _, err := run(wire.Chat, wire.GenerateContent, strings.NewReader("data: "+wrong+"\n\n"), o, false); err == nil {
			t.Errorf("%s is carried", wrong)
		}
	}
}

// TestSeveralAndSoundAreAskedFor looks at what requests for several answers, and with
// sound, become.
func TestSeveralAndSoundAreAskedFor(t *testing.T) {
	sound := func(s string) string {
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"input_audio","input_audio":{"data":"UklG","format":"` + s + `"}}]}]}`
	}
	blob := func(role, mime string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"` + role + `","parts":[{"inlineData":{"mimeType":"` + mime + `","data":"UklG"}}]},{"role":"user","parts":[{"text":"y"}]}]}`
	}
	for _, c := range []struct {
		from, to   wire.Operation
		body, want string // empty is refused
	}{
		{wire.Chat, wire.GenerateContent, chat + `,"n":8}`, `"generationConfig":{"candidateCount":8}`},
		{wire.Chat, wire.GenerateContent, chat + `,"n":9}`, ""},
		{wire.GenerateContent, wire.Chat, configured(`"candidateCount":3`), `"n":3`},
		{wire.Chat, wire.GenerateContent, sound("wav"), `{"inlineData":{"mimeType":"audio/wav","data":"UklG"}}`},
		{wire.Chat, wire.GenerateContent, sound("mp3"), `{"inlineData":{"mimeType":"audio/mp3","data":"UklG"}}`},
		{wire.Chat, wire.GenerateContent, sound("flac"), ""},
		{wire.Chat, wire.GenerateContent, strings.Replace(sound("wav"), `"role":"user"`, `"role":"system"`, 1), ""},
		{wire.GenerateContent, wire.Chat, blob("user", "audio/wav"), `{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}`},
		{wire.GenerateContent, wire.Chat, blob("user", "audio/mpeg"), `{"type":"input_audio","input_audio":{"data":"UklG","format":"mp3"}}`},
		{wire.GenerateContent, wire.Chat, blob("user", "audio/ogg"), ""},
		{wire.GenerateContent, wire.Chat, blob("model", "audio/wav"), ""},
		{wire.GenerateContent, wire.Messages, blob("user", "audio/wav"), ""},
		{wire.GenerateContent, wire.Responses, blob("user", "audio/wav"), ""},
		{wire.Chat, wire.Converse, sound("wav"), ""},
	} {
		tr := translateInto(t, c.from, c.to, c.body, nil, true)
		if refused := tr.Err != nil; refused != (c.want == "") || !strings.Contains(string(tr.Body), c.want) || !refused && len(tr.Report) > 0 {
			t.Errorf("%v to %v: %s became %s (%v, %v), want %q", c.from, c.to, c.body, tr.Body, tr.Err, tr.Report, c.want)
		}
	}
}
