package tabletop

// judge holds a run against what was expected of it.
func (s *Scenario) judge(r *Result, expect []Expectation, rec *recovery) {
	r.Passed = true
	for i := range expect {
		e := &expect[i]
		for k := range r.Phases {
			p := &r.Phases[k]
			if e.phase != "" && e.phase != p.Name {
				continue
			}
			if e.left.metric.whole && e.phase == "" && k != len(r.Phases)-1 {
				continue // it is of the whole run: judged once
			}
			v := e.verdict(r, p, rec)
			r.Verdicts = append(r.Verdicts, v)
			r.Passed = r.Passed && v.Passed
		}
	}
}

// verdict judges one expectation in one phase. Where there is no sample, or the phase
// has no request at all, it fails: nothing has shown that it holds.
func (e *Expectation) verdict(r *Result, p *Phase, rec *recovery) Verdict {
	v := Verdict{Text: e.Text, Phase: p.Name, Line: e.Line}
	if p.All.Requests == 0 && !e.left.metric.whole {
		v.Got, v.Want = "no requests", "some"
		return v
	}
	first, u := &r.Phases[0], e.shown()
	as := u
	got, ok := e.left.of(p, rec, first, as)
	switch {
	case !ok && e.left.metric.whole:
		v.Got = "not recovered"
	case !ok:
		v.Got = "no sample"
	default:
		v.Got = u.show(got)
	}
	if e.bound {
		return e.bounded(v, p)
	}
	want, known := e.value, true
	if e.right.metric != nil {
		of := p
		for k := range r.Phases {
			if e.right.phase != "" && r.Phases[k].Name == e.right.phase {
				of = &r.Phases[k]
			}
		}
		want, known = e.right.of(of, rec, first, as)
		want *= e.factor
	}
	v.Want = e.op + " " + u.show(want)
	if !known {
		v.Want = e.op + " no sample"
	}
	v.Passed = ok && known && compare(got, e.op, want)
	return v
}

// bounded holds the largest gap of each pool and class against its own bound, and
// shows the one that comes nearest.
func (e *Expectation) bounded(v Verdict, p *Phase) Verdict {
	v.Passed = true
	worst := -1.0
	v.Got, v.Want = "0", e.op+" its bound: no two compete"
	for _, g := range p.Fairness {
		share := float64(g.Gap) / float64(max(g.Bound, 1))
		if share > worst {
			worst = share
			v.Got, v.Want = unitCount.show(float64(g.Gap)), e.op+" "+unitCount.show(float64(g.Bound))
		}
		v.Passed = v.Passed && compare(float64(g.Gap), e.op, float64(g.Bound))
	}
	return v
}

func compare(a float64, op string, b float64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return a == b
}
