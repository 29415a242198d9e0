package price

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"sluice"
)

var genPrice = rapid.OneOf(
	rapid.Just(sluice.Price(0)), rapid.Just(Free),
	rapid.Custom(func(t *rapid.T) sluice.Price {
		return sluice.Price(rapid.Int64Range(1, 400_000_000_000).Draw(t, "price"))
	}),
)

var genRates = rapid.Custom(func(t *rapid.T) Rates {
	p := func(name string) sluice.Price { return genPrice.Draw(t, name) }
	return Rates{p("in"), p("read"), p("write"), p("write1h"), p("audio in"), p("out"), p("reasoning"), p("audio out")}
})

var genTiers = rapid.Custom(func(t *rapid.T) []Tier {
	var tiers []Tier
	above := sluice.Tokens(0)
	for range rapid.IntRange(0, 3).Draw(t, "tiers") {
		above += sluice.Tokens(rapid.Int64Range(1, 500_000).Draw(t, "step"))
		tiers = append(tiers, Tier{above, genRates.Draw(t, "rates")})
	}
	return tiers
})

var genRow = rapid.Custom(func(t *rapid.T) *Row {
	r := &Row{Rates: genRates.Draw(t, "rates"), Tiers: genTiers.Draw(t, "tiers"), WebSearch: genPrice.Draw(t, "search"), Request: genPrice.Draw(t, "request")}
	r.Rates.Input = or(r.Rates.Input, 1)
	r.Rates.Output = or(r.Rates.Output, 1)
	if r.Unit = genPrice.Draw(t, "unit"); r.Unit != 0 {
		r.Per = Image
	}
	for _, name := range []string{"batch", "flex", "priority", "fast"} {
		if rapid.Bool().Draw(t, name) {
			if r.Variants == nil {
				r.Variants = map[string][]Tier{}
			}
			r.Variants[name] = append([]Tier{{0, genRates.Draw(t, "base")}}, genTiers.Draw(t, "variant")...)
		}
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
})

var genTier = rapid.SampledFrom([]string{"", "batch", "flex", "priority", "fast", "default", "scale"})

// within draws a usage whose input and output are within the bounds.
func within(t *rapid.T, w sluice.Work) sluice.Usage {
	u := sluice.Usage{ServiceTier: genTier.Draw(t, "tier")}
	left := w.InputBound
	for _, n := range []*sluice.Tokens{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.AudioInput} {
		*n = sluice.Tokens(rapid.Int64Range(0, int64(left)).Draw(t, "input"))
		left -= *n
	}
	u.WebSearches = rapid.Int64Range(0, w.Searches).Draw(t, "searches")
	u.Units = rapid.Int64Range(0, w.UnitsBound).Draw(t, "units")
	left = w.OutputBound
	for _, n := range []*sluice.Tokens{&u.Output, &u.Reasoning, &u.AudioOutput} {
		*n = sluice.Tokens(rapid.Int64Range(0, int64(left)).Draw(t, "output"))
		left -= *n
	}
	return u
}

var genWork = rapid.Custom(func(t *rapid.T) sluice.Work {
	return sluice.Work{
		InputBound:  sluice.Tokens(rapid.Int64Range(0, 2_000_000).Draw(t, "input bound")),
		OutputBound: sluice.Tokens(rapid.Int64Range(0, 1_000_000).Draw(t, "output bound")),
		Searches:    rapid.Int64Range(0, 100).Draw(t, "searches"),
		UnitsBound:  rapid.Int64Range(0, 100_000).Draw(t, "units"),
	}
})

func TestHardHoldCoversEveryUsage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w := genRow.Draw(t, "row"), genWork.Draw(t, "work")
		u := within(t, w)
		if hold, cost := r.HardHold(w), r.Cost(u); hold < cost {
			t.Fatalf("%+v costs %d, the hold is %d", u, cost, hold)
		}
	})
}

func TestOutputWithinInvertsHardHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, w := genRow.Draw(t, "row"), genWork.Draw(t, "work")
		budget := sluice.Nano(rapid.Int64Range(0, int64(r.HardHold(w))*2+10).Draw(t, "budget"))
		n := r.OutputWithin(w, budget)
		if n < 0 || n > w.OutputBound {
			t.Fatalf("got %d, the bound is %d", n, w.OutputBound)
		}
		at := func(n sluice.Tokens) sluice.Nano { v := w; v.OutputBound = n; return r.HardHold(v) }
		if n > 0 && at(n) > budget {
			t.Fatalf("%d tokens hold %d, the budget is %d", n, at(n), budget)
		}
		if n < w.OutputBound && at(n+1) <= budget {
			t.Fatalf("%d tokens would still fit %d", n+1, budget)
		}
	})
}

// TestCostIsExact compares with rational arithmetic over rates that the test
// finds itself, by walking down what is listed.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRow.Draw(t, "row")
		u := within(t, sluice.Work{InputBound: 1 << 40, OutputBound: 1 << 40})
		u.WebSearches, u.Units = rapid.Int64Range(0, 1000).Draw(t, "searches"), rapid.Int64Range(0, 1000).Draw(t, "units")
		if got, want := r.Cost(u), oracle(r, u); want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("got %d, want %s", got, want)
		}
	})
}

func oracle(r *Row, u sluice.Usage) *big.Int {
	levels := []Rates{r.Rates} // the last one that lists a price of input or output has it
	tiers := r.Tiers
	v, ok := r.Variants[u.ServiceTier]
	if other := map[string]string{"fast": "priority", "priority": "fast"}[u.ServiceTier]; !ok && other != "" {
		v, ok = r.Variants[other]
	}
	if ok {
		levels, tiers = append(levels, v[0].Rates), v[1:]
	}
	hit := -1
	for i, tier := range tiers {
		if u.InputTotal() > tier.AboveInput {
			hit = i
		}
	}
	if hit >= 0 {
		levels = append(levels, tiers[hit].Rates)
	}
	last := levels[len(levels)-1]
	var in, out sluice.Price
	for _, l := range levels {
		if l.Input != 0 {
			in = l.Input
		}
		if l.Output != 0 {
			out = l.Output
		}
	}
	first := func(ps ...sluice.Price) sluice.Price {
		for _, p := range ps {
			if p != 0 {
				return p
			}
		}
		return 0
	}
	sum := new(big.Int)
	add := func(n int64, p sluice.Price) {
		if p > 0 {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(p))))
		}
	}
	add(int64(u.Input), in)
	add(int64(u.CacheRead), first(last.CacheRead, in))
	add(int64(u.CacheWrite), first(last.CacheWrite, in))
	add(int64(u.CacheWrite1h), first(last.CacheWrite1h, last.CacheWrite, in))
	add(int64(u.AudioInput), first(last.AudioInput, in))
	add(int64(u.Output), out)
	add(int64(u.Reasoning), first(last.Reasoning, out))
	add(int64(u.AudioOutput), first(last.AudioOutput, out))
	add(u.WebSearches, r.WebSearch)
	add(u.Units, r.Unit)
	if u.Total() > 0 || u.Units > 0 {
		add(1, r.Request)
	}
	q, rem := new(big.Int).QuoRem(sum, big.NewInt(1_000_000), new(big.Int))
	if c := new(big.Int).Lsh(rem, 1).Cmp(big.NewInt(1_000_000)); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	if limit := big.NewInt(1<<63 - 1); q.Cmp(limit) > 0 {
		q = limit
	}
	return q
}
