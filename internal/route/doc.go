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
// residency, translation, capabilities, context length, price. [Place.Usable] tells whether it may now: health and room.
// Each no has a word, a [Left], which `sluice explain` shows.
//
// What a request needs beside text is a set, [Needs]; what a backend lacks is another,
// and they may have nothing in common. Regions and providers that the caller's policy
// names hold for every attempt ([Backend.Permitted]): there is no other way to a
// backend than through Eligible.
//
// A request may carry a risk label: what the policy says, or what raised it
// ([sluice.Policy.Raise]). A backend, and a pool for one model, may take less.
//
// A backend with neither a price nor a ceiling is not eligible: unknown is never
// free.
//
// A request may refer to what a backend keeps between requests ([State]). The place where
// that is, a [Pin], leaves all other backends out ([LeftState]), and where it is an account's
// the attempt goes with its credential alone ([Need.Only]): rates and refusals of others
// are nothing to it. Canaries are open to it ([Asker.Pinned]), and localities are not looked
// at.
//
// # Choice
//
// Of the places that can take a request a [Chooser] takes one, by its pool's [Choice].
//
// By load, the default, that is the one with the least running ÷ weight, compared by
// cross-multiplication. Between equals the turn decides: each choice moves a place's
// turn on by 2³² ÷ weight, the least turn is chosen, and table order breaks what is
// left. So idle places share by weight, loaded ones by load, and the same events give
// the same choices.
//
// By cost it is the one of two, drawn by weight from the request's id, where it is
// sooner. With R the rate of prefill, P the input in flight that has not been answered,
// u the request's own that has to be computed, n of s slots in use, m of M tokens of
// memory in use with the request, w the weight and W the largest,
//
//	cost = W/w · (P/R + n/s · 1 s + max(0, m − 0.8·M) ÷ 0.2·M · 1 s) + u/R
//
// By affinity, places that hold a part of the prompt stand beside the two, and may be
// later by Stick; see below.
//
// # Preference
//
// A model may prefer latency or price ([Prefer]). A [Figure] is what a request is
// expected to take at a backend: the time until its answer is whole ([Place.Expected])
// and what it costs; that of a pool is its predicted wait and the best of its backends.
// First pools are sorted by it, and of the places of one pool that can take the request
// those that are worse are left out before the Chooser chooses. Times within a quarter
// of the best and 25 ms are alike, prices only if they are equal; what is alike keeps its
// order, so that one that wavers inside the band moves nothing. What is learned of a
// backend is a mean of about eight answers, and is forgotten after [PaceKept]; what nobody
// knows anything of is as good as the best.
//
// # Prefix affinity
//
// A prompt is a chain of block hashes ([Prefix]), each of a block and all before it,
// set apart by tenant: what two tenants send is never the same block. The index
// remembers for each place the blocks that were sent there last, as many as its memory
// holds and [Affinity.Memory] has room for, a block always later than those that
// continue it, as engines evict them. A prompt is noted where it is dispatched to.
// Backends that tell what they read from their caches correct how much is believed of
// them: each time they read less than half of what was expected the room falls by 1/16,
// else it grows by 1/64.
//
// What nearly all prompts of a tenant begin with draws nothing. Its trunk is the
// blocks, by depth, that came most often, each with its share of about the last 32
// prompts; those with a share of 80 % or more are common. A place holds a prompt's own
// prefix if it holds more than that, and common blocks count as held everywhere: so
// where all prompts have their first block in common they do not gather at one place.
// A run's requests keep together by a block that stands for the run, held by one place
// at a time.
//
// Concentration is bounded by a quantum (D2LPM, Cao et al., arXiv 2501.14312). Let
// g(t,p) be the uncached input that tenant t was given at p, per weight. Where
//
//	g(t,p) − min over places that can take the request g(t,·) ≥ Quantum
//
// p's prefix counts nothing for t, until others have caught up; a place that cannot
// take a request is brought up to the minimum, so that it has nothing to make up for.
// So keeping to a prefix never takes a place further than Quantum + C beyond another
// that could have served, C the largest prompt. Between places of equal cost the one
// with the least g is chosen.
//
// What is believed cached at the chosen place takes no prefill there and is not charged
// ([Chooser.Took]); the engine corrects that by what is reported. A place whose breaker
// opens, or that leaves the pool, holds nothing.
//
// Memory: blocks and holds are bounded by bytes, tenants by [MaxAffineTenants], the
// oldest going first. Nothing depends on a map's order, a clock or a global chance.
//
// # Health
//
// Each backend has a breaker, [Health], of a [BreakerPolicy]. Only what tells about the
// backend counts as a failure: connecting, TLS, timeouts, 5xx, streams cut, stalled or
// malformed. A refusal (4xx, 429, 529) shows that it is alive; a client that left tells
// nothing; an answer whose first token came late, or which crawled, is no failure in a
// row but counts as one in the share. It opens
//
//	at once      after Failures = 5 in a row
//	by share     when half of the attempts that ended within 30 s failed, of at least 20
//
// Five, since a backend that fails one attempt in ten fails three in a row once in a
// thousand attempts, and five once in 100,000. An attempt that began before the breaker
// opened is no news when it ends after that, but for one thing: where it opened by
// share, failures in a row among these say that the backend answers nothing at all, so
// that it is not taken back for want of another. One that is, is as if it had not opened.
//
// An open breaker lets nothing through for Cooldown = 10 s, and then one real request,
// the probe, which [Ease] gives to it before any other. A failure begins another
// cool-down; a success the ramp: over Ramp = 30 s its share s rises in a straight line
// from [RampStart] = 10 % to all of it. During that it has s of its slots, at least one,
// and s of its turns (a turn costs 1 ÷ s of what it does else), and a turn that has not
// come yet is taken only where no other backend can serve. Turns that it missed are
// forgiven: what comes back is due no more than its share from then on.
//
// Retry-After only lengthens: it pauses a backend (529, 5xx beyond the cool-down) for as
// long as it asks for, at most [MaxPause]. Neither an answer nor a probe outside of
// requests ([Place.Probed]) cuts that short.
//
// # No pool is emptied in silence
//
// A backend that fails in a row is dead, and refusing is better than calling it: with
// all of them open a request is refused at once, and told when the first gets its
// probe. One that was opened by share answers some of what it is sent. Where it is the
// last that the models of its pool have, it stays in use, or is taken back ([Settle]):
// it is "held" until less than the share fails, or there is another.
//
// # Failure domains
//
// Backends of one Domain fail together. When the breakers of 60 % of them, and of at
// least two, are open, all of the [Domain] is avoided while there is another: within a
// pool ([Settle]), and between the pools of a model (engine). One of its backends at a
// time is probed. A further attempt leaves the domains in which the request's attempts
// failed as long as a backend elsewhere may serve it; if none may, it goes on within.
// A backend without a domain is one of its own.
//
// # Regions
//
// A [Locality] is the order of regions in which a model's requests are tried, its home
// first. A [Site] is the backends of one pool in one region. It is lost when no breaker
// there is closed, or no failure domain has not failed; it comes back from when one is,
// over [Locality.Return], by the same ramp as a backend: of the requests at home there
// it takes the share s, exactly, as s adds up to whole requests ([Site.Takes]). How much
// of it those who are at home elsewhere may occupy is [Table.Headroom]; that it is kept
// is for the engine to see to.
//
// # Credentials
//
// A backend may be called with several [Key]s, each a lane with rates of its own: an
// attempt goes with the one that has least running ÷ weight of those that have room. A
// 429 pauses the lane for as long as it asks for, or, where it tells no time, for one that
// grows with each in a row and is jittered without chance; the backend is out only if all are. A
// [Credential] is shared by all backends that name it: one whose allowance is spent is
// parked until that is there again, or for [ParkedFor]; one that is refused is disabled
// everywhere (401), or at the backend that said so (403), for [DisabledFor]. Then one
// request tries it. A new table tries all of them at once.
//
// The naive policy, which others are held against, has none of this: with
// [Table.NoBreakers] a backend and its credentials are used whatever becomes of their
// attempts.
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
// # Sessions
//
// A [Session] keeps to a place: by [ByAffinity] as one block that the place holds which
// served it last; by load and cost, of a model that is sticky by it, as the least of
// −log₂(u_i) ÷ w_i over the places i, with u_i a hash of session and backend, that has
// less than half of its slots in use or at most ⌈5/4 · (n+1) · w_i ÷ Σ w_j⌉ of n that
// run. Some place always has. It is a preference among what [Place.Usable] leaves.
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
// Most often nothing but that has a say: the breaker is closed and has no ramp, no
// operator, domain, credential or rate is in the way, the slots are fixed and nobody else
// tells anything. A place knows whether that is so until something of it changes, and is
// then asked by comparing what it runs with what it holds, whatever the time
// (TestSteadyAnswersTheSame).
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
// # Hedging
//
// A model's requests may get a second attempt beside one whose first content is late
// ([Hedging]): later than a fixed time, or than a quantile of the first contents of the
// attempt's pool, read off a histogram of the last thousand or two ([Latency]). What
// was given up before its first content counts there with the time that it had: those
// are the slow ones, and without them the quantile would sink with each hedge. A hedge
// is one more retry to all three budgets, so that what is hedged and what is repeated
// stay within 10 % together. The attempt that loses ([sluice.LostRace]) has neither
// failed nor answered: the breaker learns nothing of it, but that it was slow, where
// its first token had not come by BreakerPolicy.FirstToken.
//
// # Shadows
//
// A [Shadow] is a pool that gets copies of a part of a model's requests. Whose turn it
// is, [Model.Copies] draws as a canary is drawn, by the request or by what the model
// sticks to, but with the pool in the hash: so two shadows, and a shadow and a canary,
// do not pick the same requests.
//
// # What it does not do
//
// It translates no dialect into another: it is told whether a request may be put into
// one, and what it then needs ([Translation]). It knows no queue, limit, secret or clock.
package route
