package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sluice/internal/jobs"
)

// endedLines is how many lines one transaction ends.
const endedLines = 2000

// EndLines ends a slice of the lines of a job that nobody runs.
func (db *DB) EndLines(ctx context.Context, id jobs.JobID, now time.Time, as jobs.LineState) (running int, more bool, err error) {
	_, err = db.change(ctx, id, "ended = 0", func(conn *sql.Conn, tx *sql.Tx) error {
		waiting, err := changedBy(tx.ExecContext(ctx, fmt.Sprintf("UPDATE job_lines SET state = $2 WHERE job = $1 AND line IN (SELECT line FROM job_lines WHERE job = $1 AND state = 0 LIMIT %d)", endedLines), string(id), int64(as)))
		if err != nil {
			return err
		}
		var orphans []jobs.Line
		if more = waiting == endedLines; !more {
			if orphans, err = linesWhere(ctx, tx, id, orphanLines, now, endedLines); err != nil {
				return err
			}
			more = len(orphans) == endedLines
		}
		if err := db.voidLost(ctx, conn, tx, id, now, orphans); err != nil {
			return err
		}
		if len(orphans) > 0 {
			if _, err := tx.ExecContext(ctx, "UPDATE job_lines SET state = $2, worker = '' WHERE job = $1 AND line IN ("+lineList(orphans)+")", string(id), int64(as)); err != nil {
				return err
			}
		}
		column := as.String() // expired or cancelled
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE jobs SET waiting = waiting - $2, running = running - $3, %s = %[1]s + $2 + $3 WHERE id = $1", column), string(id), waiting, len(orphans)); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT running FROM jobs WHERE id = $1", string(id)).Scan(&running)
	})
	return running, more, told(err, "end lines of job %s", id)
}
