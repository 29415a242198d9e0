package admin

import (
	"sluice"
	"sluice/internal/auth"
)

// Residency is where requests may go, in plans, tenants, projects and keys: by where
// and whose a backend is, and by the label that they carry.
type Residency struct {
	Regions   *[]string `json:"regions,omitempty" maxItems:"100" doc:"Regions that requests may go to, fallbacks too; narrows what stands above, empty changes nothing"`
	Providers *[]string `json:"providers,omitempty" maxItems:"100" doc:"Providers that requests may go to, likewise"`
	Risk      *string   `json:"risk,omitempty" enum:"none,low,normal,high" doc:"Least risk label of each request: it goes to no backend and no pool that takes less; raises what stands above, none changes nothing"`
}

func residencyOf(r auth.Residency) (out Residency) {
	if len(r.Regions) > 0 {
		names := words(r.Regions)
		out.Regions = &names
	}
	if len(r.Providers) > 0 {
		names := words(r.Providers)
		out.Providers = &names
	}
	if r.Risk != sluice.RiskNone {
		label := r.Risk.String()
		out.Risk = &label
	}
	return out
}

// apply changes r by what f names.
func (f Residency) apply(r *auth.Residency) {
	if f.Regions != nil {
		r.Regions = ids[string](*f.Regions)
	}
	if f.Providers != nil {
		r.Providers = ids[sluice.ProviderID](*f.Providers)
	}
	if f.Risk != nil {
		_ = r.Risk.UnmarshalText([]byte(*f.Risk)) // the schema lists the words
	}
}
