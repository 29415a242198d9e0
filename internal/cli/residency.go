package cli

import "sluice/internal/admin"

// residencyFlags say where requests may go.
type residencyFlags struct {
	Region   []string `help:"Regions that requests may go to, fallbacks too; narrows what stands above." placeholder:"REGION"`
	Provider []string `help:"Providers that requests may go to, likewise." placeholder:"PROVIDER"`
	Risk     *string  `help:"Least risk label of requests: low, normal or high; raises what stands above, none changes nothing." enum:"none,low,normal,high"`
}

func (f *residencyFlags) residency() admin.Residency {
	return admin.Residency{Regions: names(f.Region), Providers: names(f.Provider), Risk: f.Risk}
}
