// Package admin is the operators' face: a typed REST API under /admin/v1 with
// its OpenAPI document, health, metrics, and profiles of the process under
// /debug/pprof/.
//
// # Model
//
// Tenants, projects, keys and plans come from two places. What the
// configuration file declares, the file owns: it is listed here with its file
// and line, and a change of it is 409 naming them. The rest lives in the store.
// Requests and answers have types of their own, apart from the records of auth
// and ledger: a field that is not named here cannot be written, and a hash
// cannot leave. A key's secret is in the answer that creates or rotates it and
// nowhere else.
//
// What is valid but looks wrong, such as the name of a model that the configuration
// in force does not have, is done and warned of in the answer.
//
// A write is finished when the snapshot that admits requests has it: after the
// store commits, [Options.Changed] re-reads it, so that a revoked key stops
// admitting before the answer is sent.
//
// # Invariants
//
//   - Deny by default: every request, matched or not, needs an admin token, but
//     for the patterns in the open list: /livez, /readyz, the pointer at /, and
//     /metrics where the configuration opens it. The token is checked before
//     the router decides what exists.
//   - Nothing changes on GET or HEAD. A browser of another origin cannot send
//     what does change something ([http.CrossOriginProtection]).
//   - Unknown fields, unknown query parameters and duplicate JSON keys are
//     refused. Bodies, headers, pages and times are bounded.
//   - Every mutation takes dry_run=true: all checks, the same answer, no change.
//   - A body is taken if its header says that it is JSON, and refused with the fix if it
//     says another thing: a form that a page of another origin can send is never one.
//   - Errors are RFC 9457 problems with kind, reason and hint. They never echo a
//     value that was sent, which might be a credential.
//   - Another tenant's key or project is a 404.
//
// # Health
//
// /livez answers while the process can schedule. /readyz is 200 while requests
// are admitted, also when degraded: a store that is down delays the account and
// stops no traffic, so taking the instance out would only spread the damage.
// It is 503 before the start is complete and while draining.
//
// # Concurrency
//
// A mutex serialises read-modify-write of records. Handlers are otherwise
// stateless. No goroutine is started.
//
// # What it does not do
//
// It holds no state of its own, decides nothing about requests, and knows no
// database: the records, the ledger and the engine's view come in through
// [Options].
package admin
