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

// rowColumns are the columns of entry_rows in the order of values.row: what an entry does
// not have of its kind.
var rowColumns = []string{
	"request_id", "attempt", "at_us", "ended_us", "tenant", "kind", "user_id", "labels", "upstream_request_id",
	"input", "cache_read", "cache_write", "cache_write_1h", "audio_input", "output", "reasoning", "audio_output", "tool_calls", "web_searches", "units",
	"cost", "cost_high", "estimated_input", "output_bound", "held_spend", "queued_us", "first_token_us", "duration_us",
	"run_id", "shadow_of", "voided", "detail",
}

// row gives an entry's values in the order of rowColumns.
func (v *values) row(e *ledger.Entry, kind int64) {
	u := &e.Usage
	v.texts(string(e.Request))
	v.figures(int64(e.Attempt), e.At.UnixMicro(), e.Ended.UnixMicro())
	v.texts(string(e.Tenant))
	v.figures(kind)
	v.texts(string(e.User), joinLabels(e.Labels), e.UpstreamRequestID)
	v.figures(int64(u.Input), int64(u.CacheRead), int64(u.CacheWrite), int64(u.CacheWrite1h), int64(u.AudioInput))
	v.figures(int64(u.Output), int64(u.Reasoning), int64(u.AudioOutput), u.ToolCalls, u.WebSearches, u.Units)
	v.figures(int64(e.Cost), int64(e.CostHigh), int64(e.EstimatedInput), int64(e.OutputBound), int64(e.HeldSpend))
	v.figures(e.Queued.Microseconds(), e.FirstToken.Microseconds(), e.Duration.Microseconds())
	v.texts(string(e.Run), string(e.ShadowOf))
	v.figures(flag(e.Voided))
	v.texts(string(e.Detail))
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

// boundedAll are entries as the database can take them. Of those that follow each other
// most are of one kind, the texts of which are looked at once.
func boundedAll(entries []ledger.Entry) []*ledger.Entry {
	rows := make([]*ledger.Entry, len(entries))
	var last kind
	clean := false // the texts of last are
	for i := range entries {
		e := &entries[i]
		if k := kindOf(e); i == 0 || k != last {
			copied := *e
			last, clean = k, !mendKind(&copied)
		}
		rows[i] = bounded(e, clean)
	}
	return rows
}

// bounded returns the entry as the database can take it, itself where it can. clean says
// that the texts of its kind need no mending.
func bounded(e *ledger.Entry, clean bool) *ledger.Entry {
	c := *e
	changed := mend(&c)
	if !clean {
		changed = mendKind(&c) || changed
	}
	if !changed {
		return e
	}
	mended := new(ledger.Entry)
	*mended = c
	return mended
}

// mend makes text valid UTF-8 without NUL and holds figures within 0 and maxFigure, but
// for the texts of the entry's kind. A usage that had to be changed is marked anomalous.
// It reports whether it changed anything.
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
		clean(&e.Request), clean(&e.Tenant), clean(&e.User), clean(&e.Run), clean(&e.ShadowOf), clean(&e.UpstreamRequestID),
	} {
		changed = changed || c
	}
	if e.At.IsZero() && !e.Ended.IsZero() {
		e.At, changed = e.Ended, true
	}
	if bytes.IndexByte(e.Detail, 0) >= 0 || !utf8.Valid(e.Detail) {
		detail := string(e.Detail)
		changed = clean(&detail) || changed
		e.Detail = []byte(detail)
	}
	if len(e.Labels) > 0 && dirty(joinLabels(e.Labels)) {
		e.Labels, changed = nil, true
	}
	return changed
}

// mendKind makes the texts of an entry's kind valid likewise.
func mendKind(e *ledger.Entry) (changed bool) {
	for _, c := range [...]bool{
		clean(&e.Project), clean(&e.Key), clean(&e.Model), clean(&e.Pool), clean(&e.Backend), clean(&e.Provider),
		clean(&e.Task), clean(&e.UpstreamModel), clean(&e.ServedModel), clean(&e.Policy), clean(&e.Operation), clean(&e.Dialect),
		clean(&e.Usage.ServiceTier), clean(&e.PriceVersion), clean(&e.Finish),
	} {
		changed = changed || c
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
