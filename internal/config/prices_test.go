package config

import (
	"os"
	"regexp"
	"testing"

	"sluice"
	"sluice/internal/price"
)

// The sample of docs/images-and-audio.md loads, and prices what its table says.
func TestUnitPrices(t *testing.T) {
	text, err := os.ReadFile("../../docs/images-and-audio.md")
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindSubmatch(text)
	if sample == nil {
		t.Fatal("the page has no sample")
	}
	c, err := Parse("sample.yaml", sample[1], func(string) (string, bool) { return "x", true })
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(c, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for pool, want := range map[sluice.PoolID]price.Row{
		"images": {}, "voice": {Per: price.Character, Unit: 15_000 * 1_000_000}, "ear": {Per: price.Second, Unit: 100_000 * 1_000_000}, "moderation": {},
	} {
		row := s.Table.Pools[pool].Backends[0].Price
		if row == nil || row.Per != want.Per || row.Unit != want.Unit {
			t.Errorf("%s: got %+v, want %v at %d", pool, row, want.Per, want.Unit)
		}
	}
}
