package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
)

// set takes a field of an update, if it is there.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// words turns names into text, for an answer.
func words[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, string(s))
	}
	return out
}

// ids turns text into names.
func ids[T ~string](in []string) []T {
	out := make([]T, 0, len(in))
	for _, s := range in {
		out = append(out, T(s))
	}
	return out
}

// texts turns enums into their words.
func texts[T fmt.Stringer](in []T) []string {
	out := make([]string, 0, len(in))
	for _, v := range in {
		out = append(out, v.String())
	}
	return out
}

// place is where a record is declared, empty for the store.
func place(o auth.Origin) string {
	if !o.Declared() {
		return ""
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// moment is a time of an answer, nil for none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// parseDuration reads a Go duration that is not negative; empty is 0.
func parseDuration(param, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, hinted(sluice.Invalid(param, "is not a duration"), "write 30s, 5m or 24h")
	}
	return d, nil
}

// parseTime reads a moment: RFC 3339, a date, or a duration or days before now.
func parseTime(param, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(s, "d")); err == nil && strings.HasSuffix(s, "d") && 0 <= n && n < 36500 {
		return now.AddDate(0, 0, -n), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, hinted(sluice.Invalid(param, "is not a time"), "write 24h or 7d (ago), 2006-01-02 or 2006-01-02T15:04:05Z")
}
