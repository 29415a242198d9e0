// Package route maps a model to pools and backends, and chooses among them.
//
// # Model
//
// A [Table] is one version of the routing policy: models, the pools that serve
// each, in order, and the backends of each pool. It is immutable. What changes
// while it is in force is kept in a [Place] per backend: what runs there and its
// [Health].
//
// # Eligibility
//
// [Eligible] tells whether a backend may serve a request at all: dialect, drained,
// residency, capabilities, context length, price. [Place.Usable] tells whether it may now: health and room.
// Each no has a word, a [Left], which `sluice explain` shows.
//
// What a request needs beside text is a set, [Needs]; what a backend lacks is another,
// and they may have nothing in common. Regions and providers that the caller's policy
// names hold for every attempt ([Backend.Permitted]): there is no other way to a
// backend than through Eligible.
//
// A backend with neither a price nor a ceiling is not eligible: unknown is never
// free.
//
// # Choice
//
// Of the places that can take the request [Choose] takes the one with the least
// running ÷ weight, compared by cross-multiplication. Between equals the
// turn decides: each choice moves a place's turn on by 2³² ÷ weight, the least
// turn is chosen, and table order breaks what is left. So idle places share by
// weight, loaded ones by load, and the same events give the same choices.
//
// # Health
//
// After FailThreshold failures in a row a backend cools down for Cooldown, then
// gets one real request as a probe: success takes it back, failure cools it down
// again. Only what tells about the backend counts: connecting, TLS, timeouts, 5xx,
// streams cut or malformed. A refusal (4xx) shows that it is alive. A 429 or 529
// pauses it for as long as it asks for, at most MaxPause, and is no failure. A
// client that left tells nothing.
//
// The naive policy, which others are held against, has none of this: with
// [Table.NoBreakers] a backend is used whatever becomes of its attempts.
//
// # Terms
//
// A model's first pools are tried in the order of the table, or of [Model.First] where
// some have [Terms]: a canary whose turn it is, then those whose conditions the caller
// meets, drawn without replacement by weight w_i ÷ Σ w_j. Draws are a hash of the
// request, or of what it is sticky by: no state, the same on every replica. One pool
// without conditions is required, so that nobody's list is empty. [Model.MaxSpend]
// bounds what one attempt may hold.
//
// # Capacity
//
// A place takes an attempt while it has a slot, KV memory, prefill and each of the
// provider's rates for it. Slots are fixed, or found by a [sched.Limit] from what
// [Place.Progressed] and [Place.Completed] tell of the answers. Rates are buckets
// of a minute, exact like quota's: an attempt holds what it is expected to take,
// [Place.Give] puts that right, and more than was held is a debt. [Place.RoomAt]
// tells when they have room again: a driver wakes then.
//
// What others tell is a hint with an age, and only lowers ([Place.Hint] of a
// provider's headers, [Place.Loaded] of an engine's metrics): the level of a bucket
// to what the provider says is left, refilled since the request was sent; an
// adaptive limit by 1/16 for each report of a queue inside the engine. An
// engine that stops telling keeps its slots for five intervals and then loses 1/16
// for each, to half. What nobody configured, the headers make: a provider's rates,
// an engine's memory. A backend that is not fit to be used has no share of its
// pool at once.
//
// # Fallback
//
// A failed attempt may be followed by another if [Retryable] says so of its reason:
// first on another backend of the same pool, each backend at most once per
// request, then in the model's other pools ([Model.Visit]): first choices before
// fallbacks, in order. A failure that may be that of more than the one backend
// ([FailsDomain]) leaves its failure domain out while a backend in another can take the
// request: with a whole domain down it takes one deadline to get out of it. What said
// that a fallback can stand in ([Evaluation]) is recorded and compared with nothing.
// That no content has reached the client, and how many
// attempts there may be, is for the engine to see to.
//
// # Retries
//
// A further attempt, a retry or a fallback, needs room in three budgets of
// [Retries]: of all attempts, of its tenant, and of the backend that it is given.
// With F first attempts and R retries over the last [RetryWindow] W = 10 s, one more
// is admitted where
//
//	R + 1 ≤ max(10 % · F, 1/s · W)
//
// The budget of a backend is that of the one to be tried and not of the one that
// failed: what has to be bounded is what failures elsewhere add to its load, which
// is where a wave of retries does its harm. The two others do not depend on how
// many backends or tenants there are. Both of the first two are counted when a retry
// is admitted to a queue, the third when it is dispatched.
//
// Attempts are counted in sub-buckets of W ÷ 40, F over the newest 40, which reach
// back less than W, R over 41, which reach back further, so that the rule holds for
// every moment exactly: R(t−W, t] ≤ max(10 % · F(t−W, t], 10) at each admission t.
// Over an interval of length T, cut into windows that each end with an admission and
// do not overlap, it follows that
//
//	R(a, a+T] ≤ 10 % · F(a−W, a+T] + 10 · ⌈T ÷ W⌉
//
// where the second term counts only windows with fewer than 100 first attempts. So
// amplification, (F + R) ÷ F, is at most 1.1 where there are 10 first attempts per
// second, for all and for each backend. What the sub-buckets leave unused is at
// most one of 40 on either side: a steady load gets 9.5 % and not 10 %.
//
// No backend gets a retry while its breaker is open ([Health.Open]: until a request
// has completed there), so that its probe is a first attempt; no pool gets one that
// had no room for a request within [ShedFor]. Which pool that is, is for the engine
// to see.
//
// Memory is bounded: [MaxRetryTenants] tenants have a budget of their own. The one
// that was idle for longest makes room for another once nothing of it counts; until
// then those beyond share one.
//
// # What it does not do
//
// Breakers with a ramp and prefix affinity take their place here with the routing
// issue. It translates no dialect into another, so that nothing is lost on the way.
// It knows no queue, limit or clock.
package route
