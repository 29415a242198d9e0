-- +goose Up

-- Operators' pins of degradation ladders: see the package pins.
CREATE TABLE ladder_pins (
    pool       TEXT   NOT NULL PRIMARY KEY,
    tier       BIGINT NOT NULL,
    author     TEXT   NOT NULL,
    reason     TEXT   NOT NULL,
    at_us      BIGINT NOT NULL,
    expires_us BIGINT NOT NULL
);

-- +goose Down
DROP TABLE ladder_pins;
