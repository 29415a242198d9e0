// Package cache keeps answers and gives them again to the same request, and makes one of
// the same requests that are in flight at a time.
//
// # Model
//
// A [Cache] stands in front of an exchange ([Cache.Run] is an exchange.Runner). For a
// request whose policy opts in (sluice.Policy.CacheTTL):
//
//	unfit?       what depends on more than its body runs beside the cache: bypass
//	Inspect      hooks of the request's stage decide, before anything is looked for
//	keyOf        the key: who, which operation, model, policy, and the canonical body
//	lookup       a kept answer: hit; hooks of answers look into it again
//	board        the same request in flight: its answer is given as it comes: coalesced
//	fly          else it runs: miss; what of its answer is worth it is kept
//
// An answer is exact: it is given only to a request that says the same, so that plans
// which opt in decide by that whether answers of a positive temperature are repeated. A
// stream is kept whole and replayed as a stream, byte for byte.
//
// # The key
//
// HMAC-SHA-256, all of it, with the secret of the installation, over fields that stand
// behind their lengths: the tenant, or the declared group of tenants that share; the
// version of the configuration in force; operation, model, streamed or not, and whether a
// stream tells its usage; what of the policy decides where the request may go and what is
// asked for it; the client's headers that backends get; and the body ([canon]). Left out
// are members that say who asks ([labels]), the end user unless the plan keeps users
// apart, and headers that change no answer ([harmless]). Where hooks look into a request,
// what they are told of it is in the key.
//
// # What is kept
//
// Only an answer that came whole, with status 200, that ended by itself or at its client's
// own bound, within the largest size, under the configuration that the key is of, and of
// which no choice was refused or filtered. Never one that failed, was cut short for a
// budget or asked for with a smaller bound than the client's, was made under degradation,
// or that hooks changed or could not look into.
//
// # Coalescing
//
// The first of the requests that are the same, of one tenant and class, runs, in a
// goroutine of its own that its handler joins; all of them, the first too, read its answer
// from one buffer ([flight]). The run ends when the last reader has left, whoever that is.
// Beyond the bounds of the buffer nobody joins, and the slowest reader slows the backend;
// its own write deadline bounds that. A request that says how long it may wait
// (sluice-max-wait) runs by itself.
//
// A failure before any content is shared if it is of the backends, or a refusal of what
// the request says. If it is of the first one's own limits or wait, or since its client
// left, each other one runs, or joins the next, at most [joins] times. After content all
// get what there was and the failure.
//
// # Accounting
//
// The request that runs is charged all that it took, as without the cache, also when only
// others were left to read its answer. A hit, and each other reader, counts as one request
// and costs the plan's percentage of that; it takes no tokens and no place, and its entry
// has no attempt, source "cached". A reader is charged when it gets its first content;
// where it costs something, when all is known, so that a hard budget is never exceeded.
//
// # Threats
//
// What a tenant sends decides which key its own requests have, and nothing else:
//
//   - another tenant's answer: the owner is in the key, the store's scope and the code of
//     the entry; names are hashed whole, so that separators and paths in them mean nothing
//   - one parser reads another question than the next: bodies are accepted only if all
//     parsers read them alike (wire.Scan: no key twice, strict UTF-8 and numbers)
//   - the same to the eye: strings differ where their bytes do, 1 is not 1.0
//   - headers that reach the backend and change its answer: they are in the key
//   - sluice-… headers: none is sent on; only sluice-cache matters here, and it only
//     opts in where the plan lets it
//   - user fields that leak: answers of Responses repeat them, and there they are in the key
//   - fields of an engine, forms: the first are in the body, the second are not kept
//   - huge bodies: beyond [MaxBody] and 262,144 values there is no key; nesting is bounded
//     by the scan
//   - an answer that was made to order, by a refusal, a hook or a cut: see What is kept
//   - a store that is read or written by others: keys tell nothing without the secret, and
//     an entry that was changed, or put in the place of another, is a miss and is dropped
//   - timing: a hit is faster, which its own tenant (or group) alone can see
//
// # Stores
//
// [Memory] and [Disk] let go what was used least recently, of the owner beyond its bound
// and of all beyond the total; [Redis], which replicas share, what expires first. None of
// their errors fails a request: it is a miss.
//
// # Ownership and concurrency
//
// A Cache and its stores are safe for concurrent use. The run of a flight is joined by the
// handler of its first request. One mutex guards the flights, one each flight; nothing
// blocks under them but the writer of a flight that waits for its readers.
//
// # What it does not do
//
// It knows nothing of the meaning of prompts: nothing similar is the same. It admits,
// routes and settles nothing itself: exchange does (Run, Serve).
package cache
