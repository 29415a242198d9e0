package store

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sluice"
	"sluice/internal/ledger"
)

// entryColumns are the columns of the view entries in the order of scanEntry. detail is
// the last.
var entryColumns = []string{
	"request_id", "attempt", "at_us", "ended_us",
	"tenant", "project", "key_id", "user_id", "task", "labels", "class", "model",
	"pool", "backend", "provider", "upstream_model", "served_model", "upstream_request_id", "policy",
	"final", "outcome", "reason", "status", "late", "stream", "operation", "dialect",
	"input", "cache_read", "cache_write", "cache_write_1h", "audio_input", "output", "reasoning", "audio_output",
	"tool_calls", "web_searches", "service_tier", "usage_source", "anomalous",
	"cost", "cost_high", "price_version", "estimated_input", "output_bound", "held_spend",
	"queued_us", "first_token_us", "duration_us", "run_id", "shadow_of", "finish", "units", "voided", "tier", "detail",
}

// rowColumns are the columns of entry_rows in the order of rowValues: what an entry does
// not have of its kind.
var rowColumns = []string{
	"request_id", "attempt", "at_us", "ended_us", "tenant", "kind", "user_id", "labels", "upstream_request_id",
	"input", "cache_read", "cache_write", "cache_write_1h", "audio_input", "output", "reasoning", "audio_output", "tool_calls", "web_searches", "units",
	"cost", "cost_high", "estimated_input", "output_bound", "held_spend", "queued_us", "first_token_us", "duration_us",
	"run_id", "shadow_of", "voided", "detail",
}

// rowValues appends an entry's values, as the types that a driver takes.
func rowValues(args []any, e *ledger.Entry, kind int64) []any {
	u := &e.Usage
	args = figures(texts(args, string(e.Request)), int64(e.Attempt), e.At.UnixMicro(), e.Ended.UnixMicro())
	args = texts(figures(texts(args, string(e.Tenant)), kind), string(e.User), joinLabels(e.Labels), e.UpstreamRequestID)
	args = figures(args, int64(u.Input), int64(u.CacheRead), int64(u.CacheWrite), int64(u.CacheWrite1h), int64(u.AudioInput))
	args = figures(args, int64(u.Output), int64(u.Reasoning), int64(u.AudioOutput), u.ToolCalls, u.WebSearches, u.Units)
	args = figures(args, int64(e.Cost), int64(e.CostHigh), int64(e.EstimatedInput), int64(e.OutputBound), int64(e.HeldSpend))
	args = figures(args, e.Queued.Microseconds(), e.FirstToken.Microseconds(), e.Duration.Microseconds())
	return texts(figures(texts(args, string(e.Run), string(e.ShadowOf)), flag(e.Voided)), string(e.Detail))
}

// texts appends strings and figures numbers. What a slice that is used again has in
// a place is kept if it is the same: of two rows most values are, and an allocation
// for each would be the most of a batch.
func texts(args []any, values ...string) []any {
	for _, v := range values {
		n := len(args)
		if n < cap(args) {
			if old, ok := args[:n+1][n].(string); ok && old == v {
				args = args[:n+1]
				continue
			}
		}
		args = append(args, v)
	}
	return args
}

