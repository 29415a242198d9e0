// Package idempotencytest is a store of idempotency keys in memory, for tests. The
// conformance tests of package store hold it to what databases do.
//
// # Concurrency
//
// A Store is safe for concurrent use.
package idempotencytest
