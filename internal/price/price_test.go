package price

import (
	"strings"
	"testing"
	"time"

	"sluice"
)

// mills is a price of that many thousandths of a dollar per million tokens.
func mills(n int64) sluice.Price { return sluice.Price(n * 1_000_000) }

// luna is priced like a model with context tiers, cache writes and service
// tiers; opus like one with two cache lifetimes.
func luna() *Row {
	return &Row{
		Provider: "openai", Model: "gpt-5.6-luna",
		Rates: Rates{Input: mills(200), CacheRead: mills(20), CacheWrite: mills(250), Output: mills(1200)},
		Tiers: []Tier{{AboveInput: 272_000, Rates: Rates{Input: mills(400), CacheRead: mills(40), CacheWrite: mills(500), Output: mills(1800)}}},
		Variants: map[string][]Tier{
			"batch":    {{Rates: Rates{Input: mills(100), Output: mills(600)}}, {AboveInput: 272_000, Rates: Rates{Input: mills(200), Output: mills(900)}}},
			"priority": {{Rates: Rates{Input: mills(400), CacheRead: mills(40), CacheWrite: mills(500), Output: mills(2400)}}},
		},
		WebSearch: 10_000_000_000_000, // $10 per thousand
	}
}

func opus() *Row {
	return &Row{
		Provider: "anthropic", Model: "claude-opus-4-6",
		Rates: Rates{Input: mills(5000), CacheRead: mills(500), CacheWrite: mills(6250), CacheWrite1h: mills(10_000), Output: mills(25_000)},
	}
}

