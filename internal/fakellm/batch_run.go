package fakellm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// serveBatch serves a batch's lines, and ends it.
func (s *Server) serveBatch(ctx context.Context, b *batch, faults *Behaviour, header http.Header) {
	defer b.stop()
	header.Del("Content-Length")
	header.Set("Content-Type", "application/json")
	done := 0
	for _, l := range b.lines {
		if faults.HangFirst && done == max(faults.DieAfter, 0) {
			<-ctx.Done()
		}
		if ctx.Err() != nil || len(b.invalid) > 0 || faults.DieAfter >= 0 && done >= faults.DieAfter {
			break
		}
		status, id, body := s.serveLine(ctx, l, header)
		if ctx.Err() != nil {
			break
		}
		done++
		s.batches.mu.Lock()
		b.add(l.custom, status, id, body)
		s.batches.mu.Unlock()
	}
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	b.end(s, done)
}

// end closes a batch of which so many lines were served. mu is held.
func (b *batch) end(s *Server, done int) {
	b.ended = time.Now()
	how, word, code := lineExpired, batchDone, "batch_expired"
	switch {
	case len(b.invalid) > 0:
		b.status = batchFailed
		return
	case !b.cancelled.IsZero():
		how, word, code = lineCancelled, batchCancelled, "batch_cancelled"
	case done < len(b.lines):
		word = batchExpired
	}
	for _, l := range b.lines[done:] {
		b.outcomes[how]++
		if b.anthropic {
			b.line(&b.output, obj{"custom_id": l.custom, "result": obj{"type": []string{lineCancelled: "canceled", lineExpired: "expired"}[how]}})
			continue
		}
		b.line(&b.errors, obj{"id": "batch_req_" + s.mint(), "custom_id": l.custom, "response": nil, "error": obj{"code": code, "message": "the request was not run"}})
	}
	b.status = word
	if b.anthropic {
		return
	}
	for _, f := range []struct {
		name string
		data []byte
		id   *string
	}{{"output", b.output.Bytes(), &b.outputFile}, {"error", b.errors.Bytes(), &b.errorFile}} {
		if len(f.data) > 0 {
			*f.id = "file-" + s.mint()
			s.batches.files = append(s.batches.files, &kept{id: *f.id, owner: b.owner, name: b.id + "_" + f.name + ".jsonl", purpose: "batch_output", data: slices.Clone(f.data), at: b.ended})
		}
	}
}

// add is what became of a line that was served. mu is held.
func (b *batch) add(custom string, status int, id string, body []byte) {
	ok := status == http.StatusOK
	if ok {
		b.outcomes[lineSucceeded]++
	} else {
		b.outcomes[lineErrored]++
	}
	if b.anthropic {
		result := obj{"type": "succeeded", "message": json.RawMessage(body)}
		if !ok {
			result = obj{"type": "errored", "error": json.RawMessage(body)}
		}
		b.line(&b.output, obj{"custom_id": custom, "result": result})
		return
	}
	out := &b.output
	if !ok {
		out = &b.errors
	}
	b.line(out, obj{"id": "batch_req_" + id, "custom_id": custom, "error": nil, "response": obj{"status_code": status, "request_id": id, "body": json.RawMessage(body)}})
}

func (b *batch) line(to *bytes.Buffer, o obj) {
	to.Write(marshal(o))
	to.WriteByte('\n')
}

// batchKey marks the context of a request that is a batch's.
type batchKey struct{}

func inBatch(ctx context.Context) bool { return ctx.Value(batchKey{}) != nil }

// serveLine serves one request to itself.
func (s *Server) serveLine(ctx context.Context, l batchLine, header http.Header) (status int, id string, body []byte) {
	w := &overheard{header: http.Header{}}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, batchKey{}, true), http.MethodPost, l.path, bytes.NewReader(l.body))
	if err != nil {
		return http.StatusBadRequest, "", []byte("{}")
	}
	r.Header, r.RequestURI = header, l.path
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		} else if v != nil || !json.Valid(w.body.Bytes()) {
			status, body = http.StatusInternalServerError, marshal(obj{"error": obj{"message": "the request failed", "type": "server_error", "param": nil, "code": nil}})
		}
	}()
	s.ServeHTTP(w, r)
	return cmp.Or(w.status, http.StatusOK), cmp.Or(w.header.Get("x-request-id"), w.header.Get("request-id")), bytes.TrimSpace(w.body.Bytes())
}

// overheard is an answer that stays here.
type overheard struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *overheard) Header() http.Header { return w.header }

func (w *overheard) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}
func (w *overheard) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *overheard) Flush()                      {}

// view is how the dialect tells of a batch. mu is held.
func (b *batch) view(c *batchCall) obj {
	if b.anthropic {
		return b.messagesView(c)
	}
	stamp := func(t time.Time, when bool) any {
		if t.IsZero() || !when {
			return nil
		}
		return t.Unix()
	}
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	o := obj{
		"id": b.id, "object": "batch", "endpoint": b.endpoint, "input_file_id": b.input, "completion_window": b.window, "status": b.status, "metadata": b.metadata,
		"created_at": b.at.Unix(), "in_progress_at": b.at.Unix(), "expires_at": b.at.Add(24 * time.Hour).Unix(), "cancelling_at": stamp(b.cancelled, true),
		"completed_at": stamp(b.ended, b.status == batchDone), "failed_at": stamp(b.ended, b.status == batchFailed), "expired_at": stamp(b.ended, b.status == batchExpired),
		"cancelled_at": stamp(b.ended, b.status == batchCancelled), "output_file_id": text(b.outputFile), "error_file_id": text(b.errorFile), "errors": nil,
		"request_counts": obj{"total": len(b.lines), "completed": b.outcomes[lineSucceeded], "failed": b.outcomes[lineErrored] + b.outcomes[lineExpired]},
	}
	if len(b.invalid) > 0 {
		o["errors"] = obj{"object": "list", "data": b.invalid}
	}
	return o
}

func (b *batch) messagesView(c *batchCall) obj {
	stamp := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	status, counts := "in_progress", obj{"processing": len(b.lines), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	var results any
	switch {
	case !b.ended.IsZero():
		status, results = "ended", "http://"+c.r.Host+"/v1/messages/batches/"+b.id+"/results"
		counts = obj{"processing": 0, "succeeded": b.outcomes[lineSucceeded], "errored": b.outcomes[lineErrored], "canceled": b.outcomes[lineCancelled], "expired": b.outcomes[lineExpired]}
	case !b.cancelled.IsZero():
		status = "canceling"
	}
	return obj{
		"id": b.id, "type": "message_batch", "processing_status": status, "request_counts": counts, "results_url": results, "created_at": stamp(b.at),
		"expires_at": stamp(b.at.Add(24 * time.Hour)), "ended_at": stamp(b.ended), "cancel_initiated_at": stamp(b.cancelled), "archived_at": nil,
	}
}
