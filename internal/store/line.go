package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/jobs"
)

// errNotHeld ends a transaction whose job is another worker's, or in another state.
var errNotHeld = errors.New("the job is not this worker's")

// change begins a transaction that changes lines of a job in one of some states. It takes
// the job's row until its end, so that such changes follow each other. ok is false where
// there is no such job.
func (db *DB) change(ctx context.Context, id jobs.JobID, states string, fn func(conn *sql.Conn, tx *sql.Tx) error) (ok bool, err error) {
	err = db.txOn(ctx, func(conn *sql.Conn, tx *sql.Tx) error {
		n, err := changedBy(tx.ExecContext(ctx, "UPDATE jobs SET changes = changes + 1 WHERE id = $1 AND "+states, string(id)))
		if err != nil {
			return err
		}
		if n == 0 {
			return errNotHeld
		}
		return fn(conn, tx)
	})
	if errors.Is(err, errNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// fenced is the condition on a job that is in a state, and whose steps are leased under a
// fence.
func fenced(s jobs.State, fence int64) string {
	return "state = '" + s.String() + "' AND fence = " + strconv.FormatInt(fence, 10)
}

// ResetLines deletes the lines of a job that is validated again.
func (db *DB) ResetLines(ctx context.Context, id jobs.JobID, fence int64) (bool, error) {
	ok, err := db.change(ctx, id, fenced(jobs.Validating, fence), func(_ *sql.Conn, tx *sql.Tx) error {
		return run(ctx, tx, string(id),
			"DELETE FROM job_lines WHERE job = $1",
			"UPDATE job_tenants SET lines = lines - (SELECT total FROM jobs WHERE id = $1) WHERE tenant = (SELECT tenant FROM jobs WHERE id = $1)",
			"UPDATE jobs SET total = 0, waiting = 0 WHERE id = $1")
	})
	return ok, told(err, "delete the lines of job %s", id)
}

// run runs statements that have one argument.
func run(ctx context.Context, tx *sql.Tx, arg string, statements ...string) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s, arg); err != nil {
			return err
		}
	}
	return nil
}

// PutLines adds a slice of lines to a job that is validated.
func (db *DB) PutLines(ctx context.Context, l *jobs.Lines) (room int, ok bool, err error) {
	id, n := l.Job.ID, len(l.Lines)
	doc, err := docOf(l.Job)
	if err != nil {
		return 0, false, err
	}
	room = n
	ok, err = db.change(ctx, id, fenced(jobs.Validating, l.Fence), func(conn *sql.Conn, tx *sql.Tx) error {
		room = n
		if n > 0 {
			if room, err = roomFor(ctx, tx, l); err != nil || room < n {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "UPDATE jobs SET doc = $4, total = total + $2, waiting = waiting + $2, lease_until_us = $3 WHERE id = $1", string(id), n, l.Until.UnixMicro(), doc); err != nil || n == 0 {
			return err
		}
		in := inserter{conn: conn, tx: tx, rows: db.engine.insertRows, here: &db.here, table: "job_lines", columns: []string{"job", "line", "begins", "bytes", "custom_id", "state", "claim", "worker", "due_us"}}
		row := func(v *values, i int) {
			l := &l.Lines[i]
			v.texts(string(id))
			v.figures(int64(l.Line), l.At, int64(l.Bytes))
			v.texts(l.CustomID)
			v.figures(0, 0)
			v.texts("")
			v.figures(0)
		}
		if in.rows == 1 {
			_, err = in.insertHere(ctx, n, rowsHere, row)
			return err
		}
		return in.insert(ctx, n, row, nil)
	})
	return room, ok, told(err, "add lines to job %s", id)
}

// roomFor counts lines towards the tenant's bound, or says how many of them it has room for.
func roomFor(ctx context.Context, tx *sql.Tx, l *jobs.Lines) (int, error) {
	n, t := len(l.Lines), string(l.Job.Caller.Tenant)
	held, err := changedBy(tx.ExecContext(ctx, "UPDATE job_tenants SET lines = lines + $2 WHERE tenant = $1 AND ($3 = 0 OR lines + $2 <= $3)", t, n, l.Bound))
	if err != nil || held > 0 {
		return n, err
	}
	var lines int
	err = tx.QueryRowContext(ctx, "SELECT lines FROM job_tenants WHERE tenant = $1", t).Scan(&lines)
	return min(max(l.Bound-lines, 0), n-1), err
}

// CustomIDs tells of the lines of a job.
func (db *DB) CustomIDs(ctx context.Context, id jobs.JobID, visit func(line int, customID string)) error {
	rows, err := db.read.QueryContext(ctx, "SELECT line, custom_id FROM job_lines WHERE job = $1", string(id))
	if err != nil {
		return fmt.Errorf("read the lines of job %s: %w", id, err)
	}
	defer rows.Close()
	for rows.Next() {
		var line int
		var custom string
		if err := rows.Scan(&line, &custom); err != nil {
			return fmt.Errorf("read the lines of job %s: %w", id, err)
		}
		visit(line, custom)
	}
	return told(rows.Err(), "read the lines of job %s", id)
}

// Beat says that a worker lives until a time.
func (db *DB) Beat(ctx context.Context, worker string, until time.Time) error {
	_, err := db.write.ExecContext(ctx, "INSERT INTO job_workers (id, until_us) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET until_us = excluded.until_us", worker, until.UnixMicro())
	return told(err, "renew the lease of worker %s", worker)
}

// Retire says that no worker but one is alive, where no other process can have the store.
func (db *DB) Retire(ctx context.Context, but string) error {
	if db.Shared() {
		return nil
	}
	err := db.tx(ctx, func(tx *sql.Tx) error {
		return run(ctx, tx, but, "DELETE FROM job_workers WHERE id <> $1", "UPDATE jobs SET lease_until_us = 0 WHERE ended = 0 AND lease_owner <> $1")
	})
	return told(err, "retire workers")
}

// claimable are lines that may be claimed, at $2: those that wait, and those whose worker
// is not alive.
const (
	waitingLines = "state = 0 AND due_us <= $2" // in the order of due_us, which is 0 at first
	orphanLines  = "state = 1 AND NOT EXISTS (SELECT 1 FROM job_workers w WHERE w.id = worker AND w.until_us > $2)"
)

// linesQuery asks for lines of job $1 by a condition, in the order of job_lines_due.
func linesQuery(where string, limit int) string {
	return fmt.Sprintf("SELECT line, begins, bytes, custom_id, claim, state FROM job_lines WHERE job = $1 AND %s ORDER BY due_us, line LIMIT %d", where, limit)
}

// linesWhere reads lines of a job by a condition.
func linesWhere(ctx context.Context, tx *sql.Tx, id jobs.JobID, where string, now time.Time, limit int) ([]jobs.Line, error) {
	rows, err := tx.QueryContext(ctx, linesQuery(where, limit), string(id), now.UnixMicro())
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (l jobs.Line, err error) {
		var state jobs.LineState
		err = r.Scan(&l.Line, &l.At, &l.Bytes, &l.CustomID, &l.Claim, &state)
		l.Lost = state == jobs.LineRunning
		return l, err
	})
}

