-- +goose Up

-- The request that a shadow is a copy of, empty for what clients asked.
ALTER TABLE entries ADD COLUMN shadow_of TEXT NOT NULL DEFAULT '';

-- The provider's word for why its answer ended, empty if it said none.
ALTER TABLE entries ADD COLUMN finish TEXT NOT NULL DEFAULT '';

-- A request's shadows are told beside it; shadows are compared by time, and what
-- they have spent is read at start. Most requests have none.
CREATE INDEX entries_shadow_of ON entries (shadow_of) WHERE shadow_of <> '';
CREATE INDEX entries_shadow_at ON entries (at_us) WHERE shadow_of <> '';

-- usage_hours of shadows: they are in no other sum.
CREATE TABLE shadow_hours (
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
CREATE INDEX shadow_hours_hour ON shadow_hours (hour_us);
