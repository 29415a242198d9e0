package fakellm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// The endpoints beside text. Models whose names begin with gpt- tell tokens, as OpenAI's
// do; others are billed by image, second, character or search. Of the faults they know
// status, retry-after, delay and die-after.

// asides are these endpoints and what answers them.
var asides = map[string]func(*wish) (contentType string, body []byte){
	"/v1/images/generations": pictures, "/v1/images/edits": pictures, "/v1/images/variations": pictures,
	"/v1/audio/speech": voiced, "/v1/audio/transcriptions": heard, "/v1/audio/translations": heard,
	"/v1/moderations": judged, "/v1/rerank": ranked,
}

// wish is what was asked for of one of them.
type wish struct {
	model  string
	fields map[string]string // of a form, and the strings, numbers and truths of JSON
	texts  []string          // documents, or several inputs
	files  int               // bytes
	tokens func(string) sluice.Tokens
	stream bool
	told   sluice.Tokens // input
	output sluice.Tokens
}

func (w *wish) telling() bool { return strings.HasPrefix(w.model, "gpt-") }

func (s *Server) aside(w http.ResponseWriter, r *http.Request, answer func(*wish) (string, []byte)) {
	t := &turn{s: s, w: w, r: r, id: s.mint(), surface: surface(r.URL.Path)}
	t.headers()
	if !s.authorised(r) {
		t.refuse(&refusal{http.StatusUnauthorized, "", "invalid_api_key", "Incorrect API key provided"})
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		t.refuse(&refusal{http.StatusRequestEntityTooLarge, "", "", "the body is too large"})
		return
	}
	s.remember(r, raw)
	a, err := readWish(r.Header.Get("Content-Type"), raw)
	if err == nil && a.model == "" {
		err = fmt.Errorf("you must provide a model parameter")
	}
	if err != nil {
		t.refuse(&refusal{http.StatusBadRequest, "invalid_request_error", "", err.Error()})
		return
	}
	name, faults := splitModel(a.model)
	b, err := ParseBehaviour(faults)
	if _, known := s.lookup(name); err != nil || !known {
		t.refuse(&refusal{http.StatusNotFound, "invalid_request_error", "model_not_found", "The model does not exist"})
		return
	}
	time.Sleep(b.Delay)
	if b.Status >= 400 {
		if b.RetryAfter != "" {
			w.Header().Set("Retry-After", b.RetryAfter)
		}
		t.refuse(&refusal{b.Status, "", "", "a scripted fault"})
		return
	}
	a.model, a.tokens = name, func(text string) sluice.Tokens { return sluice.Tokens(s.count.text(text)) }
	kind, body := answer(a)
	e := s.book.open(Served{ID: t.requestID(), Model: name, Surface: string(t.surface), Stream: a.stream, Input: a.told, Output: a.output, At: t.began})
	s.book.update(e, func(e *Served) {
		e.End, e.Status, e.Billed, e.Reported, e.Generated, e.Sent = EndCompleted, http.StatusOK, true, true, a.output, a.output
	})
	defer s.book.close(e)
	w.Header().Set("Content-Type", kind)
	if b.DieAfter > 0 {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		s.book.update(e, func(e *Served) { e.End = EndFailed })
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

// readWish reads a body of either kind.
func readWish(contentType string, raw []byte) (*wish, error) {
	a := &wish{fields: map[string]string{}}
	kind, params, _ := mime.ParseMediaType(contentType)
	if kind != "multipart/form-data" {
		return a, a.readJSON(raw)
	}
	r := multipart.NewReader(bytes.NewReader(raw), params["boundary"])
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(p)
		if err != nil {
			return nil, err
		}
		if p.FileName() != "" {
			a.files += len(b)
		} else {
			a.fields[p.FormName()] = string(b)
		}
	}
	a.model, a.stream = a.fields["model"], a.fields["stream"] == "true"
	return a, nil
}

func (w *wish) readJSON(raw []byte) error {
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	for name, v := range in {
		if list, ok := v.([]any); ok {
			for _, x := range list {
				w.texts = append(w.texts, fmt.Sprint(x))
			}
			continue
		}
		w.fields[name] = fmt.Sprint(v)
	}
	w.model = w.fields["model"]
	w.stream = w.fields["stream"] == "true" || w.fields["stream_format"] == "sse"
	return nil
}

// n is how many are asked for.
func (w *wish) n() int {
	n, err := strconv.Atoi(w.fields["n"])
	if err != nil {
		return 1
	}
	return n
}

const imageTokens = 272

func pictures(w *wish) (string, []byte) {
	n := w.n()
	w.told, w.output = w.tokens(w.fields["prompt"])+sluice.Tokens(w.files/1000), sluice.Tokens(imageTokens*n)
	usage := obj{
		"input_tokens": w.told, "output_tokens": w.output, "total_tokens": w.told + w.output,
		"input_tokens_details": obj{"text_tokens": w.told, "image_tokens": 0},
	}
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG of " + w.fields["prompt"]))
	if w.stream {
		var b bytes.Buffer
		event(&b, obj{"type": "image_generation.partial_image", "partial_image_index": 0, "b64_json": picture})
		event(&b, obj{"type": "image_generation.completed", "b64_json": picture, "usage": usage})
		return "text/event-stream", b.Bytes()
	}
	o := obj{"created": 1, "data": repeated(n, obj{"b64_json": picture})}
	if w.telling() {
		o["usage"] = usage
	} else {
		w.told, w.output = 0, 0
	}
	return "application/json", marshal(o)
}

func repeated(n int, o obj) []obj {
	out := make([]obj, n)
	for i := range out {
		out[i] = o
	}
	return out
}

func event(b *bytes.Buffer, o obj) { fmt.Fprintf(b, "event: %s\ndata: %s\n\n", o["type"], marshal(o)) }

func voiced(w *wish) (string, []byte) {
	sound := bytes.Repeat([]byte{0xff, 0xfb, 0x90, 0x00}, 16*len(w.fields["input"])+1)
	if !w.stream {
		return "audio/mpeg", sound
	}
	w.told, w.output = w.tokens(w.fields["input"]), sluice.Tokens(len(w.fields["input"]))
	var b bytes.Buffer
	event(&b, obj{"type": "speech.audio.delta", "audio": base64.StdEncoding.EncodeToString(sound)})
	event(&b, obj{"type": "speech.audio.done", "usage": obj{"input_tokens": w.told, "output_tokens": w.output, "total_tokens": w.told + w.output}})
	return "text/event-stream", b.Bytes()
}

func heard(w *wish) (string, []byte) {
	const text = "What was said."
	seconds := w.files/4000 + 1
	usage := obj{"type": "duration", "seconds": seconds}
	if w.telling() {
		w.told, w.output = sluice.Tokens(10*seconds), w.tokens(text)
		usage = obj{
			"type": "tokens", "input_tokens": w.told, "output_tokens": w.output, "total_tokens": w.told + w.output,
			"input_token_details": obj{"text_tokens": 0, "audio_tokens": w.told},
		}
	}
	switch format := w.fields["response_format"]; {
	case w.stream:
		var b bytes.Buffer
		event(&b, obj{"type": "transcript.text.delta", "delta": text})
		event(&b, obj{"type": "transcript.text.done", "text": text, "usage": usage})
		return "text/event-stream", b.Bytes()
	case format == "text" || format == "srt" || format == "vtt":
		return "text/plain; charset=utf-8", []byte(text + "\n")
	case format == "verbose_json":
		return "application/json", marshal(obj{"task": "transcribe", "text": text, "language": "english", "duration": float64(seconds) - 0.5, "usage": usage})
	}
	return "application/json", marshal(obj{"text": text, "usage": usage})
}

func judged(w *wish) (string, []byte) {
	return "application/json", marshal(obj{"id": "modr-1", "model": w.model, "results": repeated(max(len(w.texts), 1), obj{
		"flagged": false, "categories": obj{"violence": false}, "category_scores": obj{"violence": 0.01},
	})})
}

func ranked(w *wish) (string, []byte) {
	results := make([]obj, len(w.texts))
	for i := range results {
		results[i] = obj{"index": i, "relevance_score": 1 / float64(i+1)}
	}
	o := obj{"id": "rerank-1", "results": results}
	if w.telling() {
		w.told = w.tokens(w.fields["query"] + strings.Join(w.texts, " "))
		o["usage"] = obj{"total_tokens": w.told}
	} else {
		o["meta"] = obj{"billed_units": obj{"search_units": (len(w.texts) + 99) / 100}}
	}
	return "application/json", marshal(o)
}
