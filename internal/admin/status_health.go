package admin

import (
	"cmp"
	"slices"

	"sluice/internal/engine"
	"sluice/internal/route"
)

// DomainStatus is one failure domain.
type DomainStatus struct {
	Domain string `json:"domain"`
	Failed bool   `json:"failed" doc:"It is avoided while there is another"`
	Open   int    `json:"open" doc:"Backends whose breakers are open"`
	Of     int    `json:"of" doc:"Backends that take work"`
}

// CredentialStatus is one credential of a provider. Its secret is shown nowhere.
type CredentialStatus struct {
	Credential     string  `json:"credential" doc:"Its name in the configuration"`
	Backend        string  `json:"backend,omitempty" doc:"Where the state holds at one backend alone"`
	State          string  `json:"state" doc:"usable, parked or disabled"`
	RetryInSeconds float64 `json:"retry_in_seconds,omitempty" doc:"Until one request tries it"`
}

// health adds failure domains and credentials.
func (s *Status) health(v *engine.View, limit int) {
	for _, d := range v.Domains {
		s.Domains = append(s.Domains, DomainStatus{Domain: d.Name, Failed: d.Failed, Open: d.Open, Of: d.Of})
	}
	slices.SortStableFunc(s.Domains, func(x, y DomainStatus) int { return cmp.Compare(y.Open, x.Open) })
	s.Domains, s.MoreDomains = cut(s.Domains, limit)
	for _, c := range v.Credentials {
		s.Credentials = append(s.Credentials, CredentialStatus{
			Credential: c.ID, Backend: string(c.Backend), State: string(c.State), RetryInSeconds: c.RetryIn.Seconds(),
		})
	}
	out := func(c CredentialStatus) int {
		if c.State == string(route.CredentialUsable) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.Credentials, func(x, y CredentialStatus) int { return cmp.Compare(out(x), out(y)) })
	s.Credentials, s.MoreCredentials = cut(s.Credentials, limit)
}
