package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/ledger"
)

// Voiding and the appending of entries that may be voided follow each other on a row of
// meta: whichever comes second finds what the first has written.
const lockVoids = "UPDATE meta SET value = value + 1 WHERE name = 'void_seq'"

// void takes requests out of all sums: their entries that are there already now, and
// those that come later as they come.
func (db *DB) void(ctx context.Context, conn *sql.Conn, tx *sql.Tx, now time.Time, ids []sluice.RequestID) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, lockVoids); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, "INSERT INTO voided_requests (request_id, at_us) VALUES ($1, $2) ON CONFLICT (request_id) DO NOTHING", string(id), now.UnixMicro()); err != nil {
			return err
		}
	}
	var there []*ledger.Entry
	for _, id := range ids {
		rows, err := tx.QueryContext(ctx, "SELECT "+strings.Join(entryColumns, ", ")+" FROM entries WHERE request_id = $1 AND voided = 0 ORDER BY attempt", string(id))
		if err != nil {
			return err
		}
		found, err := collect(rows, scanEntry)
		if err != nil {
			return err
		}
		for i := range found {
			there = append(there, &found[i])
		}
		if len(found) == 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, "UPDATE entry_rows SET voided = 1 WHERE request_id = $1", string(id)); err != nil {
			return err
		}
	}
	return db.takeOut(ctx, inserter{conn: conn, tx: tx, rows: db.engine.insertRows, here: &db.here}, there)
}

// takeOut subtracts entries from the sums that they are in.
func (db *DB) takeOut(ctx context.Context, in inserter, entries []*ledger.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	groups := groupsOf(kindsOf(entries).rows)
	for _, r := range rollups {
		sums := r.roll(groups)
		if len(sums) == 0 {
			continue
		}
		for _, s := range sums {
			for i := range s.sums {
				s.sums[i] = -s.sums[i]
			}
		}
		if err := r.add(ctx, &in, sums); err != nil {
			return err
		}
		key, _ := r.columns()
		same := make([]string, len(key))
		for i, c := range key {
			same[i] = fmt.Sprintf("%s = $%d", c, i+1)
		}
		for _, s := range sums { // a row of nothing is none
			args := []any{s.hour}
			for _, v := range s.key {
				args = append(args, v)
			}
			if _, err := in.tx.ExecContext(ctx, "DELETE FROM "+r.table+" WHERE "+strings.Join(same, " AND ")+" AND entries = 0", args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// markVoided marks those of the entries that have been voided. They are copied: they are
// the caller's.
func markVoided(ctx context.Context, tx *sql.Tx, rows []*ledger.Entry) error {
	var ids []any
	var places strings.Builder
	for _, e := range rows {
		if jobs.IsRequest(e.Request) && e.ShadowOf == "" {
			ids = append(ids, string(e.Request))
			fmt.Fprintf(&places, ", $%d", len(ids))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, lockVoids); err != nil {
		return err
	}
	found, err := tx.QueryContext(ctx, "SELECT request_id FROM voided_requests WHERE request_id IN ("+places.String()[2:]+")", ids...)
	if err != nil {
		return err
	}
	void, err := collect(found, func(r scanner) (id sluice.RequestID, err error) {
		err = r.Scan(&id)
		return id, err
	})
	for i, e := range rows {
		if len(void) > 0 && slices.Contains(void, e.Request) {
			v := *e
			v.Voided = true
			rows[i] = &v
		}
	}
	return err
}
