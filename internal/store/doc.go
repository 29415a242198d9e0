// Package store is SQL for ledger and auth records on SQLite and Postgres: one
// implementation.
package store