// lineList is the numbers of lines, for a statement.
func lineList(lines []jobs.Line) string {
	var b strings.Builder
	for i := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(lines[i].Line))
	}
	return b.String()
}

// Claim gives a worker lines of a job in progress.
func (db *DB) Claim(ctx context.Context, c jobs.Claim) (lines []jobs.Line, err error) {
	id, now := c.Job, c.Now
	_, err = db.change(ctx, id, "state = 'in_progress'", func(conn *sql.Conn, tx *sql.Tx) error {
		var orphans []jobs.Line
		var err error
		if c.Lost {
			if orphans, err = linesWhere(ctx, tx, id, orphanLines, now, c.Limit); err != nil {
				return err
			}
		}
		waiting, err := linesWhere(ctx, tx, id, waitingLines, now, c.Limit-len(orphans))
		if err != nil {
			return err
		}
		if lines = append(orphans, waiting...); len(lines) == 0 {
			return nil
		}
		if err := db.voidLost(ctx, conn, tx, id, now, orphans); err != nil {
			return err
		}
		slices.SortFunc(lines, func(a, b jobs.Line) int { return cmp.Compare(a.Line, b.Line) })
		for i := range lines {
			lines[i].Claim++
		}
		if _, err := tx.ExecContext(ctx, "UPDATE job_lines SET state = 1, claim = claim + 1, worker = $2 WHERE job = $1 AND line IN ("+lineList(lines)+")", string(id), c.Worker); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE jobs SET waiting = waiting - $2, running = running + $2 WHERE id = $1", string(id), len(waiting))
		return err
	})
	if err != nil {
		return nil, told(err, "claim lines of job %s", id)
	}
	return lines, nil
}

// voidLost voids the requests that lost workers made of lines.
func (db *DB) voidLost(ctx context.Context, conn *sql.Conn, tx *sql.Tx, id jobs.JobID, now time.Time, lines []jobs.Line) error {
	ids := make([]sluice.RequestID, len(lines))
	for i, l := range lines {
		ids[i] = jobs.RequestOf(id, l.Line, l.Claim)
	}
	return db.void(ctx, conn, tx, now, ids)
}

// Post takes what a worker made of lines.
func (db *DB) Post(ctx context.Context, id jobs.JobID, now time.Time, posts []jobs.Posting) (stale []int, err error) {
	known, err := db.change(ctx, id, "ended = 0", func(conn *sql.Conn, tx *sql.Tx) error {
		p := poster{ctx: ctx, tx: tx, id: id}
		stale = nil
		var void []sluice.RequestID
		for i := range posts {
			taken, err := p.post(&posts[i])
			if err != nil {
				return err
			}
			if !taken {
				stale = append(stale, i)
			}
			if !taken && posts[i].Result != nil || posts[i].Void {
				void = append(void, jobs.RequestOf(id, posts[i].Line, posts[i].Claim))
			}
		}
		if err := p.sum(); err != nil {
			return err
		}
		return db.void(ctx, conn, tx, now, void)
	})
	if err != nil {
		return nil, told(err, "post lines of job %s", id)
	}
	if known {
		return stale, nil
	}
	stale = nil
	var void []sluice.RequestID
	for i := range posts { // the job has ended without them
		stale = append(stale, i)
		if posts[i].Result != nil || posts[i].Void {
			void = append(void, jobs.RequestOf(id, posts[i].Line, posts[i].Claim))
		}
	}
	err = db.txOn(ctx, func(conn *sql.Conn, tx *sql.Tx) error { return db.void(ctx, conn, tx, now, void) })
	return stale, told(err, "void requests of job %s", id)
}

