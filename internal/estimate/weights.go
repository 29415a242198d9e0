package estimate

import (
	_ "embed"
	"strconv"
	"strings"
)

// weightText is what the fit writes: a line per feature, its name and its
// weight in 1/unit token.
//
//go:embed weights.txt
var weightText string

// transition is a cell with the weight of its feature.
type transition struct {
	next   uint16
	weight uint16
}

// transitions is the automaton with its weights.
var transitions = weigh(newAutomaton(), weightText)

func weigh(a *automaton, text string) *[numState][numClasses]transition {
	weights := make(map[string]uint16, len(a.names))
	for line := range strings.Lines(text) {
		name, w, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			panic("estimate: weights.txt: " + err.Error())
		}
		weights[name] = uint16(n)
	}
	t := new([numState][numClasses]transition)
	for s := range numState {
		for c := range numClasses {
			e := a.cells[s][c]
			w, ok := weights[a.names[e.feature]]
			if !ok { // the automaton is newer than the fit, which has to run first
				w = unit
			}
			t[s][c] = transition{next: e.next, weight: w}
		}
	}
	return t
}
