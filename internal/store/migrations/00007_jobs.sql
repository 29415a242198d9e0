-- +goose Up

-- Files, jobs and their lines: see the package jobs. BYTEA is what Postgres calls bytes;
-- SQLite keeps them as they are under any name.
CREATE TABLE files (
    id         TEXT   NOT NULL PRIMARY KEY,
    tenant     TEXT   NOT NULL,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    purpose    TEXT   NOT NULL,
    bytes      BIGINT NOT NULL,
    ready      BIGINT NOT NULL,
    hidden     BIGINT NOT NULL,
    created_us BIGINT NOT NULL,
    expires_us BIGINT NOT NULL -- 0 is never
);
CREATE INDEX files_tenant ON files (tenant, created_us, id);
CREATE INDEX files_expires ON files (expires_us) WHERE expires_us > 0;
CREATE INDEX files_unready ON files (created_us) WHERE ready = 0;

CREATE TABLE file_chunks (
    file TEXT   NOT NULL,
    n    BIGINT NOT NULL,
    body BYTEA  NOT NULL,
    PRIMARY KEY (file, n)
);

-- What each tenant holds of its bounds.
CREATE TABLE job_tenants (
    tenant     TEXT   NOT NULL PRIMARY KEY,
    file_bytes BIGINT NOT NULL,
    jobs       BIGINT NOT NULL,
    lines      BIGINT NOT NULL
);

CREATE TABLE jobs (
    id             TEXT   NOT NULL PRIMARY KEY,
    tenant         TEXT   NOT NULL,
    project        TEXT   NOT NULL,
    kind           TEXT   NOT NULL,
    state          TEXT   NOT NULL,
    ended          BIGINT NOT NULL,
    created_us     BIGINT NOT NULL,
    results_us     BIGINT NOT NULL, -- when its results are gone; 0 until it has ended
    input          TEXT   NOT NULL,
    doc            TEXT   NOT NULL, -- JSON
    total          BIGINT NOT NULL,
    waiting        BIGINT NOT NULL,
    running        BIGINT NOT NULL,
    succeeded      BIGINT NOT NULL,
    failed         BIGINT NOT NULL,
    cancelled      BIGINT NOT NULL,
    expired        BIGINT NOT NULL,
    usage          TEXT   NOT NULL, -- JSON, empty if there is none
    cost           BIGINT NOT NULL,
    lease_owner    TEXT   NOT NULL,
    lease_until_us BIGINT NOT NULL,
    fence          BIGINT NOT NULL,
    changes        BIGINT NOT NULL  -- counts changes of its lines, which follow each other
);
CREATE INDEX jobs_tenant ON jobs (tenant, created_us, id);
CREATE INDEX jobs_open ON jobs (created_us, id) WHERE ended = 0;
CREATE INDEX jobs_results ON jobs (results_us) WHERE results_us > 0;
CREATE INDEX jobs_input ON jobs (input) WHERE ended = 0;

CREATE TABLE job_lines (
    job       TEXT   NOT NULL,
    line      BIGINT NOT NULL,
    begins    BIGINT NOT NULL,
    bytes     BIGINT NOT NULL,
    custom_id TEXT   NOT NULL,
    state     BIGINT NOT NULL, -- a number of jobs.LineState
    claim     BIGINT NOT NULL,
    worker    TEXT   NOT NULL,
    due_us    BIGINT NOT NULL,
    PRIMARY KEY (job, line)
);
CREATE INDEX job_lines_state ON job_lines (job, state, line);

CREATE TABLE job_results (
    job        TEXT   NOT NULL,
    line       BIGINT NOT NULL,
    status     BIGINT NOT NULL,
    request_id TEXT   NOT NULL,
    type       TEXT   NOT NULL,
    body       BYTEA  NOT NULL,
    cost       BIGINT NOT NULL,
    ended_us   BIGINT NOT NULL,
    PRIMARY KEY (job, line)
);

CREATE TABLE job_workers (
    id       TEXT   NOT NULL PRIMARY KEY,
    until_us BIGINT NOT NULL
);

-- Requests of lines that were run by somebody else, too: their entries are in no sum.
-- They may come after the row here or before it.
CREATE TABLE voided_requests (
    request_id TEXT   NOT NULL PRIMARY KEY,
    at_us      BIGINT NOT NULL
);
INSERT INTO meta (name, value) VALUES ('void_seq', 0);

ALTER TABLE entries ADD COLUMN voided BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE entries DROP COLUMN voided;
DELETE FROM meta WHERE name = 'void_seq';
DROP TABLE voided_requests;
DROP TABLE job_workers;
DROP TABLE job_results;
DROP TABLE job_lines;
DROP TABLE jobs;
DROP TABLE job_tenants;
DROP TABLE file_chunks;
DROP TABLE files;