func figures(args []any, values ...int64) []any {
	for _, v := range values {
		n := len(args)
		if n < cap(args) {
			if old, ok := args[:n+1][n].(int64); ok && old == v {
				args = args[:n+1]
				continue
			}
		}
		args = append(args, v)
	}
	return args
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// word scans an enum's word.
type word struct {
	into interface{ UnmarshalText([]byte) error }
}

func (w word) Scan(v any) error {
	switch v := v.(type) {
	case string:
		return w.into.UnmarshalText([]byte(v))
	case []byte:
		return w.into.UnmarshalText(v)
	}
	return fmt.Errorf("%T is not a word", v)
}

func scanEntry(row scanner) (e ledger.Entry, err error) {
	var at, ended, queued, first, duration int64
	var labels, detail string
	u := &e.Usage
	err = row.Scan(
		&e.Request, &e.Attempt, &at, &ended,
		&e.Tenant, &e.Project, &e.Key, &e.User, &e.Task, &labels, word{&e.Class}, &e.Model,
		&e.Pool, &e.Backend, &e.Provider, &e.UpstreamModel, &e.ServedModel, &e.UpstreamRequestID, &e.Policy,
		&e.Final, word{&e.Outcome}, word{&e.Reason}, &e.Status, &e.Late, &e.Stream, &e.Operation, &e.Dialect,
		&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.AudioInput, &u.Output, &u.Reasoning, &u.AudioOutput,
		&u.ToolCalls, &u.WebSearches, &u.ServiceTier, word{&u.Source}, &u.Anomalous,
		&e.Cost, &e.CostHigh, &e.PriceVersion, &e.EstimatedInput, &e.OutputBound, &e.HeldSpend,
		&queued, &first, &duration, &e.Run, &e.ShadowOf, &e.Finish, &u.Units, &e.Voided, &e.Tier, &detail,
	)
	if err != nil {
		return e, fmt.Errorf("read entry: %w", err)
	}
	e.At, e.Ended = fromMicros(at), fromMicros(ended)
	e.Queued, e.FirstToken, e.Duration = span(queued), span(first), span(duration)
	e.Labels = splitLabels(labels)
	if detail != "" {
		e.Detail = []byte(detail)
	}
	return e, nil
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

func span(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Labels are kept as sluice-labels has them: their alphabet has no comma and no
// equals sign.
func joinLabels(ls []sluice.Label) string {
	var b strings.Builder
	for i, l := range ls {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.Key)
		b.WriteByte('=')
		b.WriteString(l.Value)
	}
	return b.String()
}

func splitLabels(s string) []sluice.Label {
	if s == "" {
		return nil
	}
	var ls []sluice.Label
	for pair := range strings.SplitSeq(s, ",") {
		k, v, _ := strings.Cut(pair, "=")
		ls = append(ls, sluice.Label{Key: k, Value: v})
	}
	return ls
}

// maxFigure bounds every figure of an entry: 9 million dollars, 9·10¹⁵ tokens. A
// sum of a thousand of them still fits, so that no entry, however absurd, can
// make the database refuse a batch and stop the ledger.
const maxFigure = 1 << 53

// bounded returns the entry as the database can take it, itself where it can.
func bounded(e *ledger.Entry) *ledger.Entry {
	c := *e
	if !mend(&c) {
		return e
	}
	mended := new(ledger.Entry)
	*mended = c
	return mended
}

// mend makes text valid UTF-8 without NUL and holds figures within 0 and maxFigure.
// A usage that had to be changed is marked anomalous. It reports whether it changed
// anything.
func mend(e *ledger.Entry) bool {
	u := &e.Usage
	odd := false
	for _, p := range [...]*sluice.Tokens{
		&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.AudioInput, &u.Output, &u.Reasoning, &u.AudioOutput,
	} {
		odd = clamp(p) || odd
	}
	for _, p := range [...]*int64{&u.ToolCalls, &u.WebSearches, &u.Units} {
		odd = clamp(p) || odd
	}
	for _, p := range [...]*sluice.Nano{&e.Cost, &e.CostHigh} {
		odd = clamp(p) || odd
	}
	u.Anomalous = u.Anomalous || odd
	changed := odd
	for _, c := range [...]bool{
		clamp(&e.EstimatedInput), clamp(&e.OutputBound), clamp(&e.HeldSpend), clamp(&e.Queued), clamp(&e.FirstToken), clamp(&e.Duration),
		clean(&e.Request), clean(&e.Tenant), clean(&e.Project), clean(&e.Key), clean(&e.User), clean(&e.Run), clean(&e.Model),
		clean(&e.Pool), clean(&e.Backend), clean(&e.Provider), clean(&e.ShadowOf), clean(&e.Finish),
	} {
		changed = changed || c
	}
	for _, p := range [...]*string{
		&e.Task, &e.UpstreamModel, &e.ServedModel, &e.UpstreamRequestID, &e.Policy, &e.Operation, &e.Dialect, &u.ServiceTier, &e.PriceVersion,
	} {
		changed = clean(p) || changed
	}
	if e.At.IsZero() && !e.Ended.IsZero() {
		e.At, changed = e.Ended, true
	}
	if bytes.IndexByte(e.Detail, 0) >= 0 || !utf8.Valid(e.Detail) {
		detail := string(e.Detail)
		changed = clean(&detail) || changed
		e.Detail = []byte(detail)
	}
	if dirty(joinLabels(e.Labels)) {
		e.Labels, changed = nil, true
	}
	return changed
}

func clamp[T ~int64](p *T) bool {
	v := min(max(*p, 0), maxFigure)
	if v == *p {
		return false
	}
	*p = v
	return true
}

func dirty(s string) bool { return strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) }

func clean[S ~string](p *S) bool {
	if !dirty(string(*p)) {
		return false
	}
	*p = S(strings.ReplaceAll(strings.ToValidUTF8(string(*p), "\uFFFD"), "\x00", "\uFFFD"))
	return true
}
