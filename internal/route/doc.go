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
// context length, price. [Place.Usable] tells whether it may now: health and room.
// Each no has a word, a [Left], which `sluice explain` shows.
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
// fallbacks, in order. That no content has reached the client, and how many
// attempts there may be, is for the engine to see to.
//
// # What it does not do
//
// Breakers with a ramp, retry budgets, failure domains, prefix affinity and
// capability matching take their place here with the routing issue. It knows no
// queue, limit or clock.
package route
