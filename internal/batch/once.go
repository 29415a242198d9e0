package batch

import (
	"context"
	"hash"
	"net/http"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
)

// The headers of what an earlier request has made.
const (
	headerReplayed = "Idempotent-Replayed"
	headerOriginal = "Sluice-Original-Request"
)

// once is the key of what a caller's request is to make; nil without one. What is made is
// the project's, so that the project belongs to what is asked.
func (f *Face) once(by *Caller, operation string, parts ...string) *idempotency.Once {
	if by.Key == "" {
		return nil
	}
	p := by.Principal
	return f.o.Keys.Once(idempotency.Asked{
		Tenant: p.Tenant, Operation: operation, Key: by.Key, Request: by.ID,
		Print: idempotency.PrintOf(append([]string{operation, string(p.Project)}, parts...)...),
	})
}

// sum is a digest as a part of what is asked.
func sum(h hash.Hash) string { return string(h.Sum(nil)) }

// firstJob is the job that an earlier request with the same key has made, nil if there is
// none and err is the request's own.
func (f *Face) firstJob(ctx context.Context, by *Caller, o *idempotency.Once, err error) (*jobs.Job, *idempotency.First, error) {
	first, err := f.o.Keys.First(o, err)
	if notFound(err) { // what it is made of: an earlier request may have found it
		first, err = f.o.Keys.Seek(ctx, o, err)
	}
	if first == nil {
		return nil, nil, err
	}
	j, err := f.o.Desk.Job(ctx, by.Principal.Tenant, jobs.JobID(first.Made))
	switch {
	case notFound(err):
		return nil, nil, first.Gone()
	case err != nil:
		return nil, nil, err
	case j.State == jobs.Validating && j.Kind != jobs.OpenAIBatch: // whose client is told what is wrong with it
		return nil, nil, first.Busy(j.Created)
	}
	return &j, first, nil
}

// again tells that an answer is of what another request has made.
func again(h http.Header, of sluice.RequestID) {
	h[headerReplayed], h[headerOriginal] = []string{"true"}, []string{string(of)}
}
