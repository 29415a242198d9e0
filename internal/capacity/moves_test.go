package capacity

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sluice"
	"sluice/internal/fleet"
)

// claimed is a model of replicas of so many GPUs, of which its demand needs so many.
func claimed(name string, gpus int64, replicas float64) Claim {
	r := Replica{Name: name, GPUs: gpus, Profile: fleet.Llama8BOnH100()}
	w := Workload{Rate: Rate{Int(10)}, Input: Alike(800), Output: Alike(300)}
	d, _ := w.Demand()
	u, _, _ := r.engineFor(d).demandOn(d)
	w.Rate.Amount = Int(10).Times(Ratio(int64(replicas*1000), 1000)).Over(u.Engine)
	return Claim{Name: name, Replica: r, Workloads: []Workload{w}}
}

func standing(model, domain string, from, n int) (out []Standing) {
	for i := range n {
		out = append(out, Standing{fmt.Sprintf("%s-%d", model, from+i), model, domain})
	}
	return out
}

func moved(t *testing.T, claims []Claim, gpus int64, w Ways) Moves {
	t.Helper()
	a, err := Allocate(gpus, claims)
	if err != nil {
		t.Fatal(err)
	}
	m, err := PlanMoves(claims, &a, w)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Whatever stands and is asked for, no step needs GPUs that are not there, no model
// ever has less than it ends with or than its minimum, if it had that, no more is drained
// than may be, and every step is worth it.
func TestMovesAreSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var claims []Claim
		for i := range rapid.IntRange(1, 4).Draw(rt, "models") {
			c := claimed(fmt.Sprint("m", i), []int64{1, 2, 4}[rapid.IntRange(0, 2).Draw(rt, "size")], float64(rapid.IntRange(1, 60).Draw(rt, "needs"))/10)
			c.Weight, c.Min = rapid.Int64Range(1, 3).Draw(rt, "weight"), rapid.Int64Range(0, 1).Draw(rt, "min")
			claims = append(claims, c)
		}
		w := Ways{Most: rapid.Int64Range(1, 12).Draw(rt, "most"), Horizon: Span{Int(rapid.Int64Range(60, 7200).Draw(rt, "horizon"))}}
		gpus := int64(0)
		var free []int64
		for i := range rapid.IntRange(1, 3).Draw(rt, "domains") {
			d := Domain{fmt.Sprint("d", i), rapid.Int64Range(1, 8).Draw(rt, "gpus")}
			w.Domains, free, gpus = append(w.Domains, d), append(free, d.GPUs), gpus+d.GPUs
		}
		have := make(map[string]int64)
		for k := range rapid.IntRange(0, 12).Draw(rt, "standing") {
			i, d := rapid.IntRange(0, len(claims)-1).Draw(rt, "model"), rapid.IntRange(0, len(free)-1).Draw(rt, "domain")
			if size := claims[i].Replica.GPUs; size <= free[d] {
				free[d] -= size
				have[claims[i].Name]++
				w.Current = append(w.Current, Standing{fmt.Sprint("b", k), claims[i].Name, w.Domains[d].Name})
			}
		}
		a, err := Allocate(gpus, claims)
		if err != nil {
			return // the minimums do not fit
		}
		m, err := PlanMoves(claims, &a, w)
		if err != nil {
			rt.Fatal(err)
		}
		carriedOut(rt, claims, &a, &w, &m, have, free)
	})
}

// carriedOut does what the moves say and judges each state in between.
func carriedOut(t *rapid.T, claims []Claim, a *Allocation, w *Ways, m *Moves, have map[string]int64, free []int64) {
	sizes, floor, least := make(map[string]int64), make(map[string]int64), make(map[string]int64)
	for i, c := range claims {
		least[c.Name] = c.Min
		sizes[c.Name], floor[c.Name] = c.Replica.GPUs, min(have[c.Name], max(a.Models[i].Replicas, c.Min))
	}
	at := func(domain string) *int64 {
		for i := range w.Domains {
			if w.Domains[i].Name == domain {
				return &free[i]
			}
		}
		t.Fatalf("no domain %q", domain)
		return nil
	}
	drained, gone := int64(0), make(map[string]bool)
	for n, s := range m.Steps {
		for _, d := range s.Drain {
			if gone[d.Backend] {
				t.Fatalf("step %d drains %s a second time", n, d.Backend)
			}
			gone[d.Backend] = true
			drained++
			have[d.Model]--
			*at(d.Domain) += sizes[d.Model]
			if have[d.Model] < floor[d.Model] {
				t.Fatalf("step %d leaves %d of %s, want at least %d", n, have[d.Model], d.Model, floor[d.Model])
			}
		}
		if *at(s.Domain) -= s.GPUs; *at(s.Domain) < 0 {
			t.Fatalf("step %d starts %s where %d GPUs are missing", n, s.Model, -*at(s.Domain))
		}
		have[s.Model]++
		if s.During.Cmp(s.Before) > 0 || s.After.Cmp(s.During) < 0 {
			t.Fatalf("step %d serves %s, %s meanwhile, then %s", n, s.Before, s.During, s.After)
		}
		if took := s.DrainWithin.Plus(s.Start); have[s.Model] > least[s.Model] && len(s.Drain) > 0 && s.After.Cmp(s.Before) > 0 && took.Plus(s.PaysIn).Cmp(w.Horizon.Amount) > 0 {
			t.Fatalf("step %d pays for itself in %s s after %s, the horizon is %s", n, s.PaysIn, took, w.Horizon)
		}
	}
	if drained > w.Most {
		t.Fatalf("%d are drained, want at most %d", drained, w.Most)
	}
	for _, x := range m.Spread {
		have[x.Model] -= x.Replicas
	}
	for name, n := range have {
		if n != 0 {
			t.Fatalf("in the end %d of %s are nowhere", n, name)
		}
	}
	for i, c := range claims {
		lacks := a.Models[i].Replicas
		for _, x := range m.Spread {
			if x.Model == c.Name {
				lacks -= x.Replicas
			}
		}
		for _, k := range m.Kept {
			if k.Model == c.Name {
				lacks -= k.Replicas
			}
		}
		if lacks > 0 {
			t.Fatalf("nobody says why %d of %s are not moved to", lacks, c.Name)
		}
	}
}

