package capacity

import (
	"fmt"

	"sluice"
	"sluice/internal/fleet"
)

// DefaultProfile is what is planned for where no profile is named.
const DefaultProfile = "llama-3.1-8b-1xh100"

// Replicas are the known profiles in the order of their names: illustrative
// figures, derived from published measurements.
func Replicas() []Replica {
	return []Replica{
		{Name: "llama-3.1-8b-1xh100", Profile: fleet.Llama8BOnH100(), GPUs: 1},
		{Name: "llama-3.1-70b-4xh100", Profile: fleet.Llama70BOn4H100(), GPUs: 4},
	}
}

// ReplicaNamed finds a profile; empty is the default.
func ReplicaNamed(name string) (Replica, error) {
	if name == "" {
		name = DefaultProfile
	}
	for _, r := range Replicas() {
		if r.Name == name {
			return r, nil
		}
	}
	e := sluice.Invalid("profile", "is not known: %q", name)
	e.Hint = fmt.Sprintf("sluice capacity profiles lists them; %s is one", DefaultProfile)
	return Replica{}, e
}
