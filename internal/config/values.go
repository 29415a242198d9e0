package config

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"sluice"
)

// Duration is a time span in Go's notation: 250ms, 15s, 1h30m.
type Duration time.Duration

const durationFix = "write a number and a unit: 250ms, 15s, 5m or 1h"

// UnmarshalText reads a duration that is not negative. A bare number is refused:
// it has no unit.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return wrong(durationFix, "%q is not a duration", b)
	}
	if v < 0 {
		return wrong(durationFix, "%q is negative", b)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Count is a number of tokens or requests: 600, 50k, 1M, 1.5M.
type Count int64

const countFix = "write a whole number, with k, M or G for thousands, millions or billions: 600, 50k, 1M"

var decimal = map[string]int64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}

// UnmarshalText reads a count that is not negative.
func (c *Count) UnmarshalText(b []byte) error {
	v, err := scaled(string(b), decimal, countFix)
	*c = Count(v)
	return err
}

func (c Count) String() string {
	for _, u := range []struct {
		suffix string
		size   Count
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if c != 0 && c%u.size == 0 {
			return strconv.FormatInt(int64(c/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(c), 10)
}

// MarshalText writes what UnmarshalText reads.
func (c Count) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Bytes is an amount of memory: 512KiB, 32MiB, 1GB.
type Bytes int64

const bytesFix = "write a number and a unit: 512KiB, 32MiB, 1GB"

var binary = map[string]int64{"B": 1, "": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// UnmarshalText reads an amount that is not negative.
func (s *Bytes) UnmarshalText(b []byte) error {
	v, err := scaled(string(b), binary, bytesFix)
	*s = Bytes(v)
	return err
}

func (s Bytes) String() string {
	for _, u := range []struct {
		suffix string
		size   Bytes
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes what UnmarshalText reads.
func (s Bytes) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// scaled reads digits, with at most three decimals, and a unit, exactly.
func scaled(s string, units map[string]int64, fix string) (int64, error) {
	n := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' })
	if n < 0 {
		n = len(s)
	}
	if n == 0 && strings.HasPrefix(s, "-") {
		return 0, wrong(fix, "%q is negative", s)
	}
	unit, ok := units[strings.TrimSpace(s[n:])]
	digits, frac, _ := strings.Cut(strings.ReplaceAll(s[:n], "_", ""), ".")
	if !ok || digits == "" || len(frac) > 3 || strings.Contains(frac, ".") {
		return 0, wrong(fix, "%q is not an amount", s)
	}
	scale := int64(1)
	for range frac {
		scale *= 10
	}
	v, err := strconv.ParseInt(digits+frac, 10, 64)
	if err != nil || v > math.MaxInt64/unit {
		return 0, wrong(fix, "%q is out of range", s)
	}
	if v*unit%scale != 0 {
		return 0, wrong(fix, "%q is not a whole amount", s)
	}
	return v * unit / scale, nil
}

// Percent is a share in whole percent: 60%.
type Percent int64

// UnmarshalText reads 0% to 100%.
func (p *Percent) UnmarshalText(b []byte) error {
	const fix = "write a whole number from 0% to 100%"
	digits, ok := strings.CutSuffix(string(b), "%")
	v, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || v < 0 || v > 100 {
		return wrong(fix, "%q is not a share", b)
	}
	*p = Percent(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (p Percent) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d%%", int64(p)), nil }

// Money is an amount in US dollars: $100, $0.50.
type Money sluice.Nano

const moneyFix = "write dollars with at most nine decimals: $100, $0.50"

// UnmarshalText reads an amount that is not negative.
func (m *Money) UnmarshalText(b []byte) error {
	v, err := sluice.ParseMoney(string(b))
	if err != nil {
		return wrong(moneyFix, "%q is not an amount of money", b)
	}
	*m = Money(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (m Money) MarshalText() ([]byte, error) { return sluice.Nano(m).MarshalText() }

// Address is where to listen: HOST:PORT, or :PORT for every interface.
type Address string

// UnmarshalText reads an address with a numeric port; port 0 lets the system
// choose.
func (a *Address) UnmarshalText(b []byte) error {
	const fix = "write HOST:PORT, such as 127.0.0.1:8080"
	_, port, err := net.SplitHostPort(string(b))
	if err != nil {
		return wrong(fix, "%q is not an address to listen on", b)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return wrong(fix, "port %q is not a number from 0 to 65535", port)
	}
	*a = Address(b)
	return nil
}

// Time is a moment: 2026-11-01 (UTC midnight) or 2026-11-01T12:00:00Z.
type Time struct{ time.Time }

// UnmarshalText reads a date or an RFC 3339 time.
func (t *Time) UnmarshalText(b []byte) error {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if v, err := time.Parse(layout, string(b)); err == nil {
			t.Time = v
			return nil
		}
	}
	return wrong("write a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z", "%q is not a moment", b)
}

// Secret is a credential, with where it was written.
type Secret struct {
	sluice.Secret
	// Open is set when the credential itself stands in the file.
	Open bool
}

// MarshalText hides it. (A promoted method would do; it is spelt out because
// everything depends on it.)
func (s Secret) MarshalText() ([]byte, error) { return s.Secret.MarshalText() }

// UnmarshalText takes the credential as it is written.
func (s *Secret) UnmarshalText(b []byte) error {
	s.Secret, s.Open = sluice.NewSecret(string(b)), true
	return nil
}

// LogLevel is the least severity that is logged.
type LogLevel slog.Level

var logLevels = []string{"debug", "info", "warn", "error"}

// UnmarshalText reads debug, info, warn or error.
func (l *LogLevel) UnmarshalText(b []byte) error {
	for i, name := range logLevels {
		if name == string(b) {
			*l = LogLevel(slog.LevelDebug + slog.Level(4*i))
			return nil
		}
	}
	return wrong(suggest(string(b), logLevels), "%q is not a log level", b)
}

// MarshalText writes what UnmarshalText reads.
func (l LogLevel) MarshalText() ([]byte, error) {
	return []byte(strings.ToLower(slog.Level(l).String())), nil
}
