package sluice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Every enum value has a word, the word reads back, and no two share one.
func TestEnumsAreWhole(t *testing.T) {
	checkEnum(t, "class", classNames, NumClasses)
	checkEnum(t, "dimension", dimensionNames, NumDimensions)
	checkEnum(t, "scope", scopeNames, NumScopes)
	checkEnum(t, "window", windowNames, NumWindows)
	checkEnum(t, "outcome", outcomeNames, NumOutcomes)
	checkEnum(t, "reason", reasonNames, NumReasons)
	checkEnum(t, "risk", riskNames, NumRisks)
	checkEnum(t, "limit mode", limitModeNames, NumLimitModes)
	checkEnum(t, "kind", kindNames, NumKinds)
	var r Reason
	if err := r.UnmarshalText([]byte("budget_held")); err != nil || r != BudgetHeld {
		t.Errorf("budget_held reads as %v, %v", r, err)
	}
	if err := r.UnmarshalText([]byte("bogus")); err == nil {
		t.Error("an unknown reason was read without an error")
	}
}

func checkEnum(t *testing.T, what string, names []string, n int) {
	t.Helper()
	if len(names) != n {
		t.Errorf("%s has %d words for %d values", what, len(names), n)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			t.Errorf("%s has the word %q twice", what, name)
		}
		seen[name] = true
	}
}

func TestSecretNeverPrints(t *testing.T) {
	const canary = "canary-5f1c"
	s := NewSecret(canary)
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s)
	fmt.Fprintf(&out, "%v %+v", struct{ S Secret }{s}, &struct{ S *Secret }{&s})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "in", struct{ S Secret }{s})
	j, err := json.Marshal(map[string]any{"a": s, "b": &s})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(j)
	if strings.Contains(out.String(), canary) || strings.Contains(out.String(), fmt.Sprintf("%x", canary)) {
		t.Errorf("the secret printed itself: %s", out.String())
	}
	if s.Reveal() != canary {
		t.Errorf("Reveal() = %q", s.Reveal())
	}
}

func TestLabels(t *testing.T) {
	if _, err := ParseTask(strings.Repeat("a", MaxTask)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{strings.Repeat("a", MaxTask+1), "Upper", "new\nline", "ü"} {
		if _, err := ParseTask(bad); err == nil {
			t.Errorf("ParseTask(%q) gave no error", bad)
		}
	}
	for _, bad := range []string{"", "-a", "A", strings.Repeat("a", 65), "a b"} {
		if ValidName(bad) == nil {
			t.Errorf("ValidName(%q) gave no error", bad)
		}
	}
}

func TestUsageSums(t *testing.T) {
	u := Usage{Input: 1, CacheRead: 2, CacheWrite: 4, CacheWrite1h: 8, AudioInput: 16, Output: 32, Reasoning: 64, AudioOutput: 128}
	if u.InputTotal() != 31 || u.OutputTotal() != 224 || u.Total() != 255 {
		t.Errorf("sums %d, %d, %d", u.InputTotal(), u.OutputTotal(), u.Total())
	}
}

func TestUsageAdds(t *testing.T) {
	var sum Usage
	sum.Add(Usage{Input: 1, Output: 2, Source: UsageReported, ServiceTier: "flex"})
	sum.Add(Usage{})
	sum.Add(Usage{Input: 3, Reasoning: 4, Source: UsageEstimated, Anomalous: true})
	want := Usage{Input: 4, Output: 2, Reasoning: 4, Source: UsageEstimated, Anomalous: true, ServiceTier: "flex"}
	if sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

func TestErrorHidesItsCause(t *testing.T) {
	cause := errors.New("dial tcp: secret host")
	e := AsError(fmt.Errorf("attempt: %w", cause))
	if e.Kind != KindInternal || strings.Contains(e.Msg, "secret host") || !errors.Is(e, cause) {
		t.Errorf("AsError gave %+v", e)
	}
	limited := &Error{Kind: KindRateLimited, Reason: RateLimited, RetryAfter: time.Second}
	if AsError(fmt.Errorf("admit: %w", limited)) != limited {
		t.Error("a wrapped *Error was not found")
	}
}

func TestPolicyAllows(t *testing.T) {
	p := Policy{Class: Standard, Classes: []Class{Interactive}, Models: []ModelID{"fast"}}
	if !p.Allows("fast") || p.Allows("slow") || !(&Policy{}).Allows("slow") {
		t.Error("model permissions are wrong")
	}
	if !p.AllowsClass(Batch) || !p.AllowsClass(Interactive) || (&Policy{Class: Standard}).AllowsClass(Interactive) {
		t.Error("class permissions are wrong")
	}
}
