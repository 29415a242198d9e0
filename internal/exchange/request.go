package exchange

import (
	"context"
	"net/http"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/handover"
	"sluice/internal/ladder"
	"sluice/internal/ledger"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// Request is one request, read whole and identified. It is not changed, but that
// Body is let go once no further attempt can need it.
type Request struct {
	ID        sluice.RequestID
	Arrived   time.Time
	Principal sluice.Principal
	Head      *wire.Head
	Body      []byte
	Header    http.Header // the client's; upstream picks what may pass
	Class     sluice.Class
	Risk      sluice.Risk // its label, if that is higher than what the policy says
	Task      string
	Labels    []sluice.Label
	Session   route.Session    // the conversation that it is part of; 0 if it names none
	RunLimits []sluice.Limit   // what it asks its run, Principal.Run, to be bounded by
	MaxWait   time.Duration    // 0 does not queue, negative leaves it to plan and pool
	ShadowOf  sluice.RequestID // the request that this is a copy of, empty if a client asks for it
	Free      bool             // costs nothing and counts as a request alone (count_tokens)
	Cache     Wish             // what it asks of the output cache

	Line *handover.Line // of the job that it is a line of, if it may be handed over

	looked *looked // what hooks have said of it, where Inspect has asked them
}

// Wish is what a request asks of the output cache: a word of sluice-cache.
type Wish string

// The wishes. Empty is what the policy says.
const (
	WishUse     Wish = "use"     // a kept answer will do, and this one may be kept
	WishBypass  Wish = "bypass"  // neither
	WishRefresh Wish = "refresh" // a new answer, which may be kept in place of the old one
)

// Wishes are all that can be asked for.
var Wishes = [...]Wish{WishUse, WishBypass, WishRefresh}

// Head is what is known of an answer when its first byte is delivered.
type Head struct {
	Status   int
	Upstream http.Header  // of the backend's answer
	Grant    engine.Grant // of the attempt that answers
	Queued   time.Duration
	Dropped  string // for sluice-dropped, empty if nothing was changed
	Type     string // of an answer in one piece; empty is JSON
	Sequence int64  // that the next event has, in streams that number them
	Cache    string // for sluice-cache, empty if the output cache has nothing to do with it

	Tier   ladder.Tier // on which the pool's ladder stood for the request
	Lesser bool        // it was served less than was asked for, or by a smaller model

	Replayed sluice.RequestID // the request whose answer it is, given again; empty if it is this one's
}

// Runner takes one request to its result and delivers the answer to its client on the
// way: [Exchange.Run], or what stands in front of it, such as an output cache. Which of
// them answers, the request is recorded in the ledger before Runner returns.
type Runner func(ctx context.Context, r *Request, c Client) Result

// Client takes the answer. It is called from Run's goroutine alone. Its errors
// end the request: a *sluice.Error with its own reason, any other as
// client_gone.
type Client interface {
	// Events delivers whole events of a stream, at once; the head is the same
	// in each call and p is valid during it.
	Events(h *Head, p []byte) error
	// Answer delivers an answer in one piece.
	Answer(h *Head, body []byte) error
	// Committed reports whether the client has a status already.
	Committed() bool
}

// Passed is a backend's refusal that is the client's own mistake, to be passed
// on as it is.
type Passed struct {
	Status int
	Header http.Header
	Body   []byte
}

// Result is how a request ended.
type Result struct {
	Err    *sluice.Error // nil when the answer was delivered whole
	Pass   *Passed       // where not nil, to be sent in place of Err if the client has nothing yet
	Head   *Head         // of the last attempt, nil if there was none
	Limits engine.Limits

	Denied string // why a failed attempt was not followed by another, though its failure allows one: a word of route.Denied or a reason; else empty

	Would *sluice.Error // why the request would have been refused, had its limits not been shadows; nil if not

	Final ledger.Entry // outcome and reason are the request's
	Usage sluice.Usage // over all attempts; Source is the least trusted of them
	Cost  sluice.Nano  // over all attempts
	Risk  sluice.Risk  // its label

	BodyKept bool // something may still read the request's body

	// Altered says that hooks have changed the answer, or that one let it pass that could
	// not be asked: it is not to be given to others.
	Altered bool
}

// Hooks are told what happened. Nil fields are silent. They run on Run's
// goroutine and must not block.
type Hooks struct {
	Output     func(model sluice.ModelID, expected, reported sluice.Tokens)  // of an answer whose usage was reported
	Attempt    func(*ledger.Entry)                                           // each entry, when it has been recorded
	FirstToken func(engine.Grant, time.Duration)                             // from the arrival of the request
	Journal    func(operation string, err error)                             // "begin", "dispatch", "checkpoint", "settle", "sync": the journal refused
	Settle     func(id sluice.RequestID, err error)                          // the grant was settled late, or had been settled
	Anomaly    func(*ledger.Entry)                                           // the provider's figures were impossible
	Parked     func(b sluice.BackendID, key, code string)                    // the provider refused the credential of that name, or its account is spent; code is its own word
	Retry      func(failed sluice.BackendID, denied string)                  // an attempt failed in a way that allows another: there is one, or denied says why not
	Hedge      func(b sluice.BackendID, result string)                       // b was late, and how its hedge came out (won, lost, failed, ended) or why it got none
	Skipped    func(m sluice.ModelID, pool sluice.PoolID, why route.Skip)    // a request whose turn it was is not copied to the pool
	Copied     func(e *ledger.Entry)                                         // a copy has ended; no other hook tells of copies but Journal, Settle, Parked, Unmarked and Panic
	Beside     func(pool sluice.PoolID, r *Result)                           // so has a request that was copied to the pool
	Unmarked   func(b sluice.BackendID)                                      // a stream came whole but for its terminal marker, which was added
	State      func(kind route.StateKind, result string)                     // a request refers to what a backend keeps: pinned, unknown, foreign or split
	Drained    func(p sluice.ProviderID, result string, after time.Duration) // an answer that nobody waited for was read, or not: a word of Drain…; after how long
	Background func(p sluice.ProviderID, result string, after time.Duration) // a response that was made in the background is settled: a word of Background…; after how long
	Panic      func(id sluice.RequestID, value any, stack []byte)
}

// answered is a request's status in the ledger when the client had left.
const statusLeft = 499
