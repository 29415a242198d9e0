package config

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/ladder"
	"sluice/internal/route"
)

// ladder warns of a ladder of which a part can never come to pass.
func (l *linter) ladder(path string, p *Pool) {
	at := join(path, "ladder")
	if _, given := l.c.pos[at]; !given || p.Ladder == nil || p.Ladder.Mode == "off" {
		return
	}
	if l.c.Policy == Naive {
		l.warn(at, "write policy: fair, or leave it out at the top", "not in force with policy: naive")
		return
	}
	d := p.Ladder
	top := d.Top.tier()
	for _, name := range sorted(d.Tiers) {
		if t := TierName(name).tier(); t > top {
			l.warn(join(join(at, "tiers"), name), "raise top, or remove it", "the ladder climbs no higher than %s: this tier is reached by a pin alone, which asks for no bounds", d.Top)
		}
	}
	longest := l.longestWait(p)
	dead := ladder.NumTiers // the first that is never reached
	for t := ladder.Clamp; t <= top; t++ {
		enter, exit := d.bounds(t)
		l.age(at, d.whereOf(at, t), t, enter, longest)
		if b := enter.compiled(); dead == ladder.NumTiers && !l.reached(p, b, longest) {
			dead = t
		}
		if t == ladder.Smaller && time.Duration(enter.Age) == 0 {
			l.warn(d.whereOf(at, t), "write enter: {age: 2s}", "without an age the tier refuses nobody who would wait: it does nothing but for those who consent to a smaller model")
		}
		if t == ladder.Shed && (enter.Age == 0 || exit.Age == 0) {
			l.warn(d.whereOf(at, t), "write enter: {age: 2s} and exit: {age: 500ms}", "without an age class interactive is never shed")
		}
	}
	if dead <= top {
		l.warn(at, "write a bound that the pool can reach, such as refused: 5%, or lower top", "tier %s is never reached, nor one above it: none of what would begin it can come to pass in this pool", dead)
	}
}

// whereOf is the path at which the bounds of a tier stand.
func (d *Ladder) whereOf(at string, t ladder.Tier) string {
	if d.Tiers[t.String()] != nil {
		return join(join(at, "tiers"), t.String())
	}
	return at
}

// age warns, once for each place, of an age that nothing in the pool's queue reaches: of the
// tier's, where it has one, else of the ladder's.
func (l *linter) age(at, tier string, t ladder.Tier, enter LadderBounds, longest time.Duration) {
	age := time.Duration(enter.Age)
	if age < longest || age == 0 {
		return
	}
	path := join(join(tier, "enter"), "age")
	if _, given := l.c.pos[path]; !given {
		path = join(join(at, "enter"), "age")
	}
	if slices.ContainsFunc(l.found, func(p Problem) bool { return p.Path == path }) {
		return
	}
	l.warn(path, "write less than "+Duration(longest).String()+", or let requests wait for longer: max_wait of the pool's queue or of a plan",
		"nothing waits for %s: requests that ask for no longer wait leave after %s, so that it begins tier %s for none but those", enter.Age, Duration(longest), t)
}

// longestWait is how long a request waits at most that does not ask for longer.
func (l *linter) longestWait(p *Pool) time.Duration {
	longest := cmp.Or(time.Duration(p.Queue.MaxWait), engine.DefaultMaxWait)
	for _, plan := range l.c.Plans {
		longest = max(longest, time.Duration(plan.MaxWait))
	}
	return longest
}

// reached reports whether one of a tier's bounds can come to pass.
func (l *linter) reached(p *Pool, b ladder.Bounds, longest time.Duration) bool {
	_, kv := p.holds()
	return b.Age > 0 && b.Age < longest || b.Refused > 0 || b.KV > 0 && kv > 0
}

// scaled warns of numbers of replicas that there are not.
func (l *linter) scaled(path string, p *Pool, replicas int) {
	s := &p.Scale
	if int(s.Min) > replicas && replicas > 0 {
		l.warn(join(path, "min"), "list as many backends, or write at most "+strconv.Itoa(replicas), "the pool lists %s: what scales it could start no more", pluralOf(replicas, "replica"))
	}
	if int(s.Max) > replicas && replicas > 0 {
		l.warn(join(path, "max"), "list as many backends, or write at most "+strconv.Itoa(replicas), "the pool lists %s: requests reach no other", pluralOf(replicas, "replica"))
	}
	if _, given := l.c.pos[join(path, "max")]; given && s.Max == 0 {
		l.warn(join(path, "max"), "write a number, or leave it out for as many as the pool lists", "0 is as if it were left out")
	}
}

func pluralOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// degrade warns of a consent to a smaller model that comes to nothing: allowed are the
// models that may be asked for, all if there are none.
func (l *linter) degrade(path string, g *Degrade, allowed []string) {
	if g == nil || g.off || l.c.Models[g.Model] == nil {
		return
	}
	at := join(join(path, "degrade"), "model")
	if len(allowed) > 0 && !slices.Contains(allowed, g.Model) {
		l.warn(at, "add "+g.Model+" to models, or name one of them", "model %q is not among those that may be asked for: it serves nothing in their place", g.Model)
		return
	}
	others, apart := 0, false
	small := l.c.Models[g.Model]
	for _, name := range sorted(l.c.Models) {
		if name == g.Model || len(allowed) > 0 && !slices.Contains(allowed, name) {
			continue
		}
		others++
		m := l.c.Models[name]
		apart = apart || slices.ContainsFunc(small.names(), func(p string) bool { return !slices.Contains(m.names(), p) })
	}
	switch {
	case others == 0:
		l.warn(at, "name another model, or remove it", "model %q is the only one that may be asked for: it would serve in its own place", g.Model)
	case !apart:
		l.warn(at, "name a model with a pool of its own, or remove it", "model %q has no pool that those which it would stand in for have not: where they are short of capacity, so is it", g.Model)
	}
}

// bounded warns of what a ladder's bounds do not take from the models of its pool: those
// of the file and the catalogue are known here.
func (b *builder) bounded(path string, p *Pool, out *route.Pool) {
	at := join(path, "ladder")
	if _, given := b.c.pos[at]; !given || out.Ladder.Mode == ladder.Off {
		return
	}
	var output, input sluice.Tokens // the largest of the pool
	for _, x := range out.Backends {
		if x.MaxOutput == 0 || x.Context == 0 {
			return // of one nothing is known
		}
		output, input = max(output, x.MaxOutput), max(input, x.Context)
	}
	warn := func(field string, n, most sluice.Tokens, what string) {
		if n >= most {
			b.s.Warnings = append(b.s.Warnings, b.c.problem(join(at, field), "write less than "+Count(most).String(), what))
		}
	}
	warn("output", out.Ladder.Output, output, "no backend of the pool answers with more than "+Count(output).String()+" tokens: tier clamp bounds nothing")
	if out.Ladder.Top >= ladder.Context {
		warn("input", out.Ladder.Input, input, "no backend of the pool takes more than "+Count(input).String()+" tokens: tier context keeps nothing out")
	}
}
