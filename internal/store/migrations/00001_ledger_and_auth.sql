-- One schema for SQLite and Postgres. Times are microseconds since 1970 UTC,
-- money is nano-dollars, enums are their words, flags are 0 or 1.

-- +goose Up

-- Attempts, and requests that had none.
CREATE TABLE entries (
    request_id          TEXT   NOT NULL,
    attempt             BIGINT NOT NULL,
    at_us               BIGINT NOT NULL,
    ended_us            BIGINT NOT NULL,
    tenant              TEXT   NOT NULL,
    project             TEXT   NOT NULL,
    key_id              TEXT   NOT NULL,
    user_id             TEXT   NOT NULL,
    task                TEXT   NOT NULL,
    labels              TEXT   NOT NULL, -- k=v,k=v in the order of the request
    class               TEXT   NOT NULL,
    model               TEXT   NOT NULL,
    pool                TEXT   NOT NULL,
    backend             TEXT   NOT NULL,
    provider            TEXT   NOT NULL,
    upstream_model      TEXT   NOT NULL,
    served_model        TEXT   NOT NULL,
    upstream_request_id TEXT   NOT NULL,
    policy              TEXT   NOT NULL,
    final               BIGINT NOT NULL,
    outcome             TEXT   NOT NULL,
    reason              TEXT   NOT NULL,
    status              BIGINT NOT NULL,
    late                BIGINT NOT NULL,
    stream              BIGINT NOT NULL,
    operation           TEXT   NOT NULL,
    dialect             TEXT   NOT NULL,
    input               BIGINT NOT NULL,
    cache_read          BIGINT NOT NULL,
    cache_write         BIGINT NOT NULL,
    cache_write_1h      BIGINT NOT NULL,
    audio_input         BIGINT NOT NULL,
    output              BIGINT NOT NULL,
    reasoning           BIGINT NOT NULL,
    audio_output        BIGINT NOT NULL,
    tool_calls          BIGINT NOT NULL,
    web_searches        BIGINT NOT NULL,
    service_tier        TEXT   NOT NULL,
    usage_source        TEXT   NOT NULL,
    anomalous           BIGINT NOT NULL,
    cost                BIGINT NOT NULL,
    cost_high           BIGINT NOT NULL,
    price_version       TEXT   NOT NULL,
    estimated_input     BIGINT NOT NULL,
    output_bound        BIGINT NOT NULL,
    held_spend          BIGINT NOT NULL,
    queued_us           BIGINT NOT NULL,
    first_token_us      BIGINT NOT NULL,
    duration_us         BIGINT NOT NULL,
    detail              TEXT   NOT NULL, -- JSON, empty if there is none
    PRIMARY KEY (request_id, attempt)
);
CREATE INDEX entries_at ON entries (at_us, request_id);
CREATE INDEX entries_tenant_at ON entries (tenant, at_us, request_id);

-- Σ entries by hour of arrival and everything that usage is asked by, but for
-- user, which has no bound.
CREATE TABLE usage_hours (
    tenant         TEXT   NOT NULL,
    hour_us        BIGINT NOT NULL,
    project        TEXT   NOT NULL,
    key_id         TEXT   NOT NULL,
    task           TEXT   NOT NULL,
    model          TEXT   NOT NULL,
    backend        TEXT   NOT NULL,
    provider       TEXT   NOT NULL,
    class          TEXT   NOT NULL,
    outcome        TEXT   NOT NULL,
    reason         TEXT   NOT NULL,
    entries        BIGINT NOT NULL,
    requests       BIGINT NOT NULL,
    attempts       BIGINT NOT NULL,
    estimated      BIGINT NOT NULL,
    anomalous      BIGINT NOT NULL,
    late           BIGINT NOT NULL,
    input          BIGINT NOT NULL,
    cache_read     BIGINT NOT NULL,
    cache_write    BIGINT NOT NULL,
    cache_write_1h BIGINT NOT NULL,
    audio_input    BIGINT NOT NULL,
    output         BIGINT NOT NULL,
    reasoning      BIGINT NOT NULL,
    audio_output   BIGINT NOT NULL,
    tool_calls     BIGINT NOT NULL,
    web_searches   BIGINT NOT NULL,
    cost           BIGINT NOT NULL,
    cost_high      BIGINT NOT NULL,
    queued_us      BIGINT NOT NULL,
    first_token_us BIGINT NOT NULL,
    first_tokens   BIGINT NOT NULL,
    duration_us    BIGINT NOT NULL,
    PRIMARY KEY (tenant, hour_us, project, key_id, task, model, backend, provider, class, outcome, reason)
);
CREATE INDEX usage_hours_hour ON usage_hours (hour_us);

