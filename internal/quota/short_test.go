package quota

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice"
)

// What is written in short is read as it was, but for Reset, and is JSON's own text.
func TestShort(t *testing.T) {
	state := rapid.Custom(func(t *rapid.T) LimitState {
		return LimitState{
			Scope: sluice.Scope(rapid.IntRange(0, sluice.NumScopes-1).Draw(t, "scope")),
			Limit: sluice.Limit{
				Dimension: sluice.Dimension(rapid.IntRange(0, sluice.NumDimensions-1).Draw(t, "dimension")),
				Window:    sluice.Window(rapid.IntRange(0, sluice.NumWindows-1).Draw(t, "window")),
				Amount:    rapid.Int64Range(0, 1<<62).Draw(t, "amount"),
			},
			Remaining: rapid.Int64Range(0, 1<<62).Draw(t, "remaining"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(state).Draw(t, "states")
		short := AppendShort(nil, want)
		got, err := ParseShort(string(short))
		if err != nil || len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("got %v, %v from %s\nwant %v", got, err, short, want)
		}
		if quoted, _ := json.Marshal(string(short)); string(quoted) != `"`+string(short)+`"` {
			t.Errorf("%s needs escapes", short)
		}
	})
}

// Rows that were written once are read for good.
func TestShortIsKept(t *testing.T) {
	states := []LimitState{
		{Scope: sluice.ScopeTenant, Limit: sluice.Limit{Dimension: sluice.Requests, Window: sluice.PerMinute, Amount: 1000}, Remaining: 969, Reset: time.Second},
		{Scope: sluice.ScopeKey, Limit: sluice.Limit{Dimension: sluice.Concurrency, Amount: 8}, Remaining: 8},
		{Scope: sluice.ScopeTenantModel, Limit: sluice.Limit{Dimension: sluice.Spend, Window: sluice.PerMonth, Amount: 9e15}, Remaining: 9e15 - 114_000},
	}
	const want = "TRMv8-vKCN8-0QSY7vpef5fl000-3fag"
	got := string(AppendShort(nil, states))
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	states[0].Reset = 0
	if parsed, err := ParseShort(got); err != nil || !cmp.Equal(parsed, states) {
		t.Errorf("got %v, %v, want %v", parsed, err, states)
	}
}

func TestShortIsNot(t *testing.T) {
	for _, text := range []string{"T", "TR", "TRM", "TRM1", "TRM-", "TRM1-", "TRM1-1T", "XRM1-1", "TXM1-1", "TRX1-1", "TRMw-1", "TRM1-1 ", "trm1-1", "é1-1", "TRM1-1-1"} {
		if got, err := ParseShort(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func FuzzParseShort(f *testing.F) {
	f.Add("TRMv8-vKCN8-0")
	f.Fuzz(func(t *testing.T, text string) {
		states, err := ParseShort(text)
		if err != nil {
			return
		}
		if again, err := ParseShort(string(AppendShort(nil, states))); err != nil || !cmp.Equal(again, states) {
			t.Errorf("%q: %v, then %v, %v", text, states, again, err)
		}
	})
}
