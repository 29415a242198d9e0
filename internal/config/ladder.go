package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice"
	"sluice/internal/ladder"
)

// Ladder is how a pool's service is reduced, step by step, while it is short of
// capacity: off, shadow, on, or how it goes.
type Ladder struct {
	Mode    LadderMode `json:"mode,omitempty" jsonschema:"on; shadow, which says what it would do and does nothing; or off. on if a mapping leaves it out"`
	Top     TierName   `json:"top,omitempty" jsonschema:"the highest tier that it climbs to of itself: clamp, context, defer, smaller or shed"`
	Rise    Duration   `json:"rise,omitempty" jsonschema:"how long a signal is beyond its bound before each step up"`
	Hold    Duration   `json:"hold,omitempty" jsonschema:"how long all signals are within their bounds before each step down; it doubles each time that the same step has to be taken again"`
	MaxHold Duration   `json:"max_hold,omitempty" jsonschema:"the longest hold"`
	Output  Count      `json:"output,omitempty" jsonschema:"from clamp on, most output tokens of one answer"`
	Input   Count      `json:"input,omitempty" jsonschema:"from context on, most input tokens of one request"`

	Enter LadderBounds           `json:"enter,omitzero" jsonschema:"a tier begins when one of these is reached"`
	Exit  LadderBounds           `json:"exit,omitzero" jsonschema:"a tier ends when none of these is exceeded"`
	Tiers map[string]*LadderTier `json:"tiers,omitempty" jsonschema:"other bounds of single tiers, by name"`
}

// LadderBounds are figures of the pool; 0 is not looked at.
type LadderBounds struct {
	Age     Duration `json:"age" zero:"meant" jsonschema:"how long what waits longest has, batch and what callers' own limits keep back aside"`
	KV      Percent  `json:"kv" zero:"meant" jsonschema:"memory in use, while something waits"`
	Refused Percent  `json:"refused" zero:"meant" jsonschema:"requests of the last 10s that were refused for want of room"`
}

// LadderTier is when one tier begins and ends, where that is another time than those of
// the others.
type LadderTier struct {
	Enter *LadderBounds `json:"enter,omitempty" jsonschema:"in place of the ladder's; what it leaves out is as there"`
	Exit  *LadderBounds `json:"exit,omitempty" jsonschema:"in place of the ladder's; what it leaves out is as there"`
}

// LadderMode is on, shadow or off.
type LadderMode string

func (LadderMode) words() []string { return []string{"on", "shadow", "off"} }

// TierName is the name of a tier.
type TierName string

func (TierName) words() (out []string) {
	for t := ladder.Clamp; t < ladder.NumTiers; t++ {
		out = append(out, t.String())
	}
	return out
}

func (t TierName) tier() ladder.Tier { return ladder.Tier(1 + slices.Index(t.words(), string(t))) }

func (l *Ladder) setDefaults() {
	d := ladder.Default(ladder.Act)
	step := d.Steps[ladder.Clamp]
	*l = Ladder{
		Mode: "on", Top: TierName(d.Top.String()), Rise: Duration(d.Rise), Hold: Duration(d.Hold), MaxHold: Duration(d.MaxHold),
		Output: Count(d.Output), Input: Count(d.Input), Enter: ladderBounds(step.Enter), Exit: ladderBounds(step.Exit),
	}
}

func ladderBounds(b ladder.Bounds) LadderBounds {
	return LadderBounds{Age: Duration(b.Age), KV: Percent(b.KV / 10), Refused: Percent(b.Refused / 10)}
}

func (b LadderBounds) compiled() ladder.Bounds {
	return ladder.Bounds{Age: time.Duration(b.Age), KV: b.KV.thousandths(), Refused: b.Refused.thousandths()}
}

func (l *Ladder) decodeNode(dec *decoder, n node, path string) {
	l.setDefaults()
	if _, ok := dec.asMapping(n); ok {
		type plain Ladder // without this method
		dec.into(n, (*plain)(l), path)
		return
	}
	text, ok := dec.scalar(n, path)
	if ok && !slices.Contains(LadderMode("").words(), text) {
		dec.report(nodePos(n), path, "write on, shadow or off, or {mode: on, output: 1k, …}", "%q is no mode of a ladder", text)
		text = "off"
	}
	l.Mode = LadderMode(text)
}

// MarshalJSON writes what is read.
func (l Ladder) MarshalJSON() ([]byte, error) {
	var whole Ladder
	whole.setDefaults()
	whole.Mode = l.Mode
	if reflect.DeepEqual(l, whole) {
		return marshal(string(l.Mode))
	}
	type plain Ladder // without this method
	return marshal(plain(l))
}

// ladderSchema is of a mode, or of a mapping.
func ladderSchema() *jsonschema.Schema {
	type plain Ladder // without its method
	count := pattern(`[0-9][0-9_]*(\.[0-9]{1,3})?[kKMG]?`, "1k")
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration](): pattern(span+"|0", "30s"), reflect.TypeFor[Count](): count, reflect.TypeFor[Percent](): pattern("(100|[0-9]{1,2})%", "97%"),
		reflect.TypeFor[LadderMode](): words(LadderMode("").words()...), reflect.TypeFor[TierName](): words(TierName("").words()...),
	}
	mode := words(LadderMode("").words()...)
	s, err := jsonschema.For[plain](&jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return mode
	}
	relax(reflect.TypeFor[plain](), s)
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{mode, s}}
}

