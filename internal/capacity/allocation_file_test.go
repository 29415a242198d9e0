package capacity

import (
	"strings"
	"testing"

	"sluice"
)

// Mistakes of an allocation name the field, what is wrong and what to do.
func TestAllocationMistakes(t *testing.T) {
	one := &Rate{Int(1)}
	model := func(change func(*Model)) AllocationFile {
		m := Model{Name: "chat", Profile: DefaultProfile, Demand: []Row{{RPS: one, Input: Alike(100), Output: Alike(10)}}}
		change(&m)
		return AllocationFile{GPUs: 8, Models: []Model{m}}
	}
	for name, tt := range map[string]struct {
		file              AllocationFile
		field, what, hint string
	}{
		"one of several profiles": {model(func(m *Model) { m.Profile, m.Profiles = "", []string{DefaultProfile, "llama-9"} }), "models[0].profiles[1]", "llama-9", "sluice capacity profiles"},
		"the minima":              {model(func(m *Model) { m.Min = 9 }), "gpus", "9 of 8 (chat 9 × 1 GPUs)", "lower min"},
	} {
		claims, err := tt.file.Claims(ReplicaNamed)
		if err == nil {
			_, err = Allocate(tt.file.GPUs, claims)
		}
		if e := sluice.AsError(err); err == nil || e.Param != tt.field || !strings.Contains(e.Msg, tt.what) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: %v, %s", name, err, e.Hint)
		}
	}
	bad := model(func(m *Model) { m.Weight = -1 })
	told := ""
	bad.Check(func(path, cause, fix string) { told += path + " " + cause + "; " + fix })
	if told != "models[0].weight is -1, and not between 0 and 1000000; write a number in between, or leave it out" {
		t.Errorf("of a negative weight: %q", told)
	}
}
