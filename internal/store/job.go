package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sluice"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// jobDoc is what is kept of a job that the database need not know.
type jobDoc struct {
	Ending     jobs.State        `json:"ending,omitzero"`
	Key        sluice.KeyID      `json:"key,omitempty"`
	User       sluice.UserID     `json:"user,omitempty"`
	Run        sluice.RunID      `json:"run,omitempty"`
	Terms      jobs.Terms        `json:"terms"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Op         string            `json:"op"`
	Model      string            `json:"model,omitempty"`
	Output     jobs.FileID       `json:"output,omitempty"`
	Errors     jobs.FileID       `json:"errors,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Window     time.Duration     `json:"window"`
	Deadline   time.Time         `json:"deadline"`
	Started    time.Time         `json:"started,omitzero"`
	Finalizing time.Time         `json:"finalizing,omitzero"`
	Cancelling time.Time         `json:"cancelling,omitzero"`
	Ended      time.Time         `json:"ended,omitzero"`
	Keep       time.Duration     `json:"keep"`
	Problems   []jobs.Problem    `json:"problems,omitempty"`
	Dropped    int               `json:"dropped,omitempty"`
	Bytes      int64             `json:"bytes,omitempty"`
	Urgency    jobs.Urgency      `json:"urgency,omitempty"`
	Held       *jobs.Hold        `json:"held,omitempty"`
	Checked    jobs.Checked      `json:"checked,omitzero"`
	Written    jobs.Written      `json:"written,omitzero"`
}

func docOf(j *jobs.Job) (string, error) {
	b, err := json.Marshal(jobDoc{
		Ending: j.Ending, Key: j.Caller.Key, User: j.Caller.User, Run: j.Caller.Run, Terms: j.Terms, Endpoint: j.Endpoint, Op: j.Op.String(), Model: j.Model,
		Output: j.Output, Errors: j.Errors, Metadata: j.Metadata, Window: j.Window, Deadline: j.Deadline, Started: j.Started, Finalizing: j.Finalizing,
		Cancelling: j.Cancelling, Ended: j.Ended, Keep: j.Keep, Problems: j.Problems, Dropped: j.Dropped, Bytes: j.Bytes, Urgency: j.Urgency, Held: j.Held,
		Checked: j.Checked, Written: j.Written,
	})
	return string(b), err
}

func (d *jobDoc) into(j *jobs.Job) error {
	j.Ending, j.Terms, j.Endpoint, j.Model, j.Output, j.Errors = d.Ending, d.Terms, d.Endpoint, d.Model, d.Output, d.Errors
	j.Caller.Key, j.Caller.User, j.Caller.Run = d.Key, d.User, d.Run
	j.Metadata, j.Window, j.Deadline, j.Started, j.Finalizing, j.Cancelling = d.Metadata, d.Window, d.Deadline, d.Started, d.Finalizing, d.Cancelling
	j.Ended, j.Keep, j.Problems, j.Dropped, j.Bytes, j.Urgency, j.Held = d.Ended, d.Keep, d.Problems, d.Dropped, d.Bytes, d.Urgency, d.Held
	j.Checked, j.Written = d.Checked, d.Written
	for op := range wire.Operation(wire.NumOperations) {
		if op.String() == d.Op {
			j.Op = op
			return nil
		}
	}
	return fmt.Errorf("operation %q is not known: a later version of sluice has made the job", d.Op)
}

const jobColumns = "id, tenant, project, kind, state, created_us, results_us, input, doc, total, waiting, running, succeeded, failed, cancelled, expired, usage, cost"

func scanJob(row scanner) (j jobs.Job, err error) {
	var created, results int64
	var doc, usage string
	c := &j.Counts
	err = row.Scan(&j.ID, &j.Caller.Tenant, &j.Caller.Project, word{&j.Kind}, word{&j.State}, &created, &results, &j.Input, &doc,
		&c.Total, &c.Waiting, &c.Running, &c.Succeeded, &c.Failed, &c.Cancelled, &c.Expired, &usage, &j.Cost)
	if err != nil {
		return j, err
	}
	j.Created = fromMicros(created)
	if results > 0 {
		j.ResultsExpire = fromMicros(results)
	}
	if usage != "" {
		if err := json.Unmarshal([]byte(usage), &j.Usage); err != nil {
			return j, fmt.Errorf("read job %s: %w", j.ID, err)
		}
	}
	var d jobDoc
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		return j, fmt.Errorf("read job %s: %w", j.ID, err)
	}
	if err := d.into(&j); err != nil {
		return j, fmt.Errorf("read job %s: %w", j.ID, err)
	}
	if j.State.Ended() && j.Started.IsZero() { // its lines were never all known, and none of them has a result
		j.Counts = jobs.Counts{}
	}
	return j, nil
}