-- The same by user, with few other dimensions.
CREATE TABLE user_hours (
    tenant         TEXT   NOT NULL,
    hour_us        BIGINT NOT NULL,
    project        TEXT   NOT NULL,
    user_id        TEXT   NOT NULL,
    model          TEXT   NOT NULL,
    entries        BIGINT NOT NULL,
    requests       BIGINT NOT NULL,
    attempts       BIGINT NOT NULL,
    estimated      BIGINT NOT NULL,
    anomalous      BIGINT NOT NULL,
    late           BIGINT NOT NULL,
    input          BIGINT NOT NULL,
    cache_read     BIGINT NOT NULL,
    cache_write    BIGINT NOT NULL,
    cache_write_1h BIGINT NOT NULL,
    audio_input    BIGINT NOT NULL,
    output         BIGINT NOT NULL,
    reasoning      BIGINT NOT NULL,
    audio_output   BIGINT NOT NULL,
    tool_calls     BIGINT NOT NULL,
    web_searches   BIGINT NOT NULL,
    cost           BIGINT NOT NULL,
    cost_high      BIGINT NOT NULL,
    queued_us      BIGINT NOT NULL,
    first_token_us BIGINT NOT NULL,
    first_tokens   BIGINT NOT NULL,
    duration_us    BIGINT NOT NULL,
    PRIMARY KEY (tenant, hour_us, project, user_id, model)
);
CREATE INDEX user_hours_hour ON user_hours (hour_us);

-- Auth records: doc is the record as JSON, without its secrets.
CREATE TABLE plans (
    id  TEXT NOT NULL PRIMARY KEY,
    doc TEXT NOT NULL
);

CREATE TABLE tenants (
    id      TEXT NOT NULL PRIMARY KEY,
    plan_id TEXT NOT NULL, -- may be a plan that the configuration file declares
    doc     TEXT NOT NULL
);
CREATE INDEX tenants_plan ON tenants (plan_id);

CREATE TABLE projects (
    tenant_id TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
    id        TEXT NOT NULL,
    doc       TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE api_keys (
    id         TEXT NOT NULL PRIMARY KEY,
    tenant_id  TEXT NOT NULL, -- may be a tenant that the configuration file declares
    project_id TEXT NOT NULL,
    doc        TEXT NOT NULL
);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, project_id);

CREATE TABLE key_secrets (
    key_id       TEXT   NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    position     BIGINT NOT NULL, -- 0 is the newest
    hash         TEXT   NOT NULL, -- hexadecimal
    not_after_us BIGINT,          -- NULL never ends
    PRIMARY KEY (key_id, position)
);

CREATE TABLE admin_tokens (
    id   TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    doc  TEXT NOT NULL
);

-- Counters: auth_version is raised by every write to the auth tables.
CREATE TABLE meta (
    name  TEXT   NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO meta (name, value) VALUES ('auth_version', 1);

-- +goose Down
DROP TABLE meta;
DROP TABLE admin_tokens;
DROP TABLE key_secrets;
DROP TABLE api_keys;
DROP TABLE projects;
DROP TABLE tenants;
DROP TABLE plans;
DROP TABLE user_hours;
DROP TABLE usage_hours;
DROP TABLE entries;
