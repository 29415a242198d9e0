package estimate

import "strconv"

// The automaton reads classes. Every transition adds the weight of its feature;
// the features are what the fit gives weights to. A run is a maximal piece of
// one kind: letters of a word, punctuation, digits, one script.
//
// States, in order: the fixed ones below, then punctuation by class and length,
// digits by place, capitals by lead and length, words by lead, length and
// consonants in a row, other scripts by length.
const (
	stStart = iota
	stSpace
	stSpaces // two or more blanks
	stTab
	stNewline
	stControl
	stOther  // mark, symbol, rare, invalid: 1 or more of them
	stPunct  = stOther + numOther*2
	stDigit  = stPunct + numPunct*3
	stUpper  = stDigit + 3
	stWord   = stUpper + 2*maxUpper
	stScript = stWord + numLeads*maxWord*maxRow
	numState = stScript + numScript*maxScript

	numOther  = int(invalid-mark) + 1
	numPunct  = int(lastPunct-firstPunct) + 1
	numScript = int(lastScript-firstScript) + 1
	maxUpper  = 6
	maxWord   = 10
	maxRow    = 5
	maxScript = 8
)

// lead is what a word started with.
type lead int

const (
	leadSpace    lead = iota // a blank, then small letters
	leadBare                 // small letters after anything else
	leadSpaceCap             // a blank, then a capital
	leadBareCap              // a capital after anything else
	leadForeign              // it has letters beyond ASCII
	numLeads     = iota
)

// cell is one transition.
type cell struct {
	next    uint16
	feature uint16
}

// automaton is the transition table, by state and class.
type automaton struct {
	cells [numState][numClasses]cell
	names []string
}

// builder makes the automaton and numbers its features by name, in the order in
// which they first occur.
type builder struct {
	a   *automaton
	ids map[string]uint16
}

func newAutomaton() *automaton {
	b := &builder{a: new(automaton), ids: map[string]uint16{}}
	for s := range numState {
		for c := range numClasses {
			next, feature := step(s, c)
			id, ok := b.ids[feature]
			if !ok {
				id = uint16(len(b.a.names))
				b.ids[feature] = id
				b.a.names = append(b.a.names, feature)
			}
			b.a.cells[s][c] = cell{next: uint16(next), feature: id}
		}
	}
	return b.a
}

// step is the transition from a state by a class, and the name of its feature:
// "class<kind" where a run starts, with the kind of the run before it, or the
// name of the state where a run goes on.
func step(s int, c class) (next int, feature string) {
	start := classNames[c] + "<" + kind(s)
	switch {
	case c == vowel || c == consonant:
		return stepLetter(s, c, start)
	case c == upper:
		return stepUpper(s, start)
	case c == latin:
		if w, ok := wordAt(s); ok {
			return wordState(leadForeign, min(w.length+1, maxWord), 0), "latin+" + strconv.Itoa(min(w.length, 4))
		}
		return wordState(leadForeign, 1, 0), start
	case c == digit:
		if s == stDigit || s == stDigit+1 {
			return s + 1, "digit+" + strconv.Itoa(s-stDigit+1)
		}
		return stDigit, start
	case c == space && (s == stSpace || s == stSpaces || s == stTab), c == tab && s == stSpace:
		return stSpaces, start
	case c == space:
		return stSpace, start
	case c == tab:
		return stTab, start
	case c == newline:
		return stNewline, start
	case c == control:
		return stControl, start
	case c >= firstPunct && c <= lastPunct:
		return stepPunct(s, c, start)
	case c >= firstScript && c <= lastScript:
		base := stScript + int(c-firstScript)*maxScript
		if k, n, ok := scriptAt(s); ok && k != c && isCyrillic(k) && isCyrillic(c) {
			n = min(n+1, maxScript-1)
			return stScript + int(cyrillicExt-firstScript)*maxScript + n, classNames[c] + "++" + strconv.Itoa(n)
		}
		if s >= base && s < base+maxScript {
			n := min(s-base+1, maxScript-1)
			return base + n, classNames[c] + "+" + strconv.Itoa(n)
		}
		return base, start
	}
	base := stOther + 2*int(c-mark)
	if s == base || s == base+1 {
		return base + 1, start + "+"
	}
	return base, start
}

