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
