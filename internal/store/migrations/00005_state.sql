-- +goose Up

-- What backends keep for tenants between requests, and where: see the package stateful.
-- seq counts writes, each of which may have several rows.
CREATE TABLE kept_state (
    mark       TEXT   NOT NULL, -- a hash of the kind and the id, in hexadecimal digits
    provider   TEXT   NOT NULL,
    backend    TEXT   NOT NULL, -- the replica that keeps it; empty where the account does
    site       TEXT   NOT NULL, -- of the account
    credential TEXT   NOT NULL,
    tenant     TEXT   NOT NULL,
    until_us   BIGINT NOT NULL,
    seq        BIGINT NOT NULL,
    PRIMARY KEY (mark, provider, backend, site, credential)
);
CREATE INDEX kept_state_seq ON kept_state (seq);
CREATE INDEX kept_state_until ON kept_state (until_us);

INSERT INTO meta (name, value) VALUES ('state_seq', 0);

-- +goose Down
DELETE FROM meta WHERE name = 'state_seq';
DROP TABLE kept_state;
