package handover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// The bounds of results, in bytes. What is beyond is passed over, and its lines have none.
const (
	maxLine           = 32 << 20
	DefaultMaxResults = 512 << 20 // of one file
)

// passed is what was passed over of results.
type passed struct {
	odd  int  // that are none of a line of the batch
	long int  // that are longer than maxLine
	rest bool // all that comes after Options.MaxResults
}

// read reads results of a batch, and gives those that are its own. What is no result is
// passed over: its line has none.
func (p *provider) read(ctx context.Context, at *Batch, path string, give func(line int, r Result)) (over passed, err error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	ans, err := p.do(ctx, upstream.Request{Method: http.MethodGet, Path: path, Long: true})
	if err != nil {
		return over, err
	}
	defer ans.Close()
	in := &results{in: bufio.NewReaderSize(ans, 64<<10), most: p.a.o.MaxResults}
	for in.size <= in.most {
		text, long, err := in.line()
		if err != nil && err != io.EOF {
			return over, err
		}
		text = bytes.TrimSpace(text)
		switch line, r, ok := parse(token(at.ID), text); {
		case long:
			over.long++
		case ok:
			give(line, r)
		case len(text) > 0:
			over.odd++
		}
		if err == io.EOF {
			return over, nil
		}
	}
	over.rest = true
	return over, nil
}

// results is a file of them.
type results struct {
	in   *bufio.Reader
	size int64 // that has been read
	most int64
}

// line reads a line, and its end. Nothing is given of one that is too long.
func (r *results) line() (line []byte, long bool, err error) {
	for {
		part, err := r.in.ReadSlice('\n')
		r.size += int64(len(part))
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err != bufio.ErrBufferFull:
			return line, long, err
		case r.size > r.most:
			return nil, true, nil
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

// Undone is why a provider has not run a line. It is ErrUndone.
type Undone struct {
	Ref    string // the provider's name of the batch; empty where it has none
	How    string // it came out, such as Expired; empty where that is not known
	Status int    // of the line's own error; 0 for none
}

func (u *Undone) Error() string {
	said := "the provider's batch"
	if u.Ref != "" {
		said += " " + u.Ref
	}
	if u.How != "" {
		said += " (" + u.How + ")"
	}
	if u.Status > 0 {
		return said + " answered the line with status " + strconv.Itoa(u.Status)
	}
	return said + " has no result of the line"
}

// Unwrap is ErrUndone.
func (u *Undone) Unwrap() error { return ErrUndone }

// again reports whether a result is a failure after which the line runs by itself.
func (p *provider) again(r *Result) bool {
	t, ok := p.target()
	return ok && r.Status >= 400 && wire.Refused(t.Dialect, r.Status, http.Header{}, r.Body).Retryable
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
