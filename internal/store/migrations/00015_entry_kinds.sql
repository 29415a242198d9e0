-- +goose Up

-- What many entries have in common is kept once: see the package's kind. entries becomes a
-- view of both tables, with the columns that it had. An INTEGER that is the key is what
-- SQLite finds rows by.
CREATE TABLE entry_kinds (
    id             INTEGER NOT NULL PRIMARY KEY,
    mark           TEXT    NOT NULL UNIQUE, -- a hash of what follows, in hexadecimal digits
    project        TEXT    NOT NULL,
    key_id         TEXT    NOT NULL,
    task           TEXT    NOT NULL,
    class          TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    pool           TEXT    NOT NULL,
    backend        TEXT    NOT NULL,
    provider       TEXT    NOT NULL,
    upstream_model TEXT    NOT NULL,
    served_model   TEXT    NOT NULL,
    policy         TEXT    NOT NULL,
    final          BIGINT  NOT NULL,
    outcome        TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    status         BIGINT  NOT NULL,
    late           BIGINT  NOT NULL,
    stream         BIGINT  NOT NULL,
    operation      TEXT    NOT NULL,
    dialect        TEXT    NOT NULL,
    service_tier   TEXT    NOT NULL,
    usage_source   TEXT    NOT NULL,
    anomalous      BIGINT  NOT NULL,
    price_version  TEXT    NOT NULL,
    finish         TEXT    NOT NULL,
    tier           BIGINT  NOT NULL
);

-- Kinds of entries that were there before are known by their numbers: a hash is none.
INSERT INTO entry_kinds
    SELECT ROW_NUMBER() OVER (), CAST(ROW_NUMBER() OVER () AS TEXT), d.*
    FROM (
        SELECT DISTINCT project, key_id, task, class, model, pool, backend, provider, upstream_model, served_model, policy, final, outcome,
            reason, status, late, stream, operation, dialect, service_tier, usage_source, anomalous, price_version, finish, tier
        FROM entries
    ) AS d;
INSERT INTO meta (name, value) SELECT 'entry_kind', COUNT(*) FROM entry_kinds;

CREATE TABLE entry_rows (
    request_id          TEXT    NOT NULL,
    attempt             BIGINT  NOT NULL,
    at_us               BIGINT  NOT NULL,
    ended_us            BIGINT  NOT NULL,
    tenant              TEXT    NOT NULL,
    kind                INTEGER NOT NULL,
    user_id             TEXT    NOT NULL,
    labels              TEXT    NOT NULL, -- k=v,k=v in the order of the request
    upstream_request_id TEXT    NOT NULL,
    input               BIGINT  NOT NULL,
    cache_read          BIGINT  NOT NULL,
    cache_write         BIGINT  NOT NULL,
    cache_write_1h      BIGINT  NOT NULL,
    audio_input         BIGINT  NOT NULL,
    output              BIGINT  NOT NULL,
    reasoning           BIGINT  NOT NULL,
    audio_output        BIGINT  NOT NULL,
    tool_calls          BIGINT  NOT NULL,
    web_searches        BIGINT  NOT NULL,
    units               BIGINT  NOT NULL, -- as the operation bills, where that is not by tokens
    cost                BIGINT  NOT NULL,
    cost_high           BIGINT  NOT NULL,
    estimated_input     BIGINT  NOT NULL,
    output_bound        BIGINT  NOT NULL,
    held_spend          BIGINT  NOT NULL,
    queued_us           BIGINT  NOT NULL,
    first_token_us      BIGINT  NOT NULL,
    duration_us         BIGINT  NOT NULL,
    run_id              TEXT    NOT NULL, -- the run that the request was part of, empty if it was of none
    shadow_of           TEXT    NOT NULL, -- the request that it is a copy of, empty for what clients asked
    voided              BIGINT  NOT NULL,
    detail              TEXT    NOT NULL, -- JSON, empty if there is none
    PRIMARY KEY (request_id, attempt)
);

-- A few kinds are looked up for all entries: CROSS JOIN has SQLite take entries first.
INSERT INTO entry_rows
    SELECT e.request_id, e.attempt, e.at_us, e.ended_us, e.tenant, k.id, e.user_id, e.labels, e.upstream_request_id,
        e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.audio_input, e.output, e.reasoning, e.audio_output,
        e.tool_calls, e.web_searches, e.units, e.cost, e.cost_high, e.estimated_input, e.output_bound, e.held_spend,
        e.queued_us, e.first_token_us, e.duration_us, e.run_id, e.shadow_of, e.voided, e.detail
    FROM entries e CROSS JOIN entry_kinds k
    WHERE k.project = e.project AND k.key_id = e.key_id AND k.task = e.task AND k.class = e.class AND k.model = e.model AND k.pool = e.pool
        AND k.backend = e.backend AND k.provider = e.provider AND k.upstream_model = e.upstream_model AND k.served_model = e.served_model
        AND k.policy = e.policy AND k.final = e.final AND k.outcome = e.outcome AND k.reason = e.reason AND k.status = e.status
        AND k.late = e.late AND k.stream = e.stream AND k.operation = e.operation AND k.dialect = e.dialect
        AND k.service_tier = e.service_tier AND k.usage_source = e.usage_source AND k.anomalous = e.anomalous
        AND k.price_version = e.price_version AND k.finish = e.finish AND k.tier = e.tier;
DROP TABLE entries;

CREATE INDEX entries_at ON entry_rows (at_us);
CREATE INDEX entries_tenant_at ON entry_rows (tenant, at_us);
CREATE INDEX entries_run ON entry_rows (at_us) WHERE run_id <> '';
CREATE INDEX entries_shadow_of ON entry_rows (shadow_of) WHERE shadow_of <> '';
CREATE INDEX entries_shadow_at ON entry_rows (at_us) WHERE shadow_of <> '';

CREATE VIEW entries AS
    SELECT r.request_id, r.attempt, r.at_us, r.ended_us, r.tenant, k.project, k.key_id, r.user_id, k.task, r.labels, k.class, k.model,
        k.pool, k.backend, k.provider, k.upstream_model, k.served_model, r.upstream_request_id, k.policy,
        k.final, k.outcome, k.reason, k.status, k.late, k.stream, k.operation, k.dialect,
        r.input, r.cache_read, r.cache_write, r.cache_write_1h, r.audio_input, r.output, r.reasoning, r.audio_output,
        r.tool_calls, r.web_searches, k.service_tier, k.usage_source, k.anomalous,
        r.cost, r.cost_high, k.price_version, r.estimated_input, r.output_bound, r.held_spend,
        r.queued_us, r.first_token_us, r.duration_us, r.run_id, r.shadow_of, k.finish, r.units, r.voided, k.tier, r.detail
    FROM entry_rows r CROSS JOIN entry_kinds k
    WHERE k.id = r.kind;
