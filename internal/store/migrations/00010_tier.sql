-- +goose Up

-- On which tier the degradation ladder of its pool stood, as the request felt it.
ALTER TABLE entries ADD COLUMN tier BIGINT NOT NULL DEFAULT 0;
