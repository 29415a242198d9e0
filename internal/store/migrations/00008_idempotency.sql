-- +goose Up

-- Keys that requests gave themselves, and the answers of those that have ended: see the
-- package idempotency. BYTEA is what Postgres calls bytes; SQLite keeps them as they are
-- under any name.
CREATE TABLE idempotency_keys (
    mark       TEXT   NOT NULL PRIMARY KEY, -- a hash of tenant, operation and key, in hexadecimal digits
    tenant     TEXT   NOT NULL,
    print      TEXT   NOT NULL, -- of what was asked, likewise
    request_id TEXT   NOT NULL, -- that has the key, or had it
    begun_us   BIGINT NOT NULL,
    until_us   BIGINT NOT NULL, -- of its lease while it runs, then of its answer
    done       BIGINT NOT NULL,
    bytes      BIGINT NOT NULL, -- that it counts
    answer     BYTEA
);
CREATE INDEX idempotency_keys_tenant ON idempotency_keys (tenant, done, until_us, bytes);
CREATE INDEX idempotency_keys_until ON idempotency_keys (until_us);

-- +goose Down
DROP TABLE idempotency_keys;