// PutJob adds a job.
func (db *DB) PutJob(ctx context.Context, j *jobs.Job, p jobs.Put) error {
	doc, err := docOf(j)
	if err != nil {
		return err
	}
	t := string(j.Caller.Tenant)
	err = db.tx(ctx, func(tx *sql.Tx) error {
		if err := takeOnce(ctx, tx, p.Once); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, holdOf, t); err != nil {
			return err
		}
		held, err := changedBy(tx.ExecContext(ctx, "UPDATE job_tenants SET jobs = jobs + 1 WHERE tenant = $1 AND jobs < $2 AND ($3 = 0 OR lines < $3)", t, p.Bounds.TenantJobs, p.Bounds.TenantLines))
		if err != nil {
			return err
		}
		if held == 0 {
			return tooMany(ctx, tx, t, p.Bounds)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO jobs (`+jobColumns+`, ended, lease_owner, lease_until_us, fence, changes)
			VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, 0, 0, 0, 0, 0, 0, 0, '', 0, 0, $9, $10, $11, 0)`,
			string(j.ID), t, string(j.Caller.Project), j.Kind.String(), j.State.String(), j.Created.UnixMicro(), string(j.Input), doc,
			p.Owner, microsOf(p.Until), flag(p.Owner != ""))
		return err
	})
	return told(err, "add job %s", j.ID)
}

// tooMany is what is said to a tenant that may have no further job.
func tooMany(ctx context.Context, tx *sql.Tx, t string, b jobs.Bounds) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT jobs FROM job_tenants WHERE tenant = $1", t).Scan(&n); err != nil {
		return err
	}
	e := &sluice.Error{
		Kind: sluice.KindRateLimited, Reason: sluice.ConcurrencyLimited, RetryAfter: wire.NoTime,
		Msg: fmt.Sprintf("the tenant has %d batches that have not ended, which is the bound", b.TenantJobs), Hint: "wait until one has ended, or cancel one",
	}
	if n < b.TenantJobs {
		e.Msg = fmt.Sprintf("the tenant's batches that have not ended have %d lines, which is the bound", b.TenantLines)
	}
	return e
}

// Job reads a job.
func (db *DB) Job(ctx context.Context, t sluice.TenantID, id jobs.JobID) (jobs.Job, error) {
	j, err := scanJob(db.read.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM jobs WHERE id = $1 AND ($2 = '' OR tenant = $2)", string(id), string(t)))
	if errors.Is(err, sql.ErrNoRows) {
		err = missing("id", "batch")
	}
	return j, told(err, "read job %s", id)
}

// Jobs is a page of jobs, newest first.
func (db *DB) Jobs(ctx context.Context, q jobs.JobQuery) ([]jobs.Job, error) {
	var c conditions
	for _, f := range [...]struct{ part, value string }{{"tenant = $?", string(q.Tenant)}, {"project = $?", string(q.Project)}} {
		if f.value != "" {
			c.add(f.part, f.value)
		}
	}
	if !q.Any {
		c.add("kind = $?", q.Kind.String())
	}
	order := "DESC"
	for _, f := range [...]struct {
		id     jobs.JobID
		beyond string
	}{{q.After, "<"}, {q.Before, ">"}} {
		if f.id == "" {
			continue
		}
		from, err := db.Job(ctx, q.Tenant, f.id)
		if err != nil {
			return nil, err
		}
		c.after(f.beyond, from.Created, string(from.ID))
		if f.beyond == ">" { // the page that ends just before it
			order = "ASC"
		}
	}
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM jobs%s ORDER BY created_us %s, id %[3]s LIMIT %d", jobColumns, c.where(), order, q.Limit+1), c.args...)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return collect(rows, scanJob)
}

// OpenJobs are the jobs that have not ended, of each tenant in turn.
func (db *DB) OpenJobs(ctx context.Context, limit int) ([]jobs.Job, error) {
	rows, err := db.read.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM jobs JOIN
		(SELECT id AS open_id, ROW_NUMBER() OVER (PARTITION BY tenant ORDER BY created_us, id) AS turn FROM jobs WHERE ended = 0) AS turns ON id = open_id
		ORDER BY turn, created_us, id LIMIT %d`, jobColumns, limit))
	if err != nil {
		return nil, fmt.Errorf("read open jobs: %w", err)
	}
	return collect(rows, scanJob)
}

