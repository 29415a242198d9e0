-- +goose Up

-- Batches that providers have been given, and the lines of jobs that are in them: see the
-- package handover.
CREATE TABLE handovers (
    id          TEXT   NOT NULL PRIMARY KEY,
    job         TEXT   NOT NULL,
    ref         TEXT   NOT NULL, -- the provider's name of it; empty until it has told it
    lines       BIGINT NOT NULL, -- that it was made of
    backend     TEXT   NOT NULL,
    replica     BIGINT NOT NULL,
    provider    TEXT   NOT NULL,
    site        TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    created_us  BIGINT NOT NULL,
    expected_us BIGINT NOT NULL,
    tidied      BIGINT NOT NULL, -- nothing of it is left at the provider
    tried_us    BIGINT NOT NULL  -- when that was seen to last
);
CREATE INDEX handovers_job ON handovers (job);
CREATE INDEX handovers_untidied ON handovers (tried_us) WHERE tidied = 0;

CREATE TABLE handover_lines (
    job        TEXT   NOT NULL,
    line       BIGINT NOT NULL,
    handover   TEXT   NOT NULL,
    taken_back BIGINT NOT NULL, -- it is to run by itself
    PRIMARY KEY (job, line)
);
CREATE INDEX handover_lines_handover ON handover_lines (handover, line);

-- +goose Down
DROP TABLE handover_lines;
DROP TABLE handovers;