// scriptAt is the script and the place in its run, from 0.
func scriptAt(s int) (class, int, bool) {
	if s < stScript {
		return 0, 0, false
	}
	s -= stScript
	return firstScript + class(s/maxScript), s % maxScript, true
}

// isCyrillic reports the two classes that share a run: a word with letters that
// Russian does not have goes on as one of another language.
func isCyrillic(c class) bool { return c == cyrillic || c == cyrillicExt }

// stepPunct tells the second of a run from the further ones, so that rulers
// ("----------") get cheaper with their length.
func stepPunct(s int, c class, start string) (int, string) {
	base := stPunct + 3*int(c-firstPunct)
	if s >= stPunct && s < stDigit {
		n := min((s-stPunct)%3+1, 2)
		return base + n, start + "+" + strconv.Itoa(n)
	}
	return base, start
}

func stepUpper(s int, start string) (int, string) {
	if s >= stUpper && s < stWord {
		n := min((s-stUpper)%maxUpper+1, maxUpper-1)
		return s - (s-stUpper)%maxUpper + n, "upper+" + strconv.Itoa(n)
	}
	if blank(s) {
		return stUpper, start
	}
	return stUpper + maxUpper, start
}

func stepLetter(s int, c class, start string) (int, string) {
	row := 0
	if c == consonant {
		row = 1
	}
	if w, ok := wordAt(s); ok {
		if c == consonant {
			row = min(w.row+1, maxRow-1)
		}
		n := min(w.length+1, maxWord)
		name := "word" + strconv.Itoa(int(w.lead)) + "+" + strconv.Itoa(n) + "." + strconv.Itoa(row)
		return wordState(w.lead, n, row), name
	}
	if s >= stUpper && s < stWord {
		l := leadBareCap
		if s < stUpper+maxUpper {
			l = leadSpaceCap
		}
		return wordState(l, min((s-stUpper)%maxUpper+2, maxWord), row), start
	}
	if blank(s) {
		return wordState(leadSpace, 1, row), start
	}
	return wordState(leadBare, 1, row), start
}

func blank(s int) bool { return s == stSpace || s == stSpaces }

type word struct {
	lead        lead
	length, row int
}

func wordState(l lead, length, row int) int {
	return stWord + (int(l)*maxWord+length-1)*maxRow + row
}

func wordAt(s int) (word, bool) {
	if s < stWord || s >= stScript {
		return word{}, false
	}
	s -= stWord
	return word{lead: lead(s / maxRow / maxWord), length: s/maxRow%maxWord + 1, row: s % maxRow}, true
}

// kind is the coarse name of a state, as the start of the next run sees it.
func kind(s int) string {
	switch {
	case s < stOther:
		return [...]string{"start", "space", "spaces", "tab", "newline", "control"}[s]
	case s < stPunct:
		return classNames[int(mark)+(s-stOther)/2]
	case s < stDigit:
		name := classNames[int(firstPunct)+(s-stPunct)/3]
		if (s-stPunct)%3 > 0 {
			name += "s"
		}
		return name
	case s < stUpper:
		return "digit" + strconv.Itoa(s-stDigit+1)
	case s < stWord:
		if n := (s - stUpper) % maxUpper; n < 2 {
			return "upper" + strconv.Itoa(n+1)
		}
		return "upper3"
	case s < stScript:
		w, _ := wordAt(s)
		if w.lead == leadForeign {
			return "foreign"
		}
		switch {
		case w.length <= 2:
			return "word" + strconv.Itoa(w.length)
		case w.length <= 5:
			return "word3"
		}
		return "word6"
	}
	return classNames[int(firstScript)+(s-stScript)/maxScript]
}
