-- +goose Up

-- What is left of files that are deleted and of jobs that have ended: it is deleted by and
-- by, when it is due.
CREATE TABLE job_litter (
    id     TEXT   NOT NULL PRIMARY KEY, -- of the file or job
    what   TEXT   NOT NULL,             -- file or job
    tenant TEXT   NOT NULL,
    due_us BIGINT NOT NULL
);
CREATE INDEX job_litter_due ON job_litter (due_us, id);

-- Jobs that ended before: the answers of single requests are kept for their time.
INSERT INTO job_litter (id, what, tenant, due_us)
    SELECT id, 'job', tenant, CASE WHEN kind = 'async' THEN results_us ELSE 0 END FROM jobs WHERE ended = 1 AND EXISTS (SELECT 1 FROM job_lines WHERE job = jobs.id);

-- Lines that wait are claimed in the order in which they are due, without a look at others.
DROP INDEX job_lines_state;
CREATE INDEX job_lines_due ON job_lines (job, state, due_us, line);

-- +goose Down
DROP INDEX job_lines_due;
CREATE INDEX job_lines_state ON job_lines (job, state, line);
DROP TABLE job_litter;
