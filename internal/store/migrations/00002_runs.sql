-- +goose Up

-- The run that a request was part of, empty if it was of none.
ALTER TABLE entries ADD COLUMN run_id TEXT NOT NULL DEFAULT '';

-- What runs have taken is read at start, and most requests are of none.
CREATE INDEX entries_run ON entries (at_us) WHERE run_id <> '';
