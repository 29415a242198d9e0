package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"
)

// The models of the scripted upstream: how it answers.
const (
	modelWhole = "whole" // one piece
	modelBurst = "burst" // burstChunks chunks, each with its own write, one after the other
	modelPaced = "paced" // pacedChunks chunks, one each pacedEvery
	modelOpen  = "open"  // one chunk, and then one each second until the client leaves
)

const (
	burstChunks = 256
	pacedChunks = 60
	pacedEvery  = 100 * time.Millisecond
	openChunks  = 3600
)

// script is what the upstream answers, made once.
type script struct {
	whole             []byte
	head              []byte // of a stream
	first, event, end []byte // as HTTP chunks
	usage, done       []byte
}

func newScript() *script {
	const common = "X-Request-Id: req_0123456789abcdef\r\nOpenai-Processing-Ms: 12\r\nOpenai-Version: 2020-10-01\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\n"
	body := answerJSON()
	event := func(data string) []byte {
		return fmt.Appendf(nil, "%x\r\ndata: %s\n\n\r\n", len(data)+len("data: \n\n"), data)
	}
	chunk := func(delta, finish string) string {
		return `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1796000000,"model":"bench","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}`
	}
	return &script{
		whole: fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(body), common, body),
		head:  []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n" + common + "\r\n"),
		first: event(chunk(`{"role":"assistant","content":""}`, "null")),
		event: event(chunk(`{"content":" sluice"}`, "null")),
		end:   event(chunk(`{}`, `"stop"`)),
		usage: event(`{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1796000000,"model":"bench","choices":[],"usage":{"prompt_tokens":200,"completion_tokens":256,"total_tokens":456}}`),
		done:  append(event("[DONE]"), "0\r\n\r\n"...),
	}
}

// answerJSON is an answer of about 1 KB.
func answerJSON() []byte {
	text := "A sluice is a water channel controlled at its head by a gate. " +
		"The gate lets through what the channel below can take and holds back the rest, so that neither a flood nor a drought upstream is felt downstream. "
	for len(text) < 620 {
		text += "Millers, miners and lock keepers have used them for two thousand years. "
	}
	return []byte(`{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1796000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"` + text +
		`","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":140,"total_tokens":340,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default"}`)
}

// serveUpstream is the upstream's process. It tells where it listens and ends
// with its input.
func serveUpstream() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := newScript()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// serve answers the requests of one connection.
func (s *script) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 8<<10)
	for {
		size, err := readHead(r)
		if err != nil {
			return
		}
		peek := min(size, 400) // the model comes first, and what a gateway inserts stands next to it
		start, err := r.Peek(peek)
		if err != nil {
			return
		}
		model, usage := modelOf(start), bytes.Contains(start, []byte(`"include_usage":true`))
		if _, err := r.Discard(size); err != nil {
			return
		}
		if s.answer(c, model, usage) != nil {
			return
		}
	}
}

func (s *script) answer(w io.Writer, model string, usage bool) error {
	if model == modelWhole {
		_, err := w.Write(s.whole)
		return err
	}
	n, every := burstChunks, time.Duration(0)
	switch model {
	case modelPaced:
		n, every = pacedChunks, pacedEvery
	case modelOpen:
		n, every = openChunks, time.Second
	}
	if _, err := w.Write(bytes.Join([][]byte{s.head, s.first}, nil)); err != nil {
		return err
	}
	due := time.Now()
	for range n {
		if every > 0 {
			due = due.Add(every)
			time.Sleep(time.Until(due))
		} else {
			runtime.Gosched() // the other streams have theirs, as in the steps of an engine's batch
		}
		if _, err := w.Write(s.event); err != nil {
			return err
		}
	}
	last := [][]byte{s.end, s.done}
	if usage {
		last = [][]byte{s.end, s.usage, s.done}
	}
	_, err := w.Write(bytes.Join(last, nil))
	return err
}

// modelOf reads the model from the start of a body, where the client puts it. The
// upstream's own names have a prefix.
func modelOf(start []byte) string {
	_, rest, _ := bytes.Cut(start, []byte(`"model":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(bytes.TrimPrefix(name, []byte("bench-")))
}

// readHead reads the head of a request or an answer with a declared length and
// returns that.
func readHead(r *bufio.Reader) (size int, err error) {
	size = -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if size < 0 {
				return 0, fmt.Errorf("no content length")
			}
			return size, nil
		}
		if v, ok := headerValue(line, "content-length"); ok {
			if size, err = strconv.Atoi(string(v)); err != nil {
				return 0, err
			}
		}
	}
}

// headerValue is the value of a header line of that name, in lower case.
func headerValue(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}
