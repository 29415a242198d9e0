package tabletop

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFillIsMaxMin: nobody gets more than it wants, nothing is left while somebody
// wants more, and who gets less than it wants has no less, by weight, than anybody.
func TestFillIsMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to := make([]portion, rapid.IntRange(1, 8).Draw(t, "n"))
		wanted := int64(0)
		for i := range to {
			to[i].weight = rapid.Int64Range(1, 5).Draw(t, "weight")
			to[i].want = rapid.Int64Range(0, 10_000).Draw(t, "want")
			wanted += to[i].want
		}
		amount := rapid.Int64Range(0, 30_000).Draw(t, "amount")
		fill(to, amount)
		given := int64(0)
		for _, a := range to {
			given += a.gets
			if a.gets < 0 || a.gets > a.want {
				t.Fatalf("one wants %d and gets %d", a.want, a.gets)
			}
			for _, b := range to {
				// Rounding takes less than one from each, and gives it to the last.
				if n := int64(len(to)); a.gets < a.want && (a.gets+1)*b.weight < (b.gets-n)*a.weight {
					t.Fatalf("of %d: %+v has less for its weight than %+v", amount, a, b)
				}
			}
		}
		if given != min(amount, wanted) {
			t.Fatalf("%d of %d were given, %d wanted", given, amount, wanted)
		}
	})
}
