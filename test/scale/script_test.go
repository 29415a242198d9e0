package scale

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// script is what one stream is: its label says it to the provider, and tells the
// client what must come.
type script struct {
	id     string
	events int // with content; each is one token
	gap    time.Duration
	input  int  // tokens that the provider says the prompt has
	usage  bool // the client asks for the usage
}

// label is the script as the user of a request.
func (s script) label() string {
	return fmt.Sprintf("%s/%d/%d/%d", s.id, s.events, s.gap.Milliseconds(), s.input)
}

// parseScript reads a label; usage is not in it.
func parseScript(label string) (s script, err error) {
	part := strings.Split(label, "/")
	if len(part) != 4 {
		return s, fmt.Errorf("%q is no label", label)
	}
	s.id = part[0]
	for i, n := range []*int{&s.events, nil, &s.input} {
		if n != nil {
			if *n, err = strconv.Atoi(part[i+1]); err != nil {
				return s, err
			}
		}
	}
	ms, err := strconv.Atoi(part[2])
	s.gap = time.Duration(ms) * time.Millisecond
	return s, err
}

// request is the body of a request for the stream, with a prompt of about size
// bytes, in two parts: a large prompt is not made anew for each.
func (s script) request(size int) [2]string {
	options := ""
	if s.usage {
		options = `"stream_options":{"include_usage":true},`
	}
	head := fmt.Sprintf(`{"model":"fast","stream":true,%s"user":%q,"max_tokens":64000,"messages":[{"role":"user","content":"`, options, s.label())
	return [2]string{head, prompt(size)}
}

var prompts sync.Map // of the ends of bodies, by size

// prompt is the rest of a body, from within its prompt of about size bytes.
func prompt(size int) string {
	if p, ok := prompts.Load(size); ok {
		return p.(string)
	}
	p := prose(size) + `"}]}`
	prompts.Store(size, p)
	return p
}

// prose is English-like text of about size bytes, that needs no quoting.
func prose(size int) string {
	const text = "The water of a river that comes down in spring is let through gate by gate, while keepers write what they have seen into their books. "
	return strings.Repeat(text, size/len(text)+1)[:max(size, 1)]
}

const chunkHead = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796000000,"model":"up","choices":`

// event is the i-th event with content, different for each stream and place.
func (s script) event(b []byte, i int) []byte {
	return fmt.Appendf(b, "%s"+`[{"index":0,"delta":{"content":" %s-%d"},"finish_reason":null}]}`+"\n\n", chunkHead, s.id, i)
}

// last are the events after the content, without and with the usage.
func (s script) last(b []byte, usage bool) []byte {
	b = append(b, chunkHead+`[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"...)
	if usage {
		b = fmt.Appendf(b, `%s[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", chunkHead, s.input, s.events, s.input+s.events)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// count is the number of events that the client gets.
func (s script) count() int {
	if s.usage {
		return s.events + 3
	}
	return s.events + 2
}

// sum is the hash of the bytes that the client gets.
func (s script) sum() [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for i := range s.events {
		b = s.event(b[:0], i)
		h.Write(b)
	}
	h.Write(s.last(b[:0], s.usage))
	return [sha256.Size]byte(h.Sum(nil))
}

// tally counts and hashes a stream as it comes.
type tally struct {
	events int
	hash   hash.Hash
	last   byte
}

func newTally() *tally { return &tally{hash: sha256.New()} }

func (t *tally) Write(p []byte) (int, error) {
	for _, c := range p {
		if c == '\n' && t.last == '\n' {
			t.events++
		}
		t.last = c
	}
	return t.hash.Write(p)
}

// judge says what is wrong with the stream that came, nil if nothing.
func (t *tally) judge(s script) error {
	switch sum := [sha256.Size]byte(t.hash.Sum(nil)); {
	case t.events != s.count():
		return fmt.Errorf("stream %s has %d events, want %d", s.id, t.events, s.count())
	case sum != s.sum():
		return fmt.Errorf("stream %s has other bytes than were sent", s.id)
	}
	return nil
}
