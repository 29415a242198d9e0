-- +goose Up

-- What is told of a line's answer beside its body, JSON of jobs.Told; empty if nothing is.
ALTER TABLE job_results ADD COLUMN told TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE job_results DROP COLUMN told;
