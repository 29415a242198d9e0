package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxAnswer bounds an event or a whole answer.
const maxAnswer = 32 << 20

// usage is what the client is told, in either dialect.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	Read       int64 `json:"cache_read_input_tokens"`
	Written    int64 `json:"cache_creation_input_tokens"`
}

func (u *usage) input() int64  { return u.Prompt + u.Input + u.Read + u.Written }
func (u *usage) output() int64 { return u.Completion + u.Output }

// event is what matters of one event or body.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Usage   *usage          `json:"usage"`
	Message *struct {
		Usage *usage `json:"usage"`
	} `json:"message"`
	Delta   json.RawMessage `json:"delta"`
	Choices []struct {
		Delta struct {
			Content   string            `json:"content"`
			Reasoning string            `json:"reasoning_content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		Text string `json:"text"`
	} `json:"choices"`
}

func (e *event) content() bool {
	if e.Type == "content_block_delta" {
		return true
	}
	for _, c := range e.Choices {
		if c.Delta.Content != "" || c.Delta.Reasoning != "" || len(c.Delta.ToolCalls) > 0 || c.Text != "" {
			return true
		}
	}
	return false
}

// The ways in which a stream is not well.
var (
	errTruncated = errors.New("ended without its terminal marker")
	errLeft      = errors.New("left in mid-stream")
)

// streamError is an error event.
type streamError struct{ body string }

func (e *streamError) Error() string { return "error event: " + e.body }

// readStream reads events until the end; content is called at each one with
// content and may end the reading with errLeft. It returns the last usage.
func readStream(r io.Reader, content func() error) (*usage, error) {
	br := bufio.NewReaderSize(r, 16<<10)
	var last *usage
	var data []byte
	for {
		line, err := readLine(br)
		if err != nil {
			if err == io.EOF {
				err = errTruncated
			}
			return last, err
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
			continue
		}
		if len(line) > 0 || len(data) == 0 {
			continue // an event name, a comment, a further blank line
		}
		end, u, err := readEvent(data, content)
		if u != nil {
			last = u
		}
		if err != nil || end {
			return last, err
		}
		data = data[:0]
	}
}

// readEvent understands one event; end tells that it is the terminal marker.
func readEvent(data []byte, content func() error) (end bool, u *usage, err error) {
	if bytes.Equal(data, []byte("[DONE]")) {
		return true, nil, nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, nil, fmt.Errorf("malformed event: %w", err)
	}
	if len(e.Error) > 0 && !bytes.Equal(e.Error, []byte("null")) {
		return false, nil, &streamError{string(e.Error)}
	}
	u = e.Usage
	if u == nil && e.Message != nil {
		u = e.Message.Usage
	}
	if e.content() {
		err = content()
	}
	return e.Type == "message_stop", u, err
}

// readLine reads a line of at most maxAnswer bytes, without its end. A line that
// the end of input cuts is dropped: it ends no event.
func readLine(br *bufio.Reader) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if err == nil {
		return bytes.TrimRight(line, "\r\n"), nil
	}
	if err != bufio.ErrBufferFull {
		return nil, err
	}
	long := bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		line, err = br.ReadSlice('\n')
		if long = append(long, line...); len(long) > maxAnswer {
			return nil, fmt.Errorf("a line has more than %d bytes", maxAnswer)
		}
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(long, "\r\n"), nil
}

// readWhole reads an answer in one piece.
func readWhole(r io.Reader) (*usage, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	var e event
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("malformed answer: %w", err)
	}
	return e.Usage, nil
}
