package sluice

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The oracle computes the same sum in arbitrary precision.
func TestCostAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cost
		sum := new(big.Int)
		for range rapid.IntRange(0, 8).Draw(t, "terms") {
			n := rapid.Int64Range(-3, 1<<44).Draw(t, "count")
			p := rapid.Int64Range(-3, 1<<44).Draw(t, "price")
			c.Add(n, Price(p))
			if n > 0 && p > 0 {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(p)))
			}
		}
		q, r := new(big.Int).QuoRem(sum, big.NewInt(perMillion), new(big.Int))
		up := new(big.Int).Set(q)
		if r.Sign() > 0 {
			up.Add(up, big.NewInt(1))
		}
		even := new(big.Int).Set(q)
		if cmp := r.Cmp(big.NewInt(perMillion / 2)); cmp > 0 || cmp == 0 && q.Bit(0) == 1 {
			even.Add(even, big.NewInt(1))
		}
		limit := big.NewInt(1<<63 - 1)
		for _, v := range []struct {
			name string
			got  Nano
			want *big.Int
		}{{"Up", c.Up(), up}, {"Even", c.Even(), even}} {
			want := v.want
			if want.Cmp(limit) > 0 {
				want = limit
			}
			if big.NewInt(int64(v.got)).Cmp(want) != 0 {
				t.Fatalf("%s = %d, want %s", v.name, v.got, want)
			}
		}
	})
}

func TestCostScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<40).Draw(t, "count")
		p := rapid.Int64Range(0, 1<<40).Draw(t, "price")
		num := rapid.Uint64Range(0, 1<<30).Draw(t, "num")
		den := rapid.Uint64Range(1, 1<<30).Draw(t, "den")
		var c Cost
		c.Add(n, Price(p))
		c.Scale(num, den)
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(p))
		want.Mul(want, new(big.Int).SetUint64(num)).Quo(want, new(big.Int).SetUint64(den))
		got := new(big.Int).Lsh(new(big.Int).SetUint64(c.hi), 64)
		got.Add(got, new(big.Int).SetUint64(c.lo))
		if got.Cmp(want) != 0 {
			t.Fatalf("%d × %d × %d/%d = %s, want %s", n, p, num, den, got, want)
		}
	})
}

func TestMoneyText(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Nano
		text string
	}{
		{"$1.50", 1_500_000_000, "$1.50"},
		{"0.000000001", 1, "$0.000000001"},
		{" $1_000 ", 1000 * Dollar, "$1000.00"},
		{".5", Dollar / 2, "$0.50"},
	} {
		got, err := ParseMoney(tt.in)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("ParseMoney(%q) = %d %q, %v; want %d %q", tt.in, got, got, err, tt.want, tt.text)
		}
	}
	for _, bad := range []string{"", "$", "-1", "1.", "1e3", "1.0000000001", "99999999999", "1,5", "$1.5.0"} {
		if got, err := ParseMoney(bad); err == nil {
			t.Errorf("ParseMoney(%q) = %v, want an error", bad, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := Nano(rapid.Int64Range(0, 1<<63-1).Draw(t, "nano"))
		got, err := ParseMoney(n.String())
		if err != nil || got != n {
			t.Fatalf("ParseMoney(%q) = %d, %v; want %d", n.String(), got, err, n)
		}
	})
}
