package tabletop

import "time"

// The names of phases that a scenario does not name.
const (
	PhaseWhole  = "run"    // of a scenario without events
	PhaseBefore = "before" // until the first event that begins a phase
	PhaseAfter  = "after"  // from the first event on, where none names a phase
)

// span is one phase: what is judged by itself.
type span struct {
	name     string
	from, to time.Duration
}

// spans is the scenario's phases. The first begins with the warm-up's end, the last
// ends with the arrivals. An event of the warm-up begins no phase.
func (s *Scenario) spans() []span {
	named := false
	for i := range s.Events {
		named = named || s.Events[i].Phase != ""
	}
	out := []span{{name: PhaseWhole, from: s.Warmup, to: s.Length}}
	for i := range s.Events {
		e := &s.Events[i]
		name := e.Phase
		if !named && len(out) == 1 {
			name = PhaseAfter
		}
		if name == "" || e.At < s.Warmup || e.At >= s.Length {
			continue
		}
		last := &out[len(out)-1]
		if last.name == PhaseWhole {
			last.name = PhaseBefore
		}
		last.to = e.At
		out = append(out, span{name: name, from: e.At, to: s.Length})
		if last = &out[len(out)-2]; last.from == last.to { // the first event is at the warm-up's end
			out = append(out[:len(out)-2], out[len(out)-1])
		}
	}
	return out
}

// PhaseNames is the names of the scenario's phases, in order.
func (s *Scenario) PhaseNames() []string {
	var names []string
	for _, p := range s.spans() {
		names = append(names, p.name)
	}
	return names
}
