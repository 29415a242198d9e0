package ledger

import (
	"fmt"
	"time"

	"sluice"
)

// Owner says whose entries a question may see. The zero Owner sees nothing, so
// that a forgotten tenant is an empty answer and not everybody's.
type Owner struct {
	tenant sluice.TenantID
	all    bool
}

// Of is one tenant's entries. An empty id sees nothing.
func Of(t sluice.TenantID) Owner { return Owner{tenant: t} }

// Everyone is the entries of all tenants: for operators only.
func Everyone() Owner { return Owner{all: true} }

// Tenant is the tenant that the owner is restricted to; all is true if it is
// not restricted.
func (o Owner) Tenant() (t sluice.TenantID, all bool) { return o.tenant, o.all }

// Dimension is what usage is grouped or filtered by.
type Dimension uint8

// The dimensions. Label needs the key of the label beside it.
const (
	ByTenant Dimension = iota
	ByProject
	ByKey
	ByUser
	ByTask
	ByModel
	ByBackend
	ByProvider
	ByClass
	ByOutcome
	ByReason
	ByHour // RFC 3339, the start of the hour
	ByDay  // 2006-01-02
	ByLabel
	NumDimensions = iota
)

var dimensionNames = []string{
	"tenant", "project", "key", "user", "task", "model", "backend", "provider", "class", "outcome", "reason", "hour", "day", "label",
}

func (d Dimension) String() string {
	if int(d) < len(dimensionNames) {
		return dimensionNames[d]
	}
	return fmt.Sprintf("unknown(%d)", uint8(d))
}

// MarshalText writes the dimension's word.
func (d Dimension) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the dimension's word.
func (d *Dimension) UnmarshalText(b []byte) error {
	for i, n := range dimensionNames {
		if n == string(b) {
			*d = Dimension(i)
			return nil
		}
	}
	return fmt.Errorf("unknown dimension %q: use one of %q", b, dimensionNames)
}

// Match restricts usage to one value of a dimension. ByHour and ByDay cannot be
// matched: that is what Since and Until are for.
type Match struct {
	By    Dimension
	Value string // the word, for class, outcome and reason
}

// MaxUsageRows is the most rows that a UsageQuery may ask for.
const MaxUsageRows = 10_000

// UsageQuery asks what was used. Entries count in the moment of their request's
// arrival.
//
// The answer comes from hourly roll-ups: Since is taken down and Until up to a
// full hour; see Window. Grouping by user together with anything but tenant,
// project, model and time, and grouping by label, read entries instead, in the
// exact window, and are refused with KindInvalid beyond the store's scan bound.
type UsageQuery struct {
	Owner Owner
	Since time.Time // zero is the beginning
	Until time.Time // exclusive; zero is the end
	By    []Dimension
	Label string // the label key that ByLabel stands for
	Where []Match
	// Shadow asks for what shadows used, of whose traffic they are copies. They are
	// in no other answer.
	Shadow bool
	Limit  int // 0 is MaxUsageRows; the rows of the highest cost come first, unless grouped by time
}

// Window is the span that the roll-ups answer for: Since down to and Until up to
// a full hour. Zero times stay zero.
func (q UsageQuery) Window() (since, until time.Time) {
	since, until = q.Since, q.Until
	if !since.IsZero() {
		since = since.UTC().Truncate(time.Hour)
	}
	if !until.IsZero() {
		if t := until.UTC().Truncate(time.Hour); t.Before(until) {
			until = t.Add(time.Hour)
		} else {
			until = t
		}
	}
	return since, until
}

// Totals are sums over entries.
type Totals struct {
	Entries   int64 // rows: attempts, and requests that had none
	Requests  int64 // requests that ended (Final entries)
	Attempts  int64 // attempts at a backend
	Estimated int64 // attempts whose usage was not fully reported
	Anomalous int64
	Late      int64

	Input, CacheRead, CacheWrite, CacheWrite1h, AudioInput sluice.Tokens
	Output, Reasoning, AudioOutput                         sluice.Tokens
	ToolCalls, WebSearches, Units                          int64

	Cost     sluice.Nano
	CostHigh sluice.Nano

	Queued      time.Duration // sum over final entries
	FirstToken  time.Duration // sum over the FirstTokens entries that had one
	FirstTokens int64
	Duration    time.Duration // sum over final entries
}

// InputTotal is all input, cached or not.
func (t Totals) InputTotal() sluice.Tokens {
	return t.Input + t.CacheRead + t.CacheWrite + t.CacheWrite1h + t.AudioInput
}

// OutputTotal is all billed output.
func (t Totals) OutputTotal() sluice.Tokens { return t.Output + t.Reasoning + t.AudioOutput }

// UsageRow is one group of a UsageQuery.
type UsageRow struct {
	Group []string // the values of the query's By, in its order
	Totals
}

// Cursor is a place in the list of recent requests. The zero Cursor is the
// newest.
type Cursor struct {
	At      time.Time
	Request sluice.RequestID
}

// IsZero reports whether the cursor is at the newest end.
func (c Cursor) IsZero() bool { return c.Request == "" }

// MaxRecent is the most requests of one page.
const MaxRecent = 500

// RecentQuery asks for requests that have ended, newest arrival first.
type RecentQuery struct {
	Owner  Owner
	Where  []Match   // any dimension but ByHour, ByDay and ByLabel
	Since  time.Time // of arrival; zero is the beginning
	Before Cursor    // what the last page's Next said
	Limit  int       // 0 is 100, at most MaxRecent
	Detail bool      // with the Detail of the entries
}

// RecentPage is one page of requests.
type RecentPage struct {
	Entries []Entry // the final entry of each, without its Detail unless it was asked for
	Whole   []Sum   // what each took over all its attempts, in the order of Entries
	Next    Cursor  // zero when there is no more
}

// Spend is what was used in one window at one scope, to seed counters at
// start. Requests counts those that reached a backend.
type Spend struct {
	Scope   sluice.Scope
	Tenant  sluice.TenantID  // set for key, project, tenant and tenant_model
	Project sluice.ProjectID // set for key and project
	Key     sluice.KeyID     // set for key
	Model   sluice.ModelID   // set for tenant_model and model
	User    sluice.UserID    // set for user
	Run     sluice.RunID     // set for run
	Pool    sluice.PoolID    // set for shadow, with Model
	Window  sluice.Window    // PerHour, PerDay or PerMonth; PerRun for a run
	Start   time.Time        // of the window, UTC; of a run its first request

	Requests int64
	Input    sluice.Tokens
	Output   sluice.Tokens
	Cost     sluice.Nano
	CostHigh sluice.Nano // what hard budgets were charged
}

// Audit is the result of comparing roll-ups with the entries.
type Audit struct {
	Entries     int64    // entries that were summed
	Rows        int64    // roll-up rows that were compared
	Differences []string // bounded; empty when all is well
}

// OK reports whether roll-ups equal the sums of the entries.
func (a Audit) OK() bool { return len(a.Differences) == 0 }
