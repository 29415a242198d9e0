package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// runMemory is how far back the requests of a run are summed.
const runMemory = 31 * 24 * time.Hour

// Labelled asks for what users and runs have used.
type Labelled struct {
	Users     bool            // in the hour, day and month of now
	Windows   []sluice.Window // of users: some of these; empty for all
	RunsSince time.Time       // all of what those runs took that had a request since; zero for none
}

// LabelledSpend is Spend for what callers name: users, and runs, whose Start is
// their first request. Of a run the last month counts.
func (db *DB) LabelledSpend(ctx context.Context, now time.Time, of Labelled, undrained func(visit func([]ledger.Entry) error) error) ([]ledger.Spend, error) {
	sums := &labelledSums{of: of, windows: windowsOf(now, of.Windows...), users: spendSums{}, runs: map[runKey]*runSum{}}
	if of.Users {
		for _, w := range sums.windows {
			if err := db.userSpend(ctx, sums, w); err != nil {
				return nil, fmt.Errorf("read spend of users: %w", err)
			}
		}
	}
	if !of.RunsSince.IsZero() {
		if err := db.runSpend(ctx, sums, now.Add(-runMemory)); err != nil {
			return nil, fmt.Errorf("read spend of runs: %w", err)
		}
	}
	if undrained != nil {
		err := undrained(func(entries []ledger.Entry) error {
			fresh, err := db.unknown(ctx, entries)
			for _, e := range fresh {
				sums.add(e)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("add what is not in the store yet: %w", err)
		}
	}
	return sums.list(), nil
}

func (db *DB) userSpend(ctx context.Context, sums *labelledSums, w windowStart) error {
	rows, err := db.read.QueryContext(ctx, `
		SELECT tenant, user_id,
			CAST(SUM(requests) AS BIGINT),
			CAST(SUM(input + cache_read + cache_write + cache_write_1h + audio_input) AS BIGINT),
			CAST(SUM(output + reasoning + audio_output) AS BIGINT),
			CAST(SUM(cost) AS BIGINT),
			CAST(SUM(cost_high) AS BIGINT)
		FROM user_hours
		WHERE hour_us >= $1 AND user_id <> ''
		GROUP BY tenant, user_id`, w.start.UnixMicro())
	if err != nil {
		return err
	}
	found, err := collect(rows, func(r scanner) (s ledger.Spend, err error) {
		err = r.Scan(&s.Tenant, &s.User, &s.Requests, &s.Input, &s.Output, &s.Cost, &s.CostHigh)
		return s, err
	})
	for i := range found {
		sums.user(w, &found[i])
	}
	return err
}

func (db *DB) runSpend(ctx context.Context, sums *labelledSums, since time.Time) error {
	rows, err := db.read.QueryContext(ctx, `
		SELECT tenant, run_id, MIN(at_us), MAX(at_us),
			CAST(SUM(CASE WHEN final = 1 AND backend <> '' THEN 1 ELSE 0 END) AS BIGINT),
			CAST(SUM(input + cache_read + cache_write + cache_write_1h + audio_input) AS BIGINT),
			CAST(SUM(output + reasoning + audio_output) AS BIGINT),
			CAST(SUM(cost) AS BIGINT),
			CAST(SUM(cost_high) AS BIGINT)
		FROM entries
		WHERE run_id <> '' AND shadow_of = '' AND voided = 0 AND at_us >= $1
		GROUP BY tenant, run_id`, since.UnixMicro())
	if err != nil {
		return err
	}
	found, err := collect(rows, func(r scanner) (s runSum, err error) {
		var first, last int64
		err = r.Scan(&s.Tenant, &s.Run, &first, &last, &s.Requests, &s.Input, &s.Output, &s.Cost, &s.CostHigh)
		s.Start, s.last = fromMicros(first), fromMicros(last)
		return s, err
	})
	for i := range found {
		sums.run(&found[i])
	}
	return err
}

// labelledSums are the sums of users and runs.
type labelledSums struct {
	of      Labelled
	windows []windowStart
	users   spendSums
	runs    map[runKey]*runSum
}

type runKey struct {
	tenant sluice.TenantID
	run    sluice.RunID
}

// runSum is what a run took from Start to last.
type runSum struct {
	ledger.Spend
	last time.Time
}

// add adds an entry that the store does not have.
func (m *labelledSums) add(e *ledger.Entry) {
	if e.ShadowOf != "" { // on an account of its own: see ShadowSpend
		return
	}
	s := ledger.Spend{
		Tenant: e.Tenant, User: e.User, Run: e.Run,
		Input: e.Usage.InputTotal(), Output: e.Usage.OutputTotal(), Cost: e.Cost, CostHigh: e.CostHigh,
	}
	if e.Final && e.Backend != "" {
		s.Requests = 1
	}
	if e.User != "" && m.of.Users {
		for _, w := range m.windows {
			if !e.At.Before(w.start) {
				m.user(w, &s)
			}
		}
	}
	if e.Run != "" && !m.of.RunsSince.IsZero() {
		s.Start = e.At.UTC()
		m.run(&runSum{Spend: s, last: s.Start})
	}
}

func (m *labelledSums) user(w windowStart, s *ledger.Spend) {
	m.users.plus(ledger.Spend{Scope: sluice.ScopeUser, Tenant: s.Tenant, User: s.User, Window: w.window, Start: w.start}, s)
}

func (m *labelledSums) run(s *runSum) {
	k := runKey{s.Tenant, s.Run}
	sum := m.runs[k]
	if sum == nil {
		sum = &runSum{Spend: ledger.Spend{Scope: sluice.ScopeRun, Tenant: s.Tenant, Run: s.Run, Window: sluice.PerRun, Start: s.Start}, last: s.last}
		m.runs[k] = sum
	}
	if s.Start.Before(sum.Start) {
		sum.Start = s.Start
	}
	if s.last.After(sum.last) {
		sum.last = s.last
	}
	sum.Requests += s.Requests
	sum.Input += s.Input
	sum.Output += s.Output
	sum.Cost += s.Cost
	sum.CostHigh += s.CostHigh
}

func (m *labelledSums) list() []ledger.Spend {
	out := make([]ledger.Spend, 0, len(m.users)+len(m.runs))
	for _, s := range m.users {
		out = append(out, *s)
	}
	for _, s := range m.runs {
		if !s.last.Before(m.of.RunsSince) {
			out = append(out, s.Spend)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Spend) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.User, b.User), cmp.Compare(a.Run, b.Run), cmp.Compare(a.Window, b.Window))
	})
	return out
}
