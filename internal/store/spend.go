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

// windowStart is a fixed window and when the one of a moment began.
type windowStart struct {
	window sluice.Window
	start  time.Time
}

// windowsOf are the hour, day and month of now, by the UTC calendar: those of them that
// are named, all if none is.
func windowsOf(now time.Time, named ...sluice.Window) []windowStart {
	now = now.UTC()
	all := []windowStart{
		{sluice.PerHour, now.Truncate(time.Hour)},
		{sluice.PerDay, now.Truncate(24 * time.Hour)},
		{sluice.PerMonth, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)},
	}
	return slices.DeleteFunc(all, func(w windowStart) bool { return len(named) > 0 && !slices.Contains(named, w.window) })
}

// Spend returns what was used in the hour, day and month of now at every scope,
// to seed counters at start; of some of these windows, if they are named. undrained,
// which may be nil, visits entries that may not be in the store yet, in batches; each
// counts once, whether or not it is.
func (db *DB) Spend(ctx context.Context, now time.Time, undrained func(visit func([]ledger.Entry) error) error, named ...sluice.Window) ([]ledger.Spend, error) {
	sums := spendSums{}
	windows := windowsOf(now, named...)
	for _, w := range windows {
		if err := db.spendSince(ctx, sums, w); err != nil {
			return nil, fmt.Errorf("read spend: %w", err)
		}
	}
	if undrained != nil {
		if err := db.spendUndrained(ctx, sums, windows, undrained); err != nil {
			return nil, fmt.Errorf("add what is not in the store yet: %w", err)
		}
	}
	out := make([]ledger.Spend, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b ledger.Spend) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Window, b.Window))
	})
	return out, nil
}

func (db *DB) spendSince(ctx context.Context, sums spendSums, w windowStart) error {
	// A request counts once, with its final entry; one that reached no backend
	// gave back what it took.
	rows, err := db.read.QueryContext(ctx, `
		SELECT tenant, project, key_id, model,
			CAST(SUM(CASE WHEN backend <> '' THEN requests ELSE 0 END) AS BIGINT),
			CAST(SUM(input + cache_read + cache_write + cache_write_1h + audio_input) AS BIGINT),
			CAST(SUM(output + reasoning + audio_output) AS BIGINT),
			CAST(SUM(cost) AS BIGINT),
			CAST(SUM(cost_high) AS BIGINT)
		FROM usage_hours
		WHERE hour_us >= $1
		GROUP BY tenant, project, key_id, model`, w.start.UnixMicro())
	if err != nil {
		return err
	}
	found, err := collect(rows, func(r scanner) (s ledger.Spend, err error) {
		err = r.Scan(&s.Tenant, &s.Project, &s.Key, &s.Model, &s.Requests, &s.Input, &s.Output, &s.Cost, &s.CostHigh)
		return s, err
	})
	for i := range found {
		sums.add(w, &found[i])
	}
	return err
}

// spendUndrained adds what the store does not have yet. Entries are summed by
// what a roll-up would sum them by first: there can be very many.
func (db *DB) spendUndrained(ctx context.Context, sums spendSums, windows []windowStart, undrained func(func([]ledger.Entry) error) error) error {
	type hourKey struct {
		hour    int64
		tenant  sluice.TenantID
		project sluice.ProjectID
		key     sluice.KeyID
		model   sluice.ModelID
	}
	hours := map[hourKey]*ledger.Spend{}
	err := undrained(func(entries []ledger.Entry) error {
		fresh, err := db.unknown(ctx, entries)
		for _, e := range fresh {
			if e.ShadowOf != "" { // on an account of its own: see ShadowSpend
				continue
			}
			k := hourKey{hourOf(e), e.Tenant, e.Project, e.Key, e.Model}
			s := hours[k]
			if s == nil {
				s = &ledger.Spend{Tenant: e.Tenant, Project: e.Project, Key: e.Key, Model: e.Model}
				hours[k] = s
			}
			s.Requests += flag(e.Final && e.Backend != "")
			s.Input += e.Usage.InputTotal()
			s.Output += e.Usage.OutputTotal()
			s.Cost += e.Cost
			s.CostHigh += e.CostHigh
		}
		return err
	})
	for k, s := range hours {
		for _, w := range windows {
			if k.hour >= w.start.UnixMicro() {
				sums.add(w, s)
			}
		}
	}
	return err
}

// Has reports whether the store has an entry, as far as its key tells.
func (db *DB) Has(ctx context.Context, e ledger.Entry) (bool, error) {
	fresh, err := db.unknown(ctx, []ledger.Entry{e})
	if err != nil {
		return false, fmt.Errorf("look for an entry: %w", err)
	}
	return len(fresh) == 0, nil
}

// unknown returns those of the entries that the store does not have, each once.
func (db *DB) unknown(ctx context.Context, entries []ledger.Entry) ([]*ledger.Entry, error) {
	ids := make([]string, len(entries))
	fresh := boundedAll(entries)
	for i := range entries {
		ids[i] = string(fresh[i].Request)
	}
	rows, err := db.engine.withIDs(ctx, db.read, "SELECT e.request_id, e.attempt FROM entry_rows e", "e.request_id", ids)
	if err != nil {
		return nil, err
	}
	seen := make(map[entryKey]bool, len(entries))
	_, err = collect(rows, func(r scanner) (struct{}, error) {
		var k entryKey
		err := r.Scan(&k.request, &k.attempt)
		seen[k] = true
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(fresh, func(e *ledger.Entry) bool {
		k := keyOf(e)
		known := seen[k]
		seen[k] = true
		return known
	}), nil
}

// spendSums are sums by scope, ids and window.
type spendSums map[ledger.Spend]*ledger.Spend

// add adds what one key used of one model, at every scope.
func (m spendSums) add(w windowStart, s *ledger.Spend) {
	for _, k := range [...]ledger.Spend{
		{Scope: sluice.ScopeKey, Tenant: s.Tenant, Project: s.Project, Key: s.Key},
		{Scope: sluice.ScopeProject, Tenant: s.Tenant, Project: s.Project},
		{Scope: sluice.ScopeTenant, Tenant: s.Tenant},
		{Scope: sluice.ScopeTenantModel, Tenant: s.Tenant, Model: s.Model},
		{Scope: sluice.ScopeModel, Model: s.Model},
		{Scope: sluice.ScopeFleet},
	} {
		k.Window, k.Start = w.window, w.start
		m.plus(k, s)
	}
}

// plus adds s to the sum of k.
func (m spendSums) plus(k ledger.Spend, s *ledger.Spend) {
	sum := m[k]
	if sum == nil {
		first := k
		sum = &first
		m[k] = sum
	}
	sum.Requests += s.Requests
	sum.Input += s.Input
	sum.Output += s.Output
	sum.Cost += s.Cost
	sum.CostHigh += s.CostHigh
}