// What stands as it is wanted, or as good, is not touched.
func TestNothingToMove(t *testing.T) {
	t.Parallel()
	claims := []Claim{claimed("a", 1, 3), claimed("b", 1, 3)}
	if m := moved(t, claims, 8, Ways{Current: append(standing("a", "", 0, 5), standing("b", "", 0, 3)...)}); len(m.Steps) > 0 {
		t.Errorf("all demand is served, and %+v", m.Steps)
	}
}

// A move that takes longer to make good what it costs than the horizon is left.
func TestMovesPayForThemselves(t *testing.T) {
	t.Parallel()
	claims := []Claim{claimed("a", 1, 8), claimed("b", 1, 8)}
	claims[1].Weight = 2 // wants all that it can have
	w := Ways{Current: append(standing("a", "", 0, 6), standing("b", "", 0, 2)...), Most: 100}
	for _, test := range []struct {
		horizon int64
		steps   int
	}{{3600, 6}, {60, 0}} {
		w.Horizon.Amount = Int(test.horizon)
		m := moved(t, claims, 8, w)
		if len(m.Steps) != test.steps || test.steps == 0 && (len(m.Kept) != 1 || m.Kept[0].Why != KeptNoProfit) {
			t.Errorf("within %d s there are %d steps, want %d; kept: %+v", test.horizon, len(m.Steps), test.steps, m.Kept)
		}
	}
	w.Horizon.Amount, w.Most = Int(3600), 2
	if m := moved(t, claims, 8, w); len(m.Steps) != 2 || len(m.Kept) != 1 || m.Kept[0] != (Kept{"b", 4, KeptMost}) {
		t.Errorf("of at most two moves there are %d, kept: %+v", len(m.Steps), m.Kept)
	}
}

// Replicas of an empty fleet are spread over the domains, and large ones find room.
func TestFreshFleetIsSpread(t *testing.T) {
	t.Parallel()
	claims := []Claim{claimed("small", 1, 8), claimed("large", 4, 2)}
	m := moved(t, claims, 16, Ways{Domains: []Domain{{"x", 8}, {"y", 8}}, Fresh: true})
	want := []Spread{{"small", "x", 4}, {"small", "y", 4}, {"large", "x", 1}, {"large", "y", 1}}
	if fmt.Sprint(m.Spread) != fmt.Sprint(want) || len(m.Kept) > 0 {
		t.Errorf("got %v, want %v; kept: %v", m.Spread, want, m.Kept)
	}
	if m := moved(t, []Claim{claimed("large", 4, 2)}, 8, Ways{Domains: []Domain{{"x", 3}, {"y", 5}}, Fresh: true}); len(m.Kept) != 1 || m.Kept[0].Why != KeptSmall {
		t.Errorf("a replica of 4 GPUs in a domain of 3: %+v", m.Kept)
	}
}

func TestMovesMistakes(t *testing.T) {
	t.Parallel()
	claims := []Claim{claimed("a", 2, 1)}
	a, err := Allocate(4, claims)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		current []Standing
		param   string
	}{
		{standing("b", "", 0, 1), "current[0].model"},
		{standing("a", "nowhere", 0, 1), "current[0].domain"},
		{standing("a", "", 0, 3), "current[2].domain"},
	} {
		if _, err := PlanMoves(claims, &a, Ways{Current: test.current}); err == nil || sluice.AsError(err).Param != test.param {
			t.Errorf("%v: got %v, want one of %s", test.current, err, test.param)
		}
	}
}