// TestCost compares with sums made by hand, in nano-dollars.
func TestCost(t *testing.T) {
	audio := &Row{Rates: Rates{Input: mills(300), AudioInput: mills(1000), Output: mills(2500), AudioOutput: mills(12_000), Reasoning: mills(3000)}}
	bare := &Row{Rates: Rates{Input: mills(3000), Output: mills(15_000)}}
	tests := []struct {
		name string
		row  *Row
		u    sluice.Usage
		want sluice.Nano
	}{
		{"nothing", luna(), sluice.Usage{}, 0},
		{"input and output", luna(), sluice.Usage{Input: 1000, Output: 100}, 320_000},
		// 10,000 prompt, of which 6,000 read and 1,000 written; 500 output, of which 300 hidden:
		// 3,000×200 + 6,000×20 + 1,000×250 + 500×1,200 = 600k + 120k + 250k + 600k
		{"openai with cache and reasoning", luna(), sluice.Usage{Input: 3000, CacheRead: 6000, CacheWrite: 1000, Output: 200, Reasoning: 300}, 1_570_000},
		// 2,048 fresh, 100,000 read, 4,096 written for 5 min, 1,024 for 1 h, 700 out:
		// 10,240,000 + 50,000,000 + 25,600,000 + 10,240,000 + 17,500,000
		{"anthropic with both cache lifetimes", opus(), sluice.Usage{Input: 2048, CacheRead: 100_000, CacheWrite: 4096, CacheWrite1h: 1024, Output: 700}, 113_580_000},
		{"at a threshold", luna(), sluice.Usage{Input: 272_000}, 54_400_000},
		{"above it, all of it", luna(), sluice.Usage{Input: 272_001}, 108_800_400},
		{"cached input counts for the threshold", luna(), sluice.Usage{Input: 1, CacheRead: 272_000, Output: 10}, 10_898_400},
		{"batch", luna(), sluice.Usage{Input: 1000, Output: 100, ServiceTier: "batch"}, 160_000},
		{"batch, long", luna(), sluice.Usage{Input: 300_000, Output: 100, ServiceTier: "batch"}, 60_090_000},
		{"batch lists no cache price", luna(), sluice.Usage{CacheRead: 1000, ServiceTier: "batch"}, 100_000},
		{"fast is priority", luna(), sluice.Usage{Input: 1000, Output: 100, ServiceTier: "fast"}, 640_000},
		{"a tier that is not listed", luna(), sluice.Usage{Input: 1000, Output: 100, ServiceTier: "scale"}, 320_000},
		{"the default by its name", luna(), sluice.Usage{Input: 1000, ServiceTier: "default"}, 200_000},
		{"web searches", luna(), sluice.Usage{Input: 1000, WebSearches: 3}, 30_200_000},
		{"audio and reasoning of their own", audio, sluice.Usage{Input: 100, AudioInput: 100, Output: 10, Reasoning: 10, AudioOutput: 10}, 30_000 + 100_000 + 25_000 + 30_000 + 120_000},
		{"everything inherits", bare, sluice.Usage{Input: 1, CacheRead: 1, CacheWrite: 1, CacheWrite1h: 1, AudioInput: 1, Output: 1, Reasoning: 1, AudioOutput: 1}, 5*3000 + 3*15_000},
		{"a fee per request", &Row{Rates: Rates{Input: mills(1000), Output: mills(1000)}, Request: 12_000_000_000_000}, sluice.Usage{Input: 1, Output: 1}, 12_002_000},
		{"no fee where nothing ran", &Row{Rates: Rates{Input: mills(1000), Output: mills(1000)}, Request: 12_000_000_000_000}, sluice.Usage{}, 0},
		{"three images", &Row{Rates: Rates{Input: Free, Output: Free}, Per: Image, Unit: 40_000_000 * 1_000_000}, sluice.Usage{Units: 3}, 120_000_000},
		{"free", &Row{Rates: Rates{Input: Free, Output: Free}}, sluice.Usage{Input: 1 << 40, CacheRead: 9, Output: 1 << 40}, 0},
		{"half to even, down", &Row{Rates: Rates{Input: 500_000, Output: Free}}, sluice.Usage{Input: 1}, 0},
		{"half to even, up", &Row{Rates: Rates{Input: 500_000, Output: Free}}, sluice.Usage{Input: 3}, 2},
		{"rounded once", &Row{Rates: Rates{Input: 400_000, Output: 400_000}}, sluice.Usage{Input: 1, Output: 1}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.row.Cost(tt.u); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	w := sluice.Work{Input: 1000, InputBound: 4000, CachedInput: 900, Output: 50, OutputHold: 200, OutputBound: 1000}
	long := w
	long.InputBound = 300_000
	tests := []struct {
		name       string
		row        *Row
		w          sluice.Work
		soft, hard sluice.Nano
	}{
		// hard: priority writes at 500 and puts out at 2,400
		{"dearest service tier", luna(), w, 1000*200 + 200*1200, 4000*500 + 1000*2400},
		{"dearest reachable context tier", luna(), long, 1000*200 + 200*1200, 300_000*500 + 1000*2400},
		{"an hour's write", opus(), w, 1000*5000 + 200*25_000, 4000*10_000 + 1000*25_000},
		{"dear reasoning", &Row{Rates: Rates{Input: mills(1), Output: mills(2), Reasoning: mills(3)}}, w, 1000*1 + 200*3, 4000*1 + 1000*3},
		{"rounded up", &Row{Rates: Rates{Input: 1, Output: Free}}, w, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.row.SoftHold(tt.w); got != tt.soft {
				t.Errorf("soft: got %d, want %d", got, tt.soft)
			}
			if got := tt.row.HardHold(tt.w); got != tt.hard {
				t.Errorf("hard: got %d, want %d", got, tt.hard)
			}
		})
	}
	if got, want := luna().HardHold(sluice.Work{Searches: 2}), sluice.Nano(20_000_000); got != want {
		t.Errorf("searches: got %d, want %d", got, want)
	}
}

func TestOutputWithin(t *testing.T) {
	w := sluice.Work{InputBound: 1000, OutputBound: 500}
	r := &Row{Rates: Rates{Input: mills(1000), Output: mills(10_000)}}
	free := &Row{Rates: Rates{Input: mills(1000), Output: Free}}
	tests := []struct {
		name   string
		row    *Row
		budget sluice.Nano
		want   sluice.Tokens
	}{
		{"no money", r, 0, 0},
		{"debt", r, -1, 0},
		{"less than the input", r, 999_999, 0},
		{"the input alone", r, 1_000_000, 0},
		{"one token short", r, 1_009_999, 0},
		{"one token", r, 1_010_000, 1},
		{"all of it", r, 6_000_000, 500},
		{"more than all", r, 1 << 62, 500},
		{"free output", free, 1_000_000, 500},
		{"free output, input that does not fit", free, 999_999, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.row.OutputWithin(w, tt.budget); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// A price of one kind prices nothing else: an image model is not charged as if it wrote.
func TestPrices(t *testing.T) {
	tokens, images := Row{Rates: Rates{Input: 1, Output: 1}}, Row{Per: Image, Unit: 1}
	tests := []struct {
		row  Row
		b    Billing
		want bool
	}{
		{tokens, Billing{}, true},
		{tokens, Billing{Unit: Image, Tokens: true}, true},
		{tokens, Billing{Unit: Character}, false},
		{images, Billing{}, false},
		{images, Billing{Unit: Image, Tokens: true}, true},
		{images, Billing{Unit: Second, Tokens: true}, false},
	}
	for _, tt := range tests {
		if got := tt.row.Prices(tt.b); got != tt.want {
			t.Errorf("per %v, billed by %+v: got %v, want %v", tt.row.Per, tt.b, got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	ok := Rates{Input: 1, Output: 1}
	tests := []struct {
		name string
		row  Row
		want string // part of the error, empty if none
	}{
		{"fine", *luna(), ""},
		{"free", Row{Rates: Rates{Input: Free, Output: Free}}, ""},
		{"no input", Row{Rates: Rates{Output: 1}}, "input price is missing"},
		{"no output", Row{Rates: Rates{Input: 1}}, "output price is missing"},
		{"negative", Row{Rates: Rates{Input: -2, Output: 1}}, "negative"},
		{"a unit without its price", Row{Rates: ok, Per: Image}, "go together"},
		{"a unit's price for nothing", Row{Rates: ok, Unit: 1}, "go together"},
		{"negative fee", Row{Rates: ok, WebSearch: -2}, "negative"},
		{"tier at 0", Row{Rates: ok, Tiers: []Tier{{}}}, "ascend"},
		{"tiers that fall", Row{Rates: ok, Tiers: []Tier{{AboveInput: 2}, {AboveInput: 1}}}, "ascend"},
		{"empty variant", Row{Rates: ok, Variants: map[string][]Tier{"flex": nil}}, "start with a tier above 0"},
		{"late variant", Row{Rates: ok, Variants: map[string][]Tier{"flex": {{AboveInput: 5}}}}, "start with a tier above 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.row.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestBook(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2027, 1, d, 0, 0, 0, 0, time.UTC) }
	row := func(model string, from time.Time, in sluice.Price) Row {
		return Row{Provider: "p", Model: model, From: from, Rates: Rates{Input: in, Output: 1}}
	}
	b, err := NewBook("v7", []Row{row("a", day(10), 2), row("a", time.Time{}, 1), row("b", day(10), 3)})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, model string
		at          time.Time
		want        sluice.Price // 0 if not found
	}{
		{"always", "a", day(1), 1},
		{"last moment", "a", day(10).Add(-1), 1},
		{"change", "a", day(10), 2},
		{"after", "a", day(20), 2},
		{"not yet", "b", day(1), 0},
		{"unknown", "c", day(1), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got sluice.Price
			if r, ok := b.Lookup("p", tt.model, tt.at); ok {
				got = r.Rates.Input
				if r.Version != "v7" {
					t.Errorf("version: got %q", r.Version)
				}
			}
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	if b.Version() != "v7" || b.Len() != 3 {
		t.Errorf("got %q with %d rows", b.Version(), b.Len())
	}
	if _, err := NewBook("v", []Row{row("a", day(1), 1), row("a", day(1), 2)}); err == nil {
		t.Error("two rows from one moment were taken")
	}
	if _, err := NewBook("v", []Row{{Model: "x"}}); err == nil {
		t.Error("a row without prices was taken")
	}
}
