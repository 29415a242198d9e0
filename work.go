package sluice

// Tokens counts tokens of a model's own tokenizer.
type Tokens int64

// Work is the shape of one request before it runs. All figures are for one attempt. It holds no true output length
// and no body.
type Work struct {
	Input       Tokens // estimated input, learned ratio applied
	InputBound  Tokens // never less than the input that can be billed; hard spend holds it
	CachedInput Tokens // the part of Input expected to be read from a prefix cache
	Output      Tokens // expected output
	OutputHold  Tokens // learned upper quantile of output, at most OutputBound: what rates, KV and soft spend hold
	OutputBound Tokens // the client's bound × n, or the model's: what hard spend holds
	Searches    int64  // most searches of the web that the provider may run: hard spend holds their fee

	Units, UnitsBound int64 // of what the operation is billed by beside tokens (images, seconds, …): expected, and the most
}

// KV is the key-value memory that the request is expected to need, in tokens.
func (w Work) KV() Tokens { return w.Input + w.OutputHold }

// Dimension is what a limit counts.
type Dimension uint8

// The dimensions. The first three are rates, the next two gauges, spend is a budget; the last two bound runs
// alone.
const (
	Requests Dimension = iota
	InputTokens
	OutputTokens
	Concurrency
	KVTokens
	Spend         // nano-dollars
	AllTokens     // input and output together
	RunTime       // nanoseconds since the run's first request
	NumDimensions = iota
)

var dimensionNames = []string{"requests", "input_tokens", "output_tokens", "concurrency", "kv_tokens", "spend", "tokens", "time"}

func (d Dimension) String() string               { return enumText(dimensionNames, d) }
func (d Dimension) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
func (d *Dimension) UnmarshalText(b []byte) error {
	return enumParse("dimension", dimensionNames, b, d)
}

// Gauge reports whether the dimension counts what is in flight.
func (d Dimension) Gauge() bool { return d == Concurrency || d == KVTokens }

// Scope is whose limit it is.
type Scope uint8

// The scopes, narrowest caller first, then those that callers share. A rejection names the limit with the longest
// wait; of equal ones the first here.
const (
	ScopeKey  Scope = iota
	ScopeUser       // tenant × end-user label
	ScopeRun        // tenant × run id
	ScopeProject
	ScopeTenant
	ScopeTenantModel
	ScopeModel
	ScopeFleet
	ScopeShadow // model × the pool that gets copies of its requests
	NumScopes   = iota
)

// Shared reports whether callers of several tenants share the scope's limits.
func (s Scope) Shared() bool { return s >= ScopeModel }

var scopeNames = []string{"key", "user", "run", "project", "tenant", "tenant_model", "model", "fleet", "shadow"}

func (s Scope) String() string                { return enumText(scopeNames, s) }
func (s Scope) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }
func (s *Scope) UnmarshalText(b []byte) error { return enumParse("scope", scopeNames, b, s) }

// Window is the period over which a rate or budget counts.
type Window uint8

// The windows. Requests and tokens per second or minute are token buckets with a burst of one window's amount.
// Every hour, day and month is a fixed UTC window whose identity is part of the counter's key, so that a reset is
// not a job. A run's window is the run.
const (
	NoWindow Window = iota // gauges
	PerSecond
	PerMinute
	PerHour
	PerDay
	PerMonth
	PerRun
	NumWindows = iota
)

var windowNames = []string{"none", "second", "minute", "hour", "day", "month", "run"}

func (w Window) String() string                { return enumText(windowNames, w) }
func (w Window) MarshalText() ([]byte, error)  { return []byte(w.String()), nil }
func (w *Window) UnmarshalText(b []byte) error { return enumParse("window", windowNames, b, w) }

// Fixed reports whether the window has a start and an end on the calendar.
func (w Window) Fixed() bool { return w >= PerHour && w <= PerMonth }

// Limit bounds one dimension over one window.
type Limit struct {
	Dimension Dimension
	Window    Window
	Amount    int64 // requests, tokens, calls in flight, nano-dollars or nanoseconds; positive
}
