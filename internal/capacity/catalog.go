package capacity

import (
	"sluice"
	"sluice/internal/fleet"
)

// DefaultProfile is what is planned for where no profile is named.
const DefaultProfile = "llama-3.1-8b-1xh100"

// Known is a profile that fleet has a name for.
type Known struct {
	Replica
	Model, GPU, Precision string
	Basis                 string // where its figures come from
}

// Profiles are the known ones by model and GPUs: illustrative figures.
func Profiles() []Known {
	var out []Known
	for _, n := range fleet.Profiles() {
		out = append(out, Known{
			Replica: Replica{Name: n.Name, Profile: n.Profile, GPUs: n.GPUs},
			Model:   n.Model, GPU: n.GPU, Precision: n.Precision.String(), Basis: n.Basis.String(),
		})
	}
	return out
}

// ReplicaNamed finds a profile; empty is the default.
func ReplicaNamed(name string) (Replica, error) {
	if name == "" {
		name = DefaultProfile
	}
	for _, k := range Profiles() {
		if k.Name == name {
			return k.Replica, nil
		}
	}
	e := sluice.Invalid("profile", "has an unknown name: %q", name)
	e.Hint = "sluice capacity profiles lists them; " + DefaultProfile + " is one"
	return Replica{}, e
}
