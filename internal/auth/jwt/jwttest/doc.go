// Package jwttest is an issuer of tokens for tests: it signs, rotates its keys, publishes
// them as OpenID Connect has it, and can be down.
//
// # Concurrency
//
// An Issuer is safe for concurrent use.
package jwttest