// poster posts lines of one job in one transaction.
type poster struct {
	ctx    context.Context
	tx     *sql.Tx
	id     jobs.JobID
	counts [jobs.NumLineStates]int
	usage  sluice.Usage
	cost   sluice.Nano
}

// post posts one line, and reports whether its claim is the line's.
func (p *poster) post(post *jobs.Posting) (bool, error) {
	state := jobs.LineWaiting
	if post.Result != nil {
		state = post.Result.State
	}
	n, err := changedBy(p.tx.ExecContext(p.ctx, "UPDATE job_lines SET state = $4, due_us = $5, worker = '' WHERE job = $1 AND line = $2 AND claim = $3 AND state = 1",
		string(p.id), post.Line, post.Claim, int64(state), microsOf(post.Due)))
	if err != nil || n == 0 {
		return false, err
	}
	p.counts[state]++
	r := post.Result
	if r == nil {
		return true, nil
	}
	p.usage.Add(r.Usage)
	p.cost += r.Cost
	body := r.Body
	if body == nil {
		body = []byte{}
	}
	told, err := toldText(&r.Told)
	if err != nil {
		return true, err
	}
	_, err = p.tx.ExecContext(p.ctx, "INSERT INTO job_results (job, line, status, request_id, type, body, cost, ended_us, told) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		string(p.id), r.Line, r.Status, string(r.Request), plainText(r.Type), body, int64(r.Cost), microsOf(r.Ended), told)
	return true, err
}

// toldText is what is told beside an answer, empty for nothing.
func toldText(t *jobs.Told) (string, error) {
	b, err := json.Marshal(t)
	if string(b) == "{}" {
		return "", err
	}
	return plainText(string(b)), err
}

// sum adds what was posted to the job.
func (p *poster) sum() error {
	c := &p.counts
	ended := c[jobs.LineSucceeded] + c[jobs.LineFailed] + c[jobs.LineCancelled] + c[jobs.LineExpired]
	if ended+c[jobs.LineWaiting] == 0 {
		return nil
	}
	var text string
	if err := p.tx.QueryRowContext(p.ctx, "SELECT usage FROM jobs WHERE id = $1", string(p.id)).Scan(&text); err != nil {
		return err
	}
	var u sluice.Usage
	if text != "" {
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			return err
		}
	}
	u.Add(p.usage)
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	_, err = p.tx.ExecContext(p.ctx, `UPDATE jobs SET waiting = waiting + $2, running = running - $3, succeeded = succeeded + $4, failed = failed + $5,
		cancelled = cancelled + $6, expired = expired + $7, usage = $8, cost = cost + $9 WHERE id = $1`,
		string(p.id), c[jobs.LineWaiting], ended+c[jobs.LineWaiting], c[jobs.LineSucceeded], c[jobs.LineFailed], c[jobs.LineCancelled], c[jobs.LineExpired], string(b), int64(p.cost))
	return err
}

// Results are lines that have ended.
func (db *DB) Results(ctx context.Context, id jobs.JobID, after, limit int, maxBytes int64) ([]jobs.Result, error) {
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(`SELECT l.line, l.custom_id, l.state, COALESCE(r.status, 0), COALESCE(r.request_id, ''), COALESCE(r.type, ''), r.body, COALESCE(r.cost, 0), COALESCE(r.ended_us, 0), COALESCE(r.told, '')
		FROM job_lines l LEFT JOIN job_results r ON r.job = l.job AND r.line = l.line
		WHERE l.job = $1 AND l.line > $2 AND l.state > 1 ORDER BY l.line LIMIT %d`, limit), string(id), after)
	if err != nil {
		return nil, fmt.Errorf("read results of job %s: %w", id, err)
	}
	defer rows.Close()
	var out []jobs.Result
	for size := int64(0); size < maxBytes && rows.Next(); {
		var r jobs.Result
		var ended int64
		var told string
		if err := rows.Scan(&r.Line, &r.CustomID, &r.State, &r.Status, &r.Request, &r.Type, &r.Body, &r.Cost, &ended, &told); err != nil {
			return nil, fmt.Errorf("read results of job %s: %w", id, err)
		}
		if told != "" {
			if err := json.Unmarshal([]byte(told), &r.Told); err != nil {
				return nil, fmt.Errorf("read results of job %s: line %d: %w", id, r.Line, err)
			}
		}
		if ended > 0 {
			r.Ended = fromMicros(ended)
		}
		size += int64(len(r.Body)+len(told)) + 1
		out = append(out, r)
	}
	return out, rows.Err()
}
