package fakellm

import (
	"sluice"
)

// stretch is a piece of an answer, with the count of tokens of one choice at
// which it is complete.
type stretch struct {
	upTo     int64
	thought  bool
	text     string
	call     int // index of a tool call that this belongs to; -1 for none
	begins   bool
	fragment string
}

// plan lays out the answer in order. It also fixes how many tokens there are.
func (t *turn) plan() []stretch {
	a := t.a
	var out []stretch
	thought := min(a.b.Reasoning, mostTokens)
	if a.thinking && thought == 0 {
		thought = 24
	}
	if len(a.calls) > 0 {
		a.choices = 1
		return t.planCalls(thought)
	}
	if a.json != "" {
		return t.planJSON()
	}
	t.total, t.cut = a.output()
	if a.b.Reasoning > 0 && a.b.Tokens < 0 { // the model's own length is its visible part
		t.total += thought
		if a.max > 0 && t.total > a.max {
			t.total, t.cut = a.max, true
		}
	}
	thought = min(thought, t.total)
	a.b.Reasoning = thought
	w := t.s.words.writer(a.b.Script, a.seed, a.model.Ratio)
	if a.b.BigEvent > 0 && t.total > thought {
		out = append(out, stretch{upTo: thought + 1, text: string(filler(a.b.BigEvent)), call: -1})
	}
	for at, n := int64(0), uint64(0); at < t.total; n++ {
		limit := t.total
		if at < thought {
			limit = thought
		}
		at = min(at+t.group(n), limit)
		if text := w.upTo(sluice.Tokens(at)); text != "" {
			out = append(out, stretch{upTo: at, thought: at <= thought, text: text, call: -1})
		}
	}
	return out
}

func (t *turn) planCalls(thought int64) []stretch {
	a := t.a
	var out []stretch
	w := t.s.words.writer("latin", a.seed, a.model.Ratio)
	if thought > 0 {
		out = append(out, stretch{upTo: thought, thought: true, text: w.upTo(sluice.Tokens(thought)), call: -1})
	}
	a.b.Reasoning = thought
	at := thought
	for i, c := range a.calls {
		at += int64(scale(t.s.count.text(c.name), a.model.Ratio)) + 4
		out = append(out, stretch{upTo: at, call: i, begins: true})
		own := int64(scale(t.s.count.text(c.args), a.model.Ratio))
		const fragment = 7 // bytes; whole runes, for arguments are ASCII
		pieces := (len(c.args) + fragment - 1) / fragment
		for k := range pieces {
			end := min((k+1)*fragment, len(c.args))
			out = append(out, stretch{upTo: at + own*int64(k+1)/int64(pieces), call: i, fragment: c.args[k*fragment : end]})
		}
		at += own
	}
	t.total = at
	return out
}

// group is how many tokens the n-th event carries.
func (t *turn) group(n uint64) int64 {
	most := t.a.model.MaxEvent
	if most <= 1 || t.a.b.ByteByByte && most <= 1 {
		return 1
	}
	switch r := mix(t.a.seed^n*0x9e37) % 10; {
	case r < 6:
		return 1
	case r < 8:
		return min(2, most)
	case r < 9:
		return min(3, most)
	}
	return most
}

func filler(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "lorem ipsum "[i%12]
	}
	return b
}
