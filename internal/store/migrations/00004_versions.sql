-- +goose Up

-- What has been in force. A version is known by its number, and a content without a
-- text was not kept.
CREATE TABLE config_versions (
    number    BIGINT NOT NULL PRIMARY KEY,
    id        TEXT   NOT NULL UNIQUE,
    hash      TEXT   NOT NULL,
    at_us     BIGINT NOT NULL,
    author    TEXT   NOT NULL,
    reason    TEXT   NOT NULL,
    source    TEXT   NOT NULL,
    of_number BIGINT NOT NULL, -- of a rollback, what it went back to; else 0
    file      TEXT   NOT NULL,
    file_hash TEXT   NOT NULL,
    size      BIGINT NOT NULL, -- bytes of body and changes
    body      TEXT   NOT NULL,
    changes   TEXT   NOT NULL
);
CREATE INDEX config_versions_hash ON config_versions (hash, number);

INSERT INTO meta (name, value) VALUES ('config_version', 0);

-- +goose Down
DELETE FROM meta WHERE name = 'config_version';
DROP TABLE config_versions;
