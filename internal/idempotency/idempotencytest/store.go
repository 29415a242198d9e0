package idempotencytest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice"
	"sluice/internal/idempotency"
)

// Store keeps keys in memory.
type Store struct {
	mu    sync.Mutex
	rows  map[idempotency.Mark]*row // guarded by mu
	err   error                     // guarded by mu
	calls int                       // guarded by mu
}

type row struct {
	claim  idempotency.Claim
	until  time.Time
	done   bool
	answer []byte
}

var _ idempotency.Store = (*Store)(nil)

// Fail makes every call fail, or none where err is nil.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Calls is how often the store was called, but for renewals and sweeps.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Rows is how many keys there are, and how many of them have an answer.
func (s *Store) Rows() (all, done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		if r.done {
			done++
		}
	}
	return len(s.rows), done
}

// ClaimKey implements idempotency.Store.
func (s *Store) ClaimKey(_ context.Context, c idempotency.Claim) (*idempotency.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err != nil {
		return nil, s.err
	}
	if r := s.rows[c.Mark]; r != nil && r.until.After(c.Now) {
		return &idempotency.Found{Print: r.claim.Print, Request: r.claim.Request, Begun: r.claim.Now, Until: r.until, Answer: r.answer}, nil
	}
	if s.rows == nil {
		s.rows = make(map[idempotency.Mark]*row)
	}
	s.rows[c.Mark] = &row{claim: c, until: c.Until}
	return nil, nil
}

// FindKey implements idempotency.Store.
func (s *Store) FindKey(_ context.Context, m idempotency.Mark, now time.Time) (*idempotency.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if r := s.rows[m]; r != nil && s.err == nil && r.until.After(now) {
		return &idempotency.Found{Print: r.claim.Print, Request: r.claim.Request, Begun: r.claim.Now, Until: r.until, Answer: r.answer}, nil
	}
	return nil, s.err
}

// held is the row of a claim that is held. REQUIRES: mu is held.
func (s *Store) held(h idempotency.Held) *row {
	if r := s.rows[h.Mark]; r != nil && !r.done && r.claim.Request == h.Request {
		return r
	}
	return nil
}

// RenewKeys implements idempotency.Store.
func (s *Store) RenewKeys(_ context.Context, held []idempotency.Held, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range held {
		if r := s.held(h); r != nil && s.err == nil {
			r.until = until
		}
	}
	return s.err
}

// KeepAnswer implements idempotency.Store.
func (s *Store) KeepAnswer(_ context.Context, k idempotency.Kept) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	r := s.held(k.Held)
	if r == nil || s.err != nil {
		return false, s.err
	}
	r.done, r.answer, r.until = true, slices.Clone(k.Answer), k.Until
	return true, nil
}

// FreeKey implements idempotency.Store.
func (s *Store) FreeKey(_ context.Context, h idempotency.Held) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.held(h) != nil && s.err == nil {
		delete(s.rows, h.Mark)
	}
	return s.err
}

// SweepKeys implements idempotency.Store.
func (s *Store) SweepKeys(_ context.Context, now time.Time, b idempotency.Bounds) (map[sluice.TenantID]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	maps.DeleteFunc(s.rows, func(_ idempotency.Mark, r *row) bool { return !r.until.After(now) })
	has := make(map[sluice.TenantID]int64)
	for _, r := range s.rows {
		if r.done {
			has[r.claim.Tenant] += r.bytes()
		}
	}
	for tenant, n := range idempotency.Excess(has, b) {
		own := slices.DeleteFunc(slices.Collect(maps.Values(s.rows)), func(r *row) bool { return r.claim.Tenant != tenant || !r.done })
		slices.SortFunc(own, func(a, c *row) int {
			return cmp.Or(a.until.Compare(c.until), slices.Compare(a.claim.Mark[:], c.claim.Mark[:]))
		})
		for ; n > 0 && len(own) > 0; own = own[1:] {
			n -= own[0].bytes()
			has[tenant] -= own[0].bytes()
			delete(s.rows, own[0].claim.Mark)
		}
	}
	return has, nil
}

func (r *row) bytes() int64 { return int64(len(r.answer)) + idempotency.Overhead }
