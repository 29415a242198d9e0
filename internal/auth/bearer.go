package auth

import (
	"fmt"
	"slices"

	"sluice"
)

// Bearer is who the verified token of an issuer says that it is of. It has no record of
// its own: its tenant and project must exist, and what these and the plan say applies.
type Bearer struct {
	Key     sluice.KeyID     // what stands in the place of a key's id: issuer and subject
	Tenant  sluice.TenantID  // that the token was mapped to
	Project sluice.ProjectID // empty is DefaultProject
	User    sluice.UserID    // empty leaves it to the request
	Class   *sluice.Class    // the highest that its requests may have; nil is the plan's
}

// membership is where a bearer belongs.
type membership struct {
	tenant  sluice.TenantID
	project sluice.ProjectID
}

// guest is what applies to the bearers of tokens of one project.
type guest struct {
	tenant  *Tenant
	broken  string // why it cannot be used; empty if it can
	policy  *sluice.Policy
	byClass [sluice.NumClasses]*sluice.Policy
}

// addGuests compiles what applies to tokens, where issuers of some are known.
func (s *Snapshot) addGuests(ps *policies) {
	s.guests = make(map[membership]*guest)
	for id, t := range s.tenants {
		s.addGuest(t, membership{id, sluice.DefaultProject}, ps)
		for i := range t.Projects {
			if at := (membership{id, t.Projects[i].ID}); s.guests[at] == nil {
				s.addGuest(t, at, ps)
			}
		}
	}
}

func (s *Snapshot) addGuest(t *Tenant, at membership, ps *policies) {
	g := &guest{tenant: t}
	s.guests[at] = g
	plan := s.planOf(t)
	if plan == nil {
		g.broken = fmt.Sprintf("has plan %q, which does not exist", t.Plan)
		return
	}
	var project *Project
	if i := slices.IndexFunc(t.Projects, func(p Project) bool { return p.ID == at.project }); i >= 0 {
		project = &t.Projects[i]
	}
	policy := policyOf(plan, t, project, &Key{})
	if ps.naive {
		simplify(policy)
	}
	for c := range g.byClass {
		g.byClass[c] = ps.intern(atMost(policy, sluice.Class(c)))
	}
	g.policy = ps.intern(policy)
}

// atMost is a policy whose requests may have no higher class than c. A class that the
// plan neither has nor lists becomes the plan's.
func atMost(p *sluice.Policy, c sluice.Class) *sluice.Policy {
	if !p.AllowsClass(c) {
		return p
	}
	out := *p
	out.Class, out.Classes = c, nil
	return &out
}

// Admit finds what applies to the bearer of a token that has been verified. The error is
// a *sluice.Error: KindForbidden where its tenant or project does not exist or may not
// be used, KindOverloaded while the records are not all there.
func (s *Snapshot) Admit(b *Bearer) (sluice.Principal, error) {
	project := b.Project
	if project == "" {
		project = sluice.DefaultProject
	}
	g := s.guests[membership{b.Tenant, project}]
	switch {
	case g == nil && s.partial:
		return sluice.Principal{}, notReady()
	case g == nil && s.tenants[b.Tenant] == nil:
		return sluice.Principal{}, forbid(fmt.Sprintf("the token is of tenant %q, which does not exist here", b.Tenant), "ask the gateway's operator to create the tenant, or to map the token to another")
	case g == nil:
		return sluice.Principal{}, forbid(fmt.Sprintf("the token is of project %q, which tenant %q does not have", project, b.Tenant), "ask the gateway's operator to create the project, or to map the token to another")
	case g.broken != "" && s.partial:
		return sluice.Principal{}, notReady()
	case g.broken != "":
		return sluice.Principal{}, forbid(fmt.Sprintf("the token's tenant %q %s", b.Tenant, g.broken), "the gateway's operator must mend its records")
	case g.tenant.Suspended:
		return sluice.Principal{}, forbid(fmt.Sprintf("tenant %q is suspended", b.Tenant), "ask the gateway's operator")
	}
	p := sluice.Principal{Tenant: b.Tenant, Project: project, Key: b.Key, User: b.User, Policy: g.policy}
	if b.Class != nil && int(*b.Class) < len(g.byClass) {
		p.Policy = g.byClass[*b.Class]
	}
	return p, nil
}

func forbid(msg, hint string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied, Msg: msg, Hint: hint}
}
