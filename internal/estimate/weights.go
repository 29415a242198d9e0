package estimate

// transition is a cell with the weight of its feature, in 1/unit token.
type transition struct {
	next   uint16
	weight uint16
}

// transitions is the automaton with its weights.
var transitions = weigh(newAutomaton())

func weigh(a *automaton) *[numState][numClasses]transition {
	t := new([numState][numClasses]transition)
	for s := range numState {
		for c := range numClasses {
			e := a.cells[s][c]
			t[s][c] = transition{next: e.next, weight: weightOf(a.names[e.feature])}
		}
	}
	return t
}
