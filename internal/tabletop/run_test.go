package tabletop

import (
	"encoding/json"
	"testing"
)

func TestSmoke(t *testing.T) {
	s := world(2, benchProfile(), tenant("a", 5, 1000, 200), tenant("b", 5, 500, 300))
	r := mustRun(t, s, Options{})
	b, _ := json.MarshalIndent(r.Phases, "", " ")
	t.Log(string(b))
	if r.Phases[0].All.Requests < 500 || r.Phases[0].All.Completed != r.Phases[0].All.Requests {
		t.Error("not all completed")
	}
}
