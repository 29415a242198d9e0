// Package store is SQL for ledger, auth records, versions of the configuration, what
// providers keep for tenants, files and batches, on SQLite and Postgres: one implementation, one schema.
//
// # Model
//
// Statements use $n placeholders, which both engines take. Times are int64
// microseconds UTC, money is int64 nano-dollars, enums are their words. What the
// engines do differently is in sqlite.go and postgres.go and is little: how to
// open, which transaction reads one moment, how a violated key is recognised.
//
// entries has one row per (request, attempt). It is a view: what an entry has to itself is in
// entry_rows, and what many have in common, two in five of its facts, in entry_kinds, once
// (docs/adr/0012). A kind is known by a hash, and each batch finds those that it needs, so
// that nothing is remembered that a database may have lost. usage_hours and user_hours are
// sums of entries by hour of arrival, kept in the transaction of the append from
// the rows that it really inserted. Those of shadows, the copies of requests whose
// answers nobody saw, are summed in shadow_hours and nowhere else. Usage is answered from them alone wherever
// they have the dimensions; else entries are read, up to Options.ScanMax.
//
// config_versions holds what has been in force of the configuration (versions.Version),
// the newest of it.
//
// kept_state is whose ids of what providers keep are, and where that is (stateful.Record).
// Writers follow each other on a row of meta, so that its seq grows as they commit and a
// replica that reads on from the last it has seen misses nothing.
//
// files, file_chunks, jobs, job_lines, job_results and job_workers are the package jobs'.
// Changes of one job's lines follow each other on its row, and so do what a tenant holds
// of its bounds on one of job_tenants. voided_requests are those of lines that were run
// again: their entries are marked and taken out of the sums, whether they come before
// the row or after it, since both sides follow each other on void_seq of meta.
//
// Auth records are documents (JSON) with the columns that the database must know.
// Hashes of secrets are columns and never in a document.
//
// # Invariants
//
//   - Append is idempotent: of two entries with one key the first stands, and is
//     in the sums once. [DB.Verify] compares sums with entries.
//   - No entry makes a batch fail: text is made valid UTF-8 without NUL, figures
//     are held within 0 and 2⁵³. An entry that a database refused for ever would
//     stop the drain of the journal behind it.
//   - Every write to an auth table raises [DB.Version] in its transaction.
//   - What belongs to a tenant is read with the tenant in the statement: another
//     tenant's request or key is KindNotFound, exactly like one that is not there.
//   - A tenant's plan and a key's tenant need not be in the store: the
//     configuration file may declare them. auth closes what refers to nothing.
//
// # Engines
//
// SQLite: WAL, synchronous=FULL, one connection that writes (BEGIN IMMEDIATE) and
// a few that may only read. A lock file beside the database keeps a second
// process out. A damaged file is refused before anything is written. Postgres:
// migrations take turns under an advisory lock, so replicas may start together;
// appends touch rows in the order of their keys. A transaction that loses to
// another one is an error, and the journal's drain tries again.
//
// # Ownership and concurrency
//
// A [DB] owns its connections until [DB.Close]. It starts no goroutine of its own
// and is safe for concurrent use. No method is called on the request path.
//
// # What it does not do
//
// It retries nothing, caches nothing, validates no record (auth does) and deletes
// no entry.
package store
