-- +goose Up

-- What was billed by another unit than tokens: images, seconds of audio, characters,
-- searches of a reranker. Which it is, the operation says.
ALTER TABLE entries ADD COLUMN units BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_hours ADD COLUMN units BIGINT NOT NULL DEFAULT 0;
ALTER TABLE user_hours ADD COLUMN units BIGINT NOT NULL DEFAULT 0;
ALTER TABLE shadow_hours ADD COLUMN units BIGINT NOT NULL DEFAULT 0;
