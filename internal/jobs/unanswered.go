package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"sluice"
)

// The bounds of a search for lines without an answer.
const (
	searchedLines = 1000     // of a job that runs
	searchedBytes = 16 << 20 // of the files of one that has ended
)

// Unanswered are lines of a job that have ended without an answer, the first of them, at
// most limit. What is not found within a bounded search is left out; bodies are too.
func (d *Desk) Unanswered(ctx context.Context, j *Job, limit int) ([]Result, error) {
	if j.State.Ended() && j.Kind != Async {
		return d.unansweredIn(ctx, j, limit)
	}
	all, err := d.o.Store.Results(ctx, j.ID, 0, searchedLines, searchedBytes)
	if err != nil {
		return nil, err
	}
	var out []Result
	for i := range all {
		if r := &all[i]; r.State != LineSucceeded && len(out) < limit {
			r.Body = nil
			out = append(out, *r)
		}
	}
	return out, nil
}

// unansweredIn reads the files of a job that has ended.
func (d *Desk) unansweredIn(ctx context.Context, j *Job, limit int) ([]Result, error) {
	id := j.Errors
	if j.Kind == MessageBatch {
		id = j.Output
	}
	if id == "" {
		return nil, nil
	}
	r, err := d.Open(ctx, j.Caller.Tenant, id)
	if err != nil {
		if sluice.AsError(err).Kind == sluice.KindNotFound { // its time is over
			return nil, nil
		}
		return nil, err
	}
	lines := bufio.NewScanner(io.LimitReader(&stream{ctx: ctx, r: r}, searchedBytes))
	lines.Buffer(nil, searchedBytes)
	var out []Result
	for n := 1; len(out) < limit && lines.Scan(); n++ {
		read := readOpenAI
		if j.Kind == MessageBatch {
			read = readMessage
		}
		if v, ok := read(n, lines.Bytes()); ok {
			out = append(out, v)
		}
	}
	return out, nil
}

// asTold is what appendTold wrote.
type asTold struct {
	Request sluice.RequestID `json:"request_id"`
	Told
}

// readOpenAI reads what renderOpenAI wrote.
func readOpenAI(_ int, line []byte) (Result, bool) {
	var l struct {
		ID       string `json:"id"`
		CustomID string `json:"custom_id"`
		Response struct {
			Status int `json:"status_code"`
		} `json:"response"`
		Sluice asTold `json:"sluice"`
		Error  struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(line, &l) != nil {
		return Result{}, false
	}
	out := Result{Line: lineNumber(l.ID), CustomID: l.CustomID, State: LineFailed, Status: l.Response.Status, Request: l.Sluice.Request, Told: l.Sluice.Told}
	switch l.Error.Code {
	case "batch_expired":
		out.State = LineExpired
	case "batch_cancelled":
		out.State = LineCancelled
	}
	return out, true
}

// readMessage reads what renderMessage wrote: every line of the input has one there, in
// order.
func readMessage(n int, line []byte) (Result, bool) {
	var l struct {
		CustomID string `json:"custom_id"`
		Result   struct {
			Type string `json:"type"`
		} `json:"result"`
		Sluice asTold `json:"sluice"`
	}
	if json.Unmarshal(line, &l) != nil || l.Result.Type == "succeeded" {
		return Result{}, false
	}
	out := Result{Line: n, CustomID: l.CustomID, State: LineFailed, Request: l.Sluice.Request, Told: l.Sluice.Told}
	switch l.Result.Type {
	case "expired":
		out.State = LineExpired
	case "canceled":
		out.State = LineCancelled
	}
	return out, true
}

// stream is a file as an io.Reader.
type stream struct {
	ctx  context.Context
	r    *Reader
	rest []byte
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		var err error
		if s.rest, err = s.r.Next(s.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
