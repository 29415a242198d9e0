package estimate

// Features shows what the automaton sees in a text: how often each weighted
// transition is taken. It is for fitting the weights; Counter does not use it.
type Features struct{ a *automaton }

// NewFeatures builds the automaton without weights.
func NewFeatures() Features { return Features{newAutomaton()} }

// Names are the features, in the order of the histogram's cells.
func (f Features) Names() []string { return f.a.names }

// Histogram counts the features of one UTF-8 text. It is as long as Names.
func (f Features) Histogram(text string) []uint32 {
	h := make([]uint32, len(f.a.names))
	state := uint16(stStart)
	for i, r := range text {
		k := invalid
		switch {
		case r < 0x80:
			k = asciiClass[r]
		case r != 0xfffd || text[i] == 0xef:
			k = classOf(r)
		}
		e := f.a.cells[state][k]
		h[e.feature]++
		state = e.next
	}
	return h
}
