package ledger

import (
	"time"

	"sluice"
	"sluice/internal/ladder"
)

// Entry is one attempt, or a request that had none: the unit of accounting. It
// is idempotent by (Request, Attempt).
type Entry struct {
	Request sluice.RequestID
	Attempt int       // from 1; 0 for a request that reached no backend
	At      time.Time // arrival of the request: budgets count it in this moment's windows
	Ended   time.Time

	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Key     sluice.KeyID
	User    sluice.UserID
	Run     sluice.RunID
	Task    string
	Labels  []sluice.Label
	Class   sluice.Class
	Model   sluice.ModelID

	// ShadowOf is the request whose copy this one was: nobody saw its answer, and it
	// counts to no tenant's usage, limits or budgets. Empty for what clients asked.
	ShadowOf sluice.RequestID

	// Voided says that the request was a line of a batch that was run again by somebody
	// else: its cost is not the tenant's, and it is in no sum. The store sets it.
	Voided bool

	Pool              sluice.PoolID
	Backend           sluice.BackendID
	Provider          sluice.ProviderID
	UpstreamModel     string // what was asked for
	ServedModel       string // what the provider said it served, if it said
	UpstreamRequestID string
	Policy            string // version of the routing table that chose the backend, or found none

	Tier ladder.Tier // of the pool's degradation ladder, as the request felt it

	Final     bool // the request's last attempt: Outcome and Reason are the request's
	Outcome   sluice.Outcome
	Reason    sluice.Reason
	Status    int  // HTTP status the client got, 499 if it had left
	Late      bool // settled after its hold had expired
	Stream    bool
	Finish    string // the provider's word for why its answer ended, if it said
	Operation string // "chat", "completions", "embeddings", "messages", "count_tokens", "models"
	Dialect   string

	Usage        sluice.Usage
	Cost         sluice.Nano
	CostHigh     sluice.Nano // what a hard budget was charged; ≥ Cost, differs only where usage is not reported
	PriceVersion string

	EstimatedInput sluice.Tokens
	OutputBound    sluice.Tokens
	HeldSpend      sluice.Nano
	Queued         time.Duration
	FirstToken     time.Duration // from arrival; 0 if none came
	Duration       time.Duration
	Detail         []byte // JSON for explain: estimate, limits, candidates; bounded, no bodies
}
