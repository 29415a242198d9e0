// Package auth finds out who calls: it reads credentials, knows keys, projects,
// tenants and plans, and serves the request path from a snapshot in memory.
//
// # Model
//
// A credential is slk_<env>_<kid>_<secret>_<crc>:
//
//	slk   fixed, so that secret scanners find it
//	env   1 to 12 of [a-z0-9], a label that humans read ("prod")
//	kid   10 characters of Crockford's base32 in lower case: the public id
//	secret 43 base62 characters: 256 bits
//	crc   CRC-32 (IEEE) of all bytes before the last underscore, 6 base62 digits
//
// No part contains an underscore, so the four underscores split it in one way
// only. [Parse] decides shape, alphabet and CRC offline; what fails there never
// reaches a map or a database. A CRC finds every change of one character.
// An admin token is sla_<id>_<secret>_<crc> and follows the same rules.
//
// [Records] are what sources (the configuration file, the store) say: plans,
// tenants with their projects, keys, admin tokens. [Compile] turns them into a
// [Snapshot]: one [sluice.Policy] per distinct combination of plan, tenant,
// project and key, found by key id in O(1). [Keeper] keeps the current one.
//
// A signed token of an issuer is verified by package jwt, which says whose it is: a
// [Bearer]. [Snapshot.Admit] finds what applies to it: what plan, tenant and project
// say, for each of which there is a policy without a key's own narrowing, and one for each
// class that a token may be bounded to.
//
// # Invariants
//
//   - Only hashes of secrets are held: SHA-256, or HMAC-SHA-256 with a pepper.
//     A secret has 256 random bits, so a slow hash would add nothing but a way
//     to exhaust the CPU. Hashes are compared in constant time, all secrets of a
//     key each time.
//   - No message, log value or JSON of this package contains a secret. Whether a
//     key is unknown or its secret wrong is answered alike; that a key has
//     expired or was revoked is told only to whoever has its secret.
//   - A model list narrowed to nothing allows nothing: an empty list would allow
//     everything.
//   - A policy whose content did not change keeps its pointer from one snapshot
//     to the next, so that counters are reconfigured only by real changes.
//   - What a file declares, it owns: a record of the store with the same id is
//     shadowed and reported in [Snapshot.Problems].
//   - A broken reference (a key of no tenant, a tenant of no plan) closes that
//     key and leaves the others alone.
//   - There is no cache to fill: an unknown id costs one map look-up.
//
// # Freshness
//
// The Keeper polls the version of each source every second (never more than
// [MaxPoll]) and loads what changed; [Keeper.Notify] does so at once. A revoked
// key stops admitting within 5 s of the commit even if no notification arrives,
// as long as the source answers. A source that is down leaves its last records
// valid, for StaleMax if that is set. Before a source has loaded once, an
// unknown key is answered 503 not_ready and never 401.
//
// # New limits
//
// [Snapshot.Introduced] tells which limits of fixed windows a snapshot has that the one
// before had not. KeeperOptions.Introduce is called before it is in force, so that what was
// used in their windows can be given to their counters first.
//
// # Ownership and concurrency
//
// Records and snapshots are immutable once handed over. A Keeper owns one
// goroutine between [Keeper.Start] and [Keeper.Close]. Identify takes no lock.
//
// # What it does not do
//
// It knows no SQL, no YAML and no routes; it decides who somebody is and which
// policy applies, never whether a limit fits.
package auth
