package sluice

// Usage is what an attempt really took, in disjoint token classes: their sum is the provider's total. See
// docs/settlement.md for how each exit fills it.
type Usage struct {
	Input        Tokens // uncached text input
	CacheRead    Tokens // input served from the provider's prefix cache
	CacheWrite   Tokens // input written to it at the default time to live (5 or 30 minutes)
	CacheWrite1h Tokens // input written to it at a long time to live (1 or 12 hours)
	AudioInput   Tokens // uncached audio input
	Output       Tokens // visible text output, tool arguments included
	Reasoning    Tokens // hidden reasoning
	AudioOutput  Tokens // audio output

	ToolCalls   int64 // tool calls in the answer
	WebSearches int64 // server-side web searches, billed by the call
	Units       int64 // of what the operation is billed by beside tokens: images, seconds, characters or searches

	ServiceTier string // the tier that the provider says it served, which is the one billed; empty for the default
	Source      UsageSource
	Anomalous   bool // the provider's figures were impossible (negative, huge, falling) and were clamped
}

// InputTotal is all input, cached or not.
func (u Usage) InputTotal() Tokens {
	return u.Input + u.CacheRead + u.CacheWrite + u.CacheWrite1h + u.AudioInput
}

// OutputTotal is all billed output.
func (u Usage) OutputTotal() Tokens { return u.Output + u.Reasoning + u.AudioOutput }

// Total is every token of the attempt.
func (u Usage) Total() Tokens { return u.InputTotal() + u.OutputTotal() }

// Add adds what another attempt took. Source is then that of the least trusted part.
func (u *Usage) Add(v Usage) {
	switch {
	case v.Source == UsageNone:
	case u.Source == UsageNone:
		u.Source = v.Source
	case trust[v.Source] < trust[u.Source]:
		u.Source = v.Source
	}
	u.Input += v.Input
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.CacheWrite1h += v.CacheWrite1h
	u.AudioInput += v.AudioInput
	u.Output += v.Output
	u.Reasoning += v.Reasoning
	u.AudioOutput += v.AudioOutput
	u.ToolCalls += v.ToolCalls
	u.WebSearches += v.WebSearches
	u.Units += v.Units
	u.Anomalous = u.Anomalous || v.Anomalous
	if v.ServiceTier != "" {
		u.ServiceTier = v.ServiceTier
	}
}

// UsageSource says where usage figures come from. They are appended to.
type UsageSource uint8

// The sources. Unknown usage is never zero: it is estimated.
const (
	UsageNone      UsageSource = iota // no backend did any billable work
	UsageEstimated                    // from the estimate of the input and the bytes that were seen
	UsageCounted                      // partly reported: cumulative figures up to a cut, the rest counted
	UsageReported                     // the provider's final figures
	UsageDrained                      // likewise, of an answer that was read to its end after its client had left
	UsageTimed                        // estimated, and of what nobody saw by the time that it had
	UsageCached                       // nothing: the answer was kept, or is that of the same request in flight
)

var (
	usageSourceNames = []string{"none", "estimated", "counted", "reported", "drained", "estimated_time", "cached"}
	trust            = [...]uint8{UsageTimed: 1, UsageEstimated: 2, UsageCounted: 3, UsageDrained: 4, UsageReported: 5, UsageCached: 6} // the least first
)

// Final reports whether the figures are the provider's last word.
func (s UsageSource) Final() bool { return s == UsageReported || s == UsageDrained }

func (s UsageSource) String() string               { return enumText(usageSourceNames, s) }
func (s UsageSource) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s *UsageSource) UnmarshalText(b []byte) error {
	return enumParse("usage source", usageSourceNames, b, s)
}
