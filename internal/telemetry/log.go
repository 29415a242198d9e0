package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice/internal/hook"
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

// credentials is what no log shows, whoever wrote it into a message: providers repeat the
// key that they refuse.
var credentials = hook.NewFinder(1<<hook.Secret | 1<<hook.PrivateKey | 1<<hook.JWT)

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
		a.Value = slog.StringValue(clean(credentials.Redact(v.String()), limit))
	case slog.KindTime:
		a.Value = slog.TimeValue(v.Time().UTC())
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(Clean(credentials.Redact(err.Error())))
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

// seconds writes a duration as seconds with microseconds: a number that log
// stores can sum.
func seconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1e6)
}
