package main

import "math"

const (
	rounds    = 6   // of reweighting
	sweeps    = 300 // of coordinate descent in a round
	maxWeight = 6.0 // tokens for one character
	softness  = 0.03
)

// solve finds the weights, none negative, that make the relative error small:
// least squares by coordinate descent, reweighted towards least absolute error,
// every kind of text counting the same. The prior holds features that are too
// rare to tell.
func solve(train []text, names []string, ridge float64) []float64 {
	w := make([]float64, len(names))
	for i, n := range names {
		w[i] = prior(n)
	}
	perKind := map[string]float64{}
	for i := range train {
		perKind[train[i].kind]++
	}
	for range rounds {
		g := newNormal(len(names))
		for i := range names {
			g.at(i)[i] += ridge
			g.rhs[i] += ridge * prior(names[i])
		}
		for i := range train {
			t := &train[i]
			rel := math.Abs(t.estimate(w)/t.truth - 1)
			g.add(t, 100/math.Sqrt(perKind[t.kind]*400)/(t.truth*t.truth)/(rel+softness))
		}
		g.descend(w)
	}
	return w
}

// normal is the normal equations.
type normal struct {
	n    int
	gram []float64
	rhs  []float64
}

func newNormal(n int) *normal {
	return &normal{n: n, gram: make([]float64, n*n), rhs: make([]float64, n)}
}

func (g *normal) at(i int) []float64 { return g.gram[i*g.n : (i+1)*g.n] }

func (g *normal) add(t *text, weight float64) {
	for a, i := range t.ids {
		row := g.at(int(i))
		x := weight * t.n[a]
		for b, j := range t.ids {
			row[j] += x * t.n[b]
		}
		g.rhs[i] += x * t.truth
	}
}

// descend improves w one coordinate after the other.
func (g *normal) descend(w []float64) {
	grad := make([]float64, g.n) // gram·w − rhs
	for i := range g.n {
		for j, x := range g.at(i) {
			grad[i] += x * w[j]
		}
		grad[i] -= g.rhs[i]
	}
	for range sweeps {
		moved := 0.0
		for i := range g.n {
			row := g.at(i)
			next := min(max(w[i]-grad[i]/row[i], 0), maxWeight)
			d := next - w[i]
			if d == 0 {
				continue
			}
			w[i] = next
			moved = max(moved, math.Abs(d))
			for j, x := range row {
				grad[j] += x * d
			}
		}
		if moved < 1e-4 {
			return
		}
	}
}
