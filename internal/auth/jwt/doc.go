// Package jwt takes signed tokens of issuers (JWT, OpenID Connect) in the place of keys:
// it verifies them and says, by their claims, of whom they are.
//
// # Model
//
//	token ─▶ SHA-256 of all of it ─▶ verified before? ─▶ its bearer
//	              no ─▶ shape, algorithm ─▶ issuer ─▶ signature ─▶ times, audience, required claims ─▶ mapping ─▶ remembered
//
// A [Spec] is an issuer: its name in iss, the audiences of which one must be in aud, the
// algorithms that it may sign with, where its keys are, and a [Mapping] of claims to
// tenant, project, user and class. auth.Keeper.Admit says what applies to the
// [auth.Bearer] that comes of it. Its key in the ledger is jwt:ISSUER:SUBJECT, by the name
// that the issuer has here; a subject that is long, or has other characters than
// letters, digits and .@_|+-, stands there as a hash. Its limits are counted by tenant and
// key: a subject may be of several tenants. Where a user is mapped and a token names none
// it is the subject, so that no request chooses whose limits per user are spent.
//
// # What is refused
//
// Only asymmetric algorithms exist here ([Algorithms]), and of those only what the issuer
// lists: none and HMAC are refused before anything is looked up, so that no public key
// can be taken for a secret. A key is used with the algorithms of its kind, and, where
// its issuer names one for it, with that alone. Keys that a token brings along (jwk, jku,
// x5u) are not looked at. A token is three parts (the compact form), at most [MaxToken]
// bytes, whose payload repeats no name. exp and sub are required. With leeway l
//
//	now < exp + l,  now ≥ nbf − l,  now ≥ iat − l
//
// Until the signature is verified a refusal says nothing of what the token claims; after
// it, which check failed.
//
// # What is remembered
//
// At most [MaxVerified] tokens that were verified, each by the SHA-256 of the whole of it,
// never of a part, until it expires; the oldest goes first. What was refused is not
// remembered. A remembered token is good only as long as its issuer publishes the key
// that it was signed with, and its mapping is that of the configuration in force.
//
// # Keys of issuers
//
// They are fetched by a goroutine of the [Verifier]'s own, at the start and every Refresh,
// from the address that is configured or that the issuer's discovery document names,
// through package egress. An issuer that is down keeps the keys that it had for StaleMax
// from the last time that it answered; then, and before it has answered once, its tokens
// are answered 503 not_ready, never 401. So a key that an issuer takes back is refused
// after Refresh at the latest, or StaleMax while it does not answer.
//
// Of keys that one id names each is tried, so that an issuer that gives two keys one id,
// or publishes one twice, locks nobody out. A key that is of no use here, such as one for
// encryption or a short one, is told from one that is not published: in the log where the
// set has changed, in [Verifier.Explain], and to whoever comes with a token that names it.
//
// A request waits for the network in one case: its token names a key that is not known.
// Then the keys are fetched, once for all that wait, and it waits [AskWait] at most. That
// is done once in [AskEach]; a token of an unknown key that comes sooner is answered 503
// with the time to wait, so that tokens made up to have keys fetched cost the issuer
// one request in that time. It is 401 where the issuer has answered since that key was
// first named, or since the token was issued; 503 where it could not be asked. A set
// without any key is an answer: it takes all keys back.
//
// # Ownership and concurrency
//
// A Verifier has one goroutine, from Start to Close, and one for each fetch, which Close
// ends and joins. Its methods are safe for concurrent use. One mutex guards the memory of
// tokens, one the state of each issuer; nothing blocks under either.
//
// # What it does not do
//
// It issues nothing, logs nobody in and asks nobody about single tokens (no
// introspection): a token is good until it expires. It knows no tenants and no limits.
package jwt
