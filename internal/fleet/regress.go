package fleet

import (
	"math"
	"slices"
)

// point is one observation: y is to be a weighted sum of x.
type point struct {
	x     [3]float64
	y     float64
	count int // measurements behind it
}

// line is a fit by least squares of relative errors.
type line struct {
	at  [3]float64 // coefficients; 0 where a term was left out
	err [3]float64 // their standard errors
	sse float64    // weighted sum of squared relative errors
}

// regress fits the terms that are used. Outliers count less: after the first fit,
// what is off by more than twice the median error is weighed down, twice over. A
// term that comes out negative is left out. It reports whether the points tell
// the terms apart.
func regress(points []point, used [3]bool) (line, bool) {
	weights := make([]float64, len(points))
	for i, p := range points {
		// Beyond 16 measurements what is left is not noise.
		weights[i] = math.Sqrt(float64(min(max(p.count, 1), 16))) / p.y
	}
	var l line
	for range 3 {
		var ok bool
		if l, ok = solve(points, weights, used); !ok {
			return line{}, false
		}
		errs := make([]float64, len(points))
		for i, p := range points {
			errs[i] = math.Abs(l.value(p)-p.y) / p.y
		}
		bound := 2 * max(median(errs), 1e-4)
		for i, p := range points {
			weights[i] = math.Sqrt(float64(min(max(p.count, 1), 16))) / p.y
			if errs[i] > bound {
				weights[i] *= bound / errs[i]
			}
		}
	}
	for k := range used {
		if used[k] && l.at[k] < 0 {
			used[k] = false
			return regress(points, used)
		}
	}
	return l, true
}

func (l line) value(p point) float64 {
	return l.at[0]*p.x[0] + l.at[1]*p.x[1] + l.at[2]*p.x[2]
}

// solve is one weighted fit by the normal equations, each term scaled to 1.
func solve(points []point, weights []float64, used [3]bool) (line, bool) {
	var terms []int
	var scale [3]float64
	for k := range used {
		for _, p := range points {
			scale[k] = max(scale[k], math.Abs(p.x[k])/p.y)
		}
		if used[k] && scale[k] > 0 {
			terms = append(terms, k)
		}
	}
	n := len(terms)
	if n == 0 || len(points) < n {
		return line{}, false
	}
	// The matrix, the right side and the identity, which becomes the inverse.
	m := make([][]float64, n)
	for a := range m {
		m[a] = make([]float64, 2*n+1)
		m[a][n+1+a] = 1
		for i, p := range points {
			w := weights[i] * weights[i]
			for b := range n {
				m[a][b] += w * p.x[terms[a]] / scale[terms[a]] * p.x[terms[b]] / scale[terms[b]]
			}
			m[a][n] += w * p.x[terms[a]] / scale[terms[a]] * p.y
		}
	}
	if !eliminate(m) {
		return line{}, false
	}
	var l line
	for a, k := range terms {
		l.at[k] = m[a][n] / scale[k]
	}
	for i, p := range points {
		e := (l.value(p) - p.y) * weights[i]
		l.sse += e * e
	}
	for a, k := range terms {
		l.err[k] = math.Sqrt(m[a][n+1+a]*l.sse/float64(max(len(points)-n, 1))) / scale[k]
	}
	return l, true
}

// eliminate brings the left of the matrix to the identity; false if it is singular.
func eliminate(m [][]float64) bool {
	for c := range m {
		best := c
		for r := c; r < len(m); r++ {
			if math.Abs(m[r][c]) > math.Abs(m[best][c]) {
				best = r
			}
		}
		m[c], m[best] = m[best], m[c]
		if math.Abs(m[c][c]) < 1e-9 {
			return false
		}
		pivot := m[c][c]
		for k := range m[c] {
			m[c][k] /= pivot
		}
		for r := range m {
			if r == c {
				continue
			}
			factor := m[r][c]
			for k := range m[r] {
				m[r][k] -= factor * m[c][k]
			}
		}
	}
	return true
}

// median of a copy; 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
