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

// transition is a cell with the weight of its feature. Its next is the place
// where that state's cells start, so that a step costs one load.
type transition struct {
	next   uint16
	weight uint16
}

// tableSize is the least power of two that has a place for every cell: an index
// that is masked by it needs no check.
const tableSize = 1 << 14

// transitions is the automaton with its weights, by state and class.
var transitions = weigh(newAutomaton(), weightText)

func weigh(a *automaton, text string) *[tableSize]transition {
	weights := make(map[string]uint16, len(a.names))
	for line := range strings.Lines(text) {
		name, w, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			panic("estimate: weights.txt: " + err.Error())
		}
		weights[name] = uint16(n)
	}
	t := new([tableSize]transition)
	for s := range numState {
		for c := range numClasses {
			e := a.cells[s][c]
			w, ok := weights[a.names[e.feature]]
			if !ok { // the automaton is newer than the fit, which has to run first
				w = unit
			}
			t[s*int(numClasses)+int(c)] = transition{next: e.next * uint16(numClasses), weight: w}
		}
	}
	return t
}
