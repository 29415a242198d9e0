package fakellm

import (
	"fmt"

	"sluice/internal/fleet"
)

// engineState is one engine's figures at one moment.
type engineState struct {
	name   string
	load   fleet.Load
	totals fleet.Totals
}

// engines are the models that an engine serves; hosted ones show no metrics.
func (s *Server) engines() []engineState {
	var out []engineState
	for _, m := range s.models {
		if m.pace == nil || m.hosted != nil {
			continue
		}
		l, t := m.pace.load()
		out = append(out, engineState{m.Name, l, t})
	}
	return out
}

// Load is the state of a model's machine; zero when it has none.
func (s *Server) Load(model string) fleet.Load {
	m, ok := s.byName[model]
	if !ok || m.pace == nil {
		return fleet.Load{}
	}
	l, _ := m.pace.load()
	return l
}

func itoa[N ~int | ~int64](n N) string { return fmt.Sprint(int64(n)) }
