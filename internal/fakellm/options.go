package fakellm

import (
	"time"

	"sluice/internal/fleet"
)

// Model is one model of the provider.
type Model struct {
	Name string
	// Ratio is the model's tokens per 1000 o200k tokens: the secret that a
	// gateway has to learn. 0 means 1000.
	Ratio         int64
	Context       int64 // most input and output together; 0 does not bound it
	Output        int64 // typical output when the request does not say; 0 means 120
	MaxEvent      int64 // most tokens in one event; 0 means 4, 1 puts each in its own
	CachedPct     int64 // share of the input that is read from the cache, in per cent
	ShowReasoning bool  // reasoning is streamed as reasoning_content
	RunsOn        bool  // a cancelled request is generated and billed to its end

	// Exactly one of these times it; with neither, the provider's default
	// engine does.
	Engine *fleet.Profile
	Hosted *fleet.Service
}

// Options configure a Server. The zero value serves the default models, timed.
type Options struct {
	Models []Model // nil means DefaultModels
	Seed   uint64  // of texts, lengths, ids and probabilities
	// Instant answers as fast as it can write: no fleet, no waiting, save what a
	// fault asks for.
	Instant bool
	// Speed makes every machine so many times as fast; below 2 changes nothing.
	Speed int64
	// Strict refuses unknown models with 404; otherwise they are served as the
	// first model, under their own name.
	Strict bool
	APIKey string // the only key accepted; empty accepts any, and none
	Access Access // the access key that Converse requests must be signed with; a zero one takes APIKey, or any
	Book   int    // finished requests kept one by one; 0 means 16,384
	Record int    // raw requests kept for tests, newest; 0 keeps none
	Script *Script
}

// Access is an access key of a cloud.
type Access struct{ KeyID, Secret string }

// DefaultModels are a small and a large engine, and one hosted provider.
func DefaultModels() []Model {
	small, large := fleet.Llama8BOnH100(), fleet.Llama70BOn4H100()
	return []Model{
		{Name: "sim-small", Ratio: 1070, Context: 131_072, Engine: &small},
		{Name: "sim-large", Ratio: 930, Context: 131_072, Engine: &large},
		{Name: "claude-like", Ratio: 1180, Context: 200_000, Hosted: &fleet.Service{
			Latency: 400 * time.Millisecond, PrefillRate: 20_000, TokenTime: 12 * time.Millisecond,
			RequestsPerMinute: 4000, TokensPerMinute: 4_000_000,
		}},
		{Name: "gpt-like", Ratio: 1000, Context: 400_000, Hosted: &fleet.Service{
			Latency: 300 * time.Millisecond, PrefillRate: 30_000, TokenTime: 9 * time.Millisecond,
			RequestsPerMinute: 10_000, TokensPerMinute: 30_000_000,
		}},
	}
}

func (m Model) withDefaults() Model {
	if m.Ratio <= 0 {
		m.Ratio = 1000
	}
	if m.Output <= 0 {
		m.Output = 120
	}
	if m.MaxEvent <= 0 {
		m.MaxEvent = 4
	}
	return m
}

// model is a served model with its machine.
type model struct {
	Model
	pace   *pacer        // nil when instant
	hosted *fleet.Hosted // guarded by pace.mu; nil for an engine
}

func newModel(m Model, o Options) *model {
	out := &model{Model: m.withDefaults()}
	switch {
	case o.Instant:
	case m.Hosted != nil:
		out.hosted = fleet.NewHosted(m.Hosted.Times(o.Speed))
		out.pace = newPacer(out.hosted)
	case m.Engine != nil:
		out.pace = newPacer(fleet.NewReplica(m.Engine.Times(o.Speed)))
	default:
		out.pace = newPacer(fleet.NewReplica(fleet.Llama8BOnH100().Times(o.Speed)))
	}
	return out
}
