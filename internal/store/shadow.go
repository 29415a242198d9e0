package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/ledger"
)

// Shadows returns the entries of a request's shadows, by pool, with their Detail;
// none if it has none, or is unknown or another owner's.
func (db *DB) Shadows(ctx context.Context, o ledger.Owner, id sluice.RequestID) ([]ledger.Entry, error) {
	if id == "" {
		return nil, nil
	}
	var c conditions
	c.owner(o)
	c.add("shadow_of = $?", string(id))
	c.parts = append(c.parts, shadowed(true)) // so that the index of shadows is used
	rows, err := db.read.QueryContext(ctx, "SELECT "+strings.Join(entryColumns, ", ")+" FROM entries"+c.where()+" ORDER BY pool, request_id", c.args...)
	if err != nil {
		return nil, fmt.Errorf("read shadows: %w", err)
	}
	return collect(rows, scanEntry)
}

// Pairs returns shadows that have ended beside the requests that they are copies of,
// oldest first: at most Options.ScanMax, and KindInvalid beyond. A shadow whose
// request still runs is not among them yet.
func (db *DB) Pairs(ctx context.Context, q ledger.PairQuery) ([]ledger.Pair, error) {
	var c conditions
	t, all := q.Owner.Tenant()
	switch {
	case all:
	case t == "":
		return nil, nil
	default:
		c.add("s.tenant = $?", string(t))
	}
	c.parts = append(c.parts, "s.shadow_of <> ''")
	if q.Model != "" {
		c.add("s.model = $?", string(q.Model))
	}
	if !q.Since.IsZero() {
		c.add("s.at_us >= $?", q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		c.add("s.at_us < $?", q.Until.UnixMicro())
	}
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(`
		SELECT s.model, s.pool, %s, s.cost, %s,
			(SELECT CAST(SUM(cost) AS BIGINT) FROM entries WHERE request_id = p.request_id)
		FROM entries s JOIN entries p ON p.request_id = s.shadow_of AND p.final = 1%s
		ORDER BY s.at_us, s.request_id LIMIT %d`, sideColumns("s"), sideColumns("p"), c.where(), db.scanMax+1), c.args...)
	if err != nil {
		return nil, fmt.Errorf("read shadows: %w", err)
	}
	pairs, err := collect(rows, scanPair)
	if err != nil {
		return nil, fmt.Errorf("read shadows: %w", err)
	}
	if len(pairs) > db.scanMax {
		return nil, &sluice.Error{
			Kind: sluice.KindInvalid, Reason: sluice.InvalidRequest, Param: "since",
			Msg:  fmt.Sprintf("has more than %d shadows, which is the bound of one comparison", db.scanMax),
			Hint: "narrow since and until, or name a model",
		}
	}
	return pairs, nil
}

// sideColumns are the columns of one side of a pair, but its cost.
func sideColumns(table string) string {
	out := make([]string, 0, 8)
	for _, c := range [...]string{"outcome", "reason", "finish", "attempt", "queued_us", "first_token_us", "duration_us"} {
		out = append(out, table+"."+c)
	}
	return strings.Join(append(out, fmt.Sprintf("%[1]s.output + %[1]s.reasoning + %[1]s.audio_output", table)), ", ")
}

func scanPair(row scanner) (p ledger.Pair, err error) {
	var queued, first, took [2]int64
	var attempts [2]int
	dest := []any{&p.Model, &p.Pool}
	for i, s := range [...]*ledger.Side{&p.Shadow, &p.Request} {
		dest = append(dest, word{&s.Outcome}, word{&s.Reason}, &s.Finish, &attempts[i], &queued[i], &first[i], &took[i], &s.Output, &s.Cost)
	}
	if err := row.Scan(dest...); err != nil {
		return p, err
	}
	for i, s := range [...]*ledger.Side{&p.Shadow, &p.Request} {
		s.Took = span(max(0, took[i]-queued[i]))
		if first[i] > 0 {
			s.FirstToken = max(span(first[i]-queued[i]), time.Microsecond)
		}
		s.Retried = attempts[i] > 1
	}
	return p, nil
}

// ShadowSpend is Spend for the accounts that shadows have of their own, by model and
// pool.
func (db *DB) ShadowSpend(ctx context.Context, now time.Time, undrained func(visit func([]ledger.Entry) error) error, named ...sluice.Window) ([]ledger.Spend, error) {
	sums, windows := spendSums{}, windowsOf(now, named...)
	plus := func(w windowStart, s *ledger.Spend) {
		sums.plus(ledger.Spend{Scope: sluice.ScopeShadow, Model: s.Model, Pool: s.Pool, Window: w.window, Start: w.start}, s)
	}
	for _, w := range windows {
		found, err := db.shadowSpendSince(ctx, w.start)
		if err != nil {
			return nil, fmt.Errorf("read spend of shadows: %w", err)
		}
		for i := range found {
			plus(w, &found[i])
		}
	}
	if undrained != nil {
		err := undrained(func(entries []ledger.Entry) error {
			fresh, err := db.unknown(ctx, entries)
			for _, e := range fresh {
				s := ledger.Spend{
					Model: e.Model, Pool: e.Pool, Requests: flag(e.Final && e.Backend != ""),
					Input: e.Usage.InputTotal(), Output: e.Usage.OutputTotal(), Cost: e.Cost, CostHigh: e.CostHigh,
				}
				for _, w := range windows {
					if e.ShadowOf != "" && !e.At.Before(w.start) {
						plus(w, &s)
					}
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("add what is not in the store yet: %w", err)
		}
	}
	out := make([]ledger.Spend, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b ledger.Spend) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Window, b.Window))
	})
	return out, nil
}

func (db *DB) shadowSpendSince(ctx context.Context, since time.Time) ([]ledger.Spend, error) {
	rows, err := db.read.QueryContext(ctx, `
		SELECT model, pool,
			CAST(SUM(CASE WHEN final = 1 AND backend <> '' THEN 1 ELSE 0 END) AS BIGINT),
			CAST(SUM(input + cache_read + cache_write + cache_write_1h + audio_input) AS BIGINT),
			CAST(SUM(output + reasoning + audio_output) AS BIGINT),
			CAST(SUM(cost) AS BIGINT),
			CAST(SUM(cost_high) AS BIGINT)
		FROM entries
		WHERE shadow_of <> '' AND at_us >= $1
		GROUP BY model, pool`, since.UnixMicro())
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (s ledger.Spend, err error) {
		err = r.Scan(&s.Model, &s.Pool, &s.Requests, &s.Input, &s.Output, &s.Cost, &s.CostHigh)
		return s, err
	})
}
