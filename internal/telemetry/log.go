package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice"
	"sluice/internal/ledger"
	"sluice/internal/proxy"
)

// maxLogged bounds one string of a log record, and maxStack the stack of a
// panic, in bytes.
const (
	maxLogged = 512
	maxStack  = 16 << 10
)

// stackKey is the attribute of a stack.
const stackKey = "stack"

// LogOptions says how records are written.
type LogOptions struct {
	Level  slog.Level
	Format string // "json" (also when empty) or "text"
}

// ParseLevel reads "debug", "info", "warn" or "error".
func ParseLevel(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, fmt.Errorf("log level %q: use debug, info, warn or error", s)
	}
	return l, nil
}

// NewLogger returns a logger whose records are one line each, with times in UTC
// and strings bounded and free of control characters.
func NewLogger(w io.Writer, o LogOptions) *slog.Logger {
	ho := &slog.HandlerOptions{Level: o.Level, ReplaceAttr: cleanAttr}
	if o.Format == "text" {
		return slog.New(slog.NewTextHandler(w, ho))
	}
	return slog.New(slog.NewJSONHandler(w, ho))
}

// cleanAttr is applied to every attribute of every record: what an upstream, a
// client or an error message brought along must not forge a line or drive a
// terminal.
func cleanAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		limit := maxLogged
		if a.Key == stackKey {
			limit = maxStack
		}
		a.Value = slog.StringValue(clean(v.String(), limit))
	case slog.KindTime:
		a.Value = slog.TimeValue(v.Time().UTC())
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(Clean(err.Error()))
		}
	}
	return a
}

// Clean makes white space a space, replaces control and direction-changing
// characters and invalid UTF-8 by U+FFFD and cuts the string at 512 bytes.
func Clean(s string) string { return clean(s, maxLogged) }

func clean(s string, limit int) string {
	if len(s) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unsafeRune(r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// unsafeRune tells control characters (C0, DEL, C1), line and paragraph
// separators, and the format characters that hide or reorder text.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError
}

// Request is one request at its end, as the data plane tells it.
type Request = proxy.Record

// LogRequest writes the canonical line of one request: who, what, how it ended
// and what it took. It holds no body and no credential; the key is its public
// id. Level is info, or warn when the gateway or a backend failed it.
func LogRequest(ctx context.Context, l *slog.Logger, r *Request) {
	e := &r.Final
	level := slog.LevelInfo
	if e.Outcome == sluice.Failed || e.Outcome == sluice.Expired {
		level = slog.LevelWarn
	}
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 40)
	attrs = append(attrs,
		slog.String("request_id", string(e.Request)),
		slog.String("tenant", string(e.Tenant)),
		slog.String("project", string(e.Project)),
		slog.String("key", string(e.Key)),
		slog.String("operation", e.Operation),
		slog.String("model", string(e.Model)),
		slog.String("class", e.Class.String()),
		slog.String("outcome", e.Outcome.String()),
		slog.String("reason", e.Reason.String()),
		slog.Int("status", e.Status),
		slog.Int("attempts", e.Attempt),
		slog.Bool("stream", e.Stream),
		seconds("queued_s", e.Queued),
		seconds("ttft_s", e.FirstToken),
		seconds("duration_s", e.Duration),
	)
	attrs = appendRoute(attrs, e)
	attrs = appendUsage(attrs, r)
	attrs = appendRefusal(attrs, r)
	l.LogAttrs(ctx, level, "request", attrs...)
}

func appendRoute(attrs []slog.Attr, e *ledger.Entry) []slog.Attr {
	for _, a := range [...]struct{ key, value string }{
		{"backend", string(e.Backend)},
		{"pool", string(e.Pool)},
		{"policy", e.Policy},
		{"task", e.Task},
		{"upstream_request_id", e.UpstreamRequestID},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	return attrs
}

func appendUsage(attrs []slog.Attr, r *Request) []slog.Attr {
	for _, c := range tokenClasses(&r.Usage) {
		if c.n != 0 {
			attrs = append(attrs, slog.Int64("tokens_"+c.name, int64(c.n)))
		}
	}
	return append(attrs,
		slog.String("usage_source", r.Usage.Source.String()),
		slog.Int64("cost_nanodollars", int64(r.Cost)),
	)
}

func appendRefusal(attrs []slog.Attr, r *Request) []slog.Attr {
	if f := r.Refusal; f != nil {
		attrs = append(attrs,
			slog.String("limit_scope", f.Scope.String()),
			slog.String("limit_dimension", f.Limit.Dimension.String()),
			slog.String("limit_window", f.Limit.Window.String()),
			slog.Int64("limit_amount", f.Limit.Amount),
		)
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	return attrs
}

// seconds writes a duration as seconds with microseconds: a number that log
// stores can sum.
func seconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1e6)
}
