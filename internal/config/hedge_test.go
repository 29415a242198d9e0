package config

import (
	"testing"
	"time"
)

func TestHedgeAfter(t *testing.T) {
	for text, want := range map[string]HedgeAfter{
		"800ms": {Time: Duration(800 * time.Millisecond)}, "1.5s": {Time: Duration(1500 * time.Millisecond)},
		"p50": {Permille: 500}, "p95": {Permille: 950}, "p99.5": {Permille: 995}, "p99.9": {Permille: 999},
	} {
		var got HedgeAfter
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if back := got.String(); back != text {
			t.Errorf("%s is written as %s", text, back)
		}
	}
	for _, text := range []string{"", "800", "p", "p49", "p100", "p99.95", "p9_5", "p-95", "p95/1", "p95%", "95", "-1s", "pp95", "p1e3"} {
		var got HedgeAfter
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	if got := (&Model{Hedge: &Hedge{}}).hedge(Naive); got != nil {
		t.Errorf("naive hedges %+v", got)
	}
	if got := (&Model{Hedge: &Hedge{After: HedgeAfter{Permille: 950}}}).hedge(Fair); got.Permille != 950 || got.Classes != [len(got.Classes)]bool{true} {
		t.Errorf("got %+v, want interactive alone", got)
	}
}
