-- +goose Up

-- The model that was asked for when what is kept was made: what is asked of it by its id
-- alone names none. Empty of what is older.
ALTER TABLE kept_state ADD COLUMN model TEXT NOT NULL DEFAULT '';
