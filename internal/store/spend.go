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

// Spend returns what was used in the hour, day and month of now at every scope,
// to seed counters at start. Entries that the journal still holds are not in it:
// flush the journal first.
func (db *DB) Spend(ctx context.Context, now time.Time) ([]ledger.Spend, error) {
	now = now.UTC()
	windows := []struct {
		window sluice.Window
		start  time.Time
	}{
		{sluice.PerHour, now.Truncate(time.Hour)},
		{sluice.PerDay, now.Truncate(24 * time.Hour)},
		{sluice.PerMonth, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)},
	}
	sums := map[ledger.Spend]*ledger.Spend{} // by scope, ids and window
	for _, w := range windows {
		if err := db.spendSince(ctx, sums, w.window, w.start); err != nil {
			return nil, fmt.Errorf("read spend: %w", err)
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

func (db *DB) spendSince(ctx context.Context, sums map[ledger.Spend]*ledger.Spend, w sluice.Window, start time.Time) error {
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
		GROUP BY tenant, project, key_id, model`, start.UnixMicro())
	if err != nil {
		return err
	}
	found, err := collect(rows, func(r scanner) (s ledger.Spend, err error) {
		err = r.Scan(&s.Tenant, &s.Project, &s.Key, &s.Model, &s.Requests, &s.Input, &s.Output, &s.Cost, &s.CostHigh)
		return s, err
	})
	if err != nil {
		return err
	}
	for _, s := range found {
		for _, k := range []ledger.Spend{
			{Scope: sluice.ScopeKey, Tenant: s.Tenant, Project: s.Project, Key: s.Key},
			{Scope: sluice.ScopeProject, Tenant: s.Tenant, Project: s.Project},
			{Scope: sluice.ScopeTenant, Tenant: s.Tenant},
			{Scope: sluice.ScopeTenantModel, Tenant: s.Tenant, Model: s.Model},
			{Scope: sluice.ScopeModel, Model: s.Model},
			{Scope: sluice.ScopeFleet},
		} {
			k.Window, k.Start = w, start
			sum := sums[k]
			if sum == nil {
				sum = &ledger.Spend{Scope: k.Scope, Tenant: k.Tenant, Project: k.Project, Key: k.Key, Model: k.Model, Window: w, Start: start}
				sums[k] = sum
			}
			sum.Requests += s.Requests
			sum.Input += s.Input
			sum.Output += s.Output
			sum.Cost += s.Cost
			sum.CostHigh += s.CostHigh
		}
	}
	return nil
}
