package cli

import "sluice/internal/admin"

// residencyFlags say where requests may go.
type residencyFlags struct {
	Region   []string `help:"Regions that requests may go to, fallbacks too; narrows what stands above." placeholder:"REGION"`
	Provider []string `help:"Providers that requests may go to, likewise." placeholder:"PROVIDER"`
}

func (f *residencyFlags) residency() admin.Residency {
	return admin.Residency{Regions: names(f.Region), Providers: names(f.Provider)}
}
