package handover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxLine bounds one result, in bytes. What is longer is passed over.
const maxLine = 32 << 20

// read reads results of a batch, and gives those that are its own. What is no result is
// passed over, and counted: its line has none.
func (p *provider) read(ctx context.Context, at *Batch, path string, give func(line int, r Result)) (odd int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	ans, err := p.do(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return 0, err
	}
	defer ans.Close()
	in := bufio.NewReaderSize(ans, 64<<10)
	for {
		text, err := nextLine(in)
		if err != nil && err != io.EOF && err != errLong {
			return odd, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 || err == errLong {
			if line, r, ok := parse(token(at.ID), text); ok {
				give(line, r)
			} else {
				odd++
			}
		}
		if err == io.EOF {
			return odd, nil
		}
	}
}

var errLong = errors.New("a line is longer than the bound")

// nextLine reads a line. One that is too long is read to its end, and nothing is given of
// it.
func nextLine(in *bufio.Reader) (line []byte, err error) {
	for long := false; ; {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil && long:
			return nil, errLong
		default:
			return line, err
		}
	}
}

// parse is one line of results; ok is false where it is none of a line of the batch.
func parse(token string, text []byte) (line int, r Result, ok bool) {
	var l struct {
		Custom   string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
		Result struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
			Error   json.RawMessage `json:"error"`
		} `json:"result"`
	}
	if json.Unmarshal(text, &l) != nil {
		return 0, r, false
	}
	number, ours := strings.CutPrefix(l.Custom, token)
	line, err := strconv.Atoi(number)
	if !ours || err != nil || strconv.Itoa(line) != number {
		return 0, r, false
	}
	switch {
	case l.Response != nil && l.Response.Status >= 200:
		return line, Result{Status: l.Response.Status, Body: l.Response.Body}, bytes.HasPrefix(l.Response.Body, []byte("{"))
	case l.Result.Type == "succeeded":
		return line, Result{Status: http.StatusOK, Body: l.Result.Message}, bytes.HasPrefix(l.Result.Message, []byte("{"))
	case l.Result.Type == "errored":
		return line, Result{Status: statusOf(l.Result.Error), Body: l.Result.Error}, true
	}
	return line, Result{Err: ErrUndone}, true // expired, cancelled, or failed without an answer
}

// statusOf is the status that Anthropic answers with an error of the type.
func statusOf(body []byte) int {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // what cannot be read is a failure of the server
	switch e.Error.Type {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "overloaded_error":
		return 529
	}
	return http.StatusInternalServerError
}