// LeaseJob gives an owner the steps of a job.
func (db *DB) LeaseJob(ctx context.Context, id jobs.JobID, owner string, now, until time.Time) (fence int64, ok bool, err error) {
	err = db.write.QueryRowContext(ctx, `UPDATE jobs SET lease_owner = $2, lease_until_us = $4, fence = CASE WHEN lease_owner = $2 THEN fence ELSE fence + 1 END
		WHERE id = $1 AND (lease_owner = $2 OR lease_until_us <= $3) RETURNING fence`, string(id), owner, now.UnixMicro(), until.UnixMicro()).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("lease job %s: %w", id, err)
	}
	return fence, true, nil
}

// SaveJob replaces what is known of a job, if it is in a state and its fence is one.
func (db *DB) SaveJob(ctx context.Context, j *jobs.Job, was jobs.State, fence int64) (ok bool, err error) {
	doc, err := docOf(j)
	if err != nil {
		return false, err
	}
	ended := j.State.Ended()
	err = db.tx(ctx, func(tx *sql.Tx) error {
		n, err := changedBy(tx.ExecContext(ctx, "UPDATE jobs SET state = $4, doc = $5, ended = $6, results_us = $7 WHERE id = $1 AND state = $2 AND ($3 = 0 OR fence = $3) AND ended = 0",
			string(j.ID), was.String(), fence, j.State.String(), doc, flag(ended), microsOf(j.ResultsExpire)))
		if ok = n > 0; err != nil || !ok || !ended {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE job_tenants SET jobs = jobs - 1, lines = lines - (SELECT total FROM jobs WHERE id = $2) WHERE tenant = $1", string(j.Caller.Tenant), string(j.ID)); err != nil {
			return err
		}
		over := j.Ended // its lines are
		if j.Kind == jobs.Async {
			over = j.ResultsExpire
		}
		if err := addLitter(ctx, tx, jobLitter, string(j.ID), j.Caller.Tenant, over); err != nil {
			return err
		}
		if err := addHandoverLitter(ctx, tx, j, j.ResultsExpire); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE files SET ready = 1, expires_us = $4 WHERE tenant = $1 AND id IN ($2, $3)", string(j.Caller.Tenant), string(j.Output), string(j.Errors), microsOf(j.ResultsExpire))
		return err
	})
	return ok, told(err, "save job %s", j.ID)
}

// DropJob deletes a job that has ended.
func (db *DB) DropJob(ctx context.Context, t sluice.TenantID, id jobs.JobID) error {
	err := db.tx(ctx, func(tx *sql.Tx) error { return dropJob(ctx, tx, t, id) })
	return told(err, "delete job %s", id)
}

func dropJob(ctx context.Context, tx *sql.Tx, t sluice.TenantID, id jobs.JobID) error {
	j, err := scanJob(tx.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM jobs WHERE tenant = $1 AND id = $2 AND ended = 1", string(t), string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return missing("id", "batch that has ended")
	}
	if err != nil {
		return err
	}
	if err := run(ctx, tx, string(id), "DELETE FROM jobs WHERE id = $1", "DELETE FROM handovers WHERE job = $1 AND tidied = 1"); err != nil {
		return err
	}
	if err := addLitter(ctx, tx, jobLitter, string(id), t, j.Ended); err != nil {
		return err
	}
	if err := addHandoverLitter(ctx, tx, &j, j.Ended); err != nil {
		return err
	}
	for _, f := range [...]jobs.FileID{j.Output, j.Errors} {
		if err := dropHidden(ctx, tx, t, f); err != nil {
			return err
		}
	}
	return nil
}

// dropHidden drops a file that is a job's own.
func dropHidden(ctx context.Context, tx *sql.Tx, t sluice.TenantID, id jobs.FileID) error {
	var hidden bool
	err := tx.QueryRowContext(ctx, "SELECT hidden FROM files WHERE tenant = $1 AND id = $2", string(t), string(id)).Scan(&hidden)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !hidden {
		return nil
	}
	if err != nil {
		return err
	}
	return dropFile(ctx, tx, t, id)
}
