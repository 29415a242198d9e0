package jobs_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// sight is a store that may be lost to one desk: its calls fail, or wait.
type sight struct {
	jobs.Store
	dead   atomic.Bool
	paused atomic.Pointer[chan struct{}] // calls of a worker wait
	held   atomic.Pointer[chan struct{}] // slices of checks wait

	mu    sync.Mutex
	fail  func(call string, write bool) error // what a call is answered in place of the store's; nil is nothing
	calls []call                              // that steps made, in order
}

// call is a call of the store for a step of a job.
type call struct {
	name   string
	tenant sluice.TenantID
	lines  int // of a slice
	after  int // the line that it follows
}

var errLost = errors.New("the process is dead")

// look is before each call: write says that it would change something.
func (s *sight) look(name string, write bool) error {
	if p := s.paused.Load(); p != nil && (name == "Beat" || name == "Claim" || name == "Post" || name == "OpenJobs") {
		<-*p
	}
	if s.dead.Load() {
		return errLost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail(name, write)
	}
	return nil
}

func (s *sight) failing(f func(call string, write bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *sight) note(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// noted are the calls of a name.
func (s *sight) noted(name string) (out []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.name == name {
			out = append(out, c)
		}
	}
	return out
}

func (s *sight) Beat(ctx context.Context, worker string, until time.Time) error {
	if err := s.look("Beat", true); err != nil {
		return err
	}
	return s.Store.Beat(ctx, worker, until)
}

func (s *sight) Claim(ctx context.Context, c jobs.Claim) ([]jobs.Line, error) {
	if err := s.look("Claim", true); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, c)
}

func (s *sight) Post(ctx context.Context, id jobs.JobID, now time.Time, posts []jobs.Posting) ([]int, error) {
	if err := s.look("Post", true); err != nil {
		return nil, err
	}
	return s.Store.Post(ctx, id, now, posts)
}

func (s *sight) OpenJobs(ctx context.Context, limit int) ([]jobs.Job, error) {
	if err := s.look("OpenJobs", false); err != nil {
		return nil, err
	}
	return s.Store.OpenJobs(ctx, limit)
}

func (s *sight) LeaseJob(ctx context.Context, id jobs.JobID, owner string, now, until time.Time) (int64, bool, error) {
	if err := s.look("LeaseJob", true); err != nil {
		return 0, false, err
	}
	return s.Store.LeaseJob(ctx, id, owner, now, until)
}

func (s *sight) SaveJob(ctx context.Context, j *jobs.Job, was jobs.State, fence int64) (bool, error) {
	if err := s.look("SaveJob", true); err != nil {
		return false, err
	}
	return s.Store.SaveJob(ctx, j, was, fence)
}

func (s *sight) ResetLines(ctx context.Context, id jobs.JobID, fence int64) (bool, error) {
	s.note(call{name: "ResetLines"})
	return s.Store.ResetLines(ctx, id, fence)
}

func (s *sight) CustomIDs(ctx context.Context, id jobs.JobID, visit func(int, string)) error {
	s.note(call{name: "CustomIDs"})
	return s.Store.CustomIDs(ctx, id, visit)
}

func (s *sight) PutLines(ctx context.Context, l *jobs.Lines) (int, bool, error) {
	c := call{name: "PutLines", tenant: l.Job.Caller.Tenant, lines: len(l.Lines)}
	if c.lines > 0 {
		c.after = l.Lines[0].Line - 1
	}
	s.note(c)
	if p := s.held.Load(); p != nil {
		<-*p
	}
	if err := s.look("PutLines", true); err != nil {
		return 0, false, err
	}
	return s.Store.PutLines(ctx, l)
}

func (s *sight) PutOutput(ctx context.Context, o *jobs.Output) (bool, error) {
	s.note(call{name: "PutOutput", tenant: o.Job.Caller.Tenant, after: o.Job.Written.Line})
	if err := s.look("PutOutput", true); err != nil {
		return false, err
	}
	return s.Store.PutOutput(ctx, o)
}

func (s *sight) EndLines(ctx context.Context, id jobs.JobID, now time.Time, as jobs.LineState) (int, bool, error) {
	s.note(call{name: "EndLines"})
	if err := s.look("EndLines", true); err != nil {
		return 0, false, err
	}
	return s.Store.EndLines(ctx, id, now, as)
}

func (s *sight) Results(ctx context.Context, id jobs.JobID, after, limit int, maxBytes int64) ([]jobs.Result, error) {
	s.note(call{name: "Results", after: after})
	if err := s.look("Results", false); err != nil {
		return nil, err
	}
	return s.Store.Results(ctx, id, after, limit, maxBytes)
}

func (s *sight) Chunk(ctx context.Context, t sluice.TenantID, id jobs.FileID, n int) ([]byte, error) {
	if err := s.look("Chunk", false); err != nil {
		return nil, err
	}
	return s.Store.Chunk(ctx, t, id, n)
}

func (s *sight) Sweep(ctx context.Context, w jobs.Sweep) (bool, error) {
	if err := s.look("Sweep", true); err != nil {
		return false, err
	}
	return s.Store.Sweep(ctx, w)
}

// Retire implements jobs.Store: there are several desks on one store that is said to be of
// one process.
func (s *sight) Retire(context.Context, string) error { return nil }
