package admin

import (
	"sluice"
	"sluice/internal/auth"
)

// Residency is where requests may go, in plans, tenants, projects and keys.
type Residency struct {
	Regions   *[]string `json:"regions,omitempty" maxItems:"100" doc:"Regions that requests may go to, fallbacks too; narrows what stands above, empty changes nothing"`
	Providers *[]string `json:"providers,omitempty" maxItems:"100" doc:"Providers that requests may go to, likewise"`
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
}