// ladder is the pool's: one that says what it would do, if the file says nothing.
func (p *Pool) ladder(policy Policy) ladder.Policy {
	switch {
	case policy == Naive:
		return ladder.Policy{}
	case p.Ladder == nil:
		return ladder.Default(ladder.Watch)
	}
	l := p.Ladder
	mode, _ := ladder.ModeNamed(string(l.Mode))
	out := ladder.Policy{
		Mode: mode, Top: l.Top.tier(), Rise: time.Duration(l.Rise), Hold: time.Duration(l.Hold), MaxHold: time.Duration(l.MaxHold),
		Output: sluice.Tokens(l.Output), Input: sluice.Tokens(l.Input),
	}
	if mode == ladder.Off {
		return ladder.Policy{}
	}
	for t := ladder.Clamp; t < ladder.NumTiers; t++ {
		enter, exit := l.bounds(t)
		out.Steps[t] = ladder.Step{Enter: enter.compiled(), Exit: exit.compiled()}
	}
	return out
}

// or is the bounds with others where they name none.
func (b *LadderBounds) or(others LadderBounds) LadderBounds {
	if b == nil {
		return others
	}
	return LadderBounds{Age: cmp.Or(b.Age, others.Age), KV: cmp.Or(b.KV, others.KV), Refused: cmp.Or(b.Refused, others.Refused)}
}

// bounds are those of a tier.
func (l *Ladder) bounds(t ladder.Tier) (enter, exit LadderBounds) {
	enter, exit = l.Enter, l.Exit
	if own := l.Tiers[t.String()]; own != nil {
		enter, exit = own.Enter.or(l.Enter), own.Exit.or(l.Exit)
	}
	return enter, exit
}

// ladder checks a pool's ladder.
func (v *validator) ladder(path string, p *Pool) {
	l, at := p.Ladder, join(path, "ladder")
	if l == nil || l.Mode == "off" || v.brokenBelow(at) {
		return
	}
	if r := time.Duration(l.Rise); r < ladder.MinDwell || r > ladder.MaxDwell {
		v.fail(join(at, "rise"), "write a time from 250ms to 1h, such as 3s", "%s is out of range", l.Rise)
	}
	if h := time.Duration(l.Hold); h < ladder.MinDwell || h > ladder.MaxDwell {
		v.fail(join(at, "hold"), "write a time from 250ms to 1h, such as 30s", "%s is out of range", l.Hold)
	} else if m := time.Duration(l.MaxHold); m < h || m > ladder.MaxDwell {
		v.fail(join(at, "max_hold"), "write a time from "+l.Hold.String()+", which is hold, to 1h", "%s is out of range", l.MaxHold)
	}
	if l.Output == 0 {
		v.fail(join(at, "output"), "write an amount such as 1k", "no answer would be left")
	}
	if l.Input == 0 {
		v.fail(join(at, "input"), "write an amount such as 32k", "no request would be left")
	}
	for _, name := range sorted(l.Tiers) {
		if !slices.Contains(TierName("").words(), name) {
			v.fail(join(join(at, "tiers"), name), suggest(name, TierName("").words()), "%q is not a tier", name)
			return
		}
	}
	for t := ladder.Clamp; t < ladder.NumTiers; t++ {
		where := at
		if l.Tiers[t.String()] != nil {
			where = join(join(at, "tiers"), t.String())
		} else if t > ladder.Clamp {
			continue // as the first that has the common ones
		}
		enter, exit := l.bounds(t)
		v.ladderBounds(where, enter, exit)
	}
}

// ladderBounds holds beginning and end apart.
func (v *validator) ladderBounds(at string, enter, exit LadderBounds) {
	if enter == (LadderBounds{}) {
		v.fail(join(at, "enter"), "write a bound, such as age: 2s, or mode: off", "nothing would make it begin")
	}
	for _, b := range []struct {
		what        string
		enter, exit int64
		from, to    any
	}{
		{"age", int64(enter.Age), int64(exit.Age), enter.Age, exit.Age},
		{"kv", int64(enter.KV), int64(exit.KV), fmt.Sprintf("%d%%", enter.KV), fmt.Sprintf("%d%%", exit.KV)},
		{"refused", int64(enter.Refused), int64(exit.Refused), fmt.Sprintf("%d%%", enter.Refused), fmt.Sprintf("%d%%", exit.Refused)},
	} {
		if b.enter > 0 && (b.exit == 0 || b.exit >= b.enter) || b.enter == 0 && b.exit > 0 {
			v.clash(at, b.what, b.from, b.to)
		}
	}
}

// clash tells of a bound that does not end below where it begins, at what of the two the
// file says: the other may be the default, or that of all tiers.
func (v *validator) clash(at, what string, from, to any) {
	path := join(join(at, "exit"), what)
	begins, ends := join(join(at, "enter"), what), ""
	if _, given := v.c.pos[path]; !given {
		ends = ", which is what holds where the file says nothing here"
		if _, given := v.c.pos[begins]; given {
			path = begins
		}
	}
	v.fail(path, fmt.Sprintf("write exit: {%s: …}, of less than where it begins and more than 0; 0 at both is not looked at", what),
		"it would begin at %v and end at %v%s: what stands between would move it to and fro", from, to, ends)
}
