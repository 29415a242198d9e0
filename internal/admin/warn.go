package admin

import (
	"fmt"
	"maps"
	"slices"
)

// Warned is what is valid but looks wrong in a change that was asked for.
type Warned struct {
	Warnings []string `json:"warnings,omitempty" doc:"Of a change alone: what is valid but looks wrong"`
}

// unknownModels warns of names that no model of the configuration in force has.
// They are not refused: the model may come with the next reload.
func (a *API) unknownModels(named *[]string) Warned {
	var out Warned
	if a.o.HasModel == nil || named == nil {
		return out
	}
	for _, m := range *named {
		if !a.o.HasModel(m) {
			out.Warnings = append(out.Warnings, fmt.Sprintf("no model %q is configured now", m))
		}
	}
	return out
}

// unknownPerModel is unknownModels for limits by model, where * is all of them.
func (a *API) unknownPerModel(f *PlanFields) Warned {
	out := a.unknownModels(f.Models)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(f.PerModel)), func(m string) bool { return m == "*" })
	out.Warnings = append(out.Warnings, a.unknownModels(&names).Warnings...)
	return out
}
