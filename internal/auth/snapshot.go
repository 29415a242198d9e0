package auth

import (
	"fmt"
	"slices"
	"time"

	"sluice"
)

// Snapshot answers who a credential belongs to. It is immutable.
type Snapshot struct {
	hasher   Hasher
	keys     map[sluice.KeyID]*entry
	guests   map[membership]*guest // by which tokens of issuers are admitted; empty where there are none
	admins   map[string]*AdminToken
	tenants  map[sluice.TenantID]*Tenant
	plans    map[sluice.PlanID]*Plan
	policies map[string]*sluice.Policy
	problems []string
	partial  bool
	naive    bool // see Records.Naive
}

// entry is a key, ready to answer.
type entry struct {
	key       *Key
	principal sluice.Principal
	tenant    *Tenant // nil if there is none of that id
	broken    string  // why the key cannot be used although it is valid; empty if it can
}

// CompileOptions says how records become a Snapshot.
type CompileOptions struct {
	Hasher Hasher
	Before *Snapshot // policies of equal content keep their pointers; nil on the first
	// Partial is set while a source has not loaded yet: what is unknown may
	// still come, and is answered 503.
	Partial bool
}

// Compile merges records, the first of two with the same id winning, and
// compiles them. It never fails: a record that cannot be used is told in
// Problems and closes what depends on it.
func Compile(o CompileOptions, sources ...Records) *Snapshot {
	s := &Snapshot{
		hasher:  o.Hasher,
		admins:  make(map[string]*AdminToken),
		tenants: make(map[sluice.TenantID]*Tenant),
		plans:   make(map[sluice.PlanID]*Plan),
		partial: o.Partial,
	}
	total := 0
	for _, r := range sources {
		total += len(r.Keys)
	}
	s.keys = make(map[sluice.KeyID]*entry, total)
	for _, r := range sources {
		s.addPlans(r.Plans)
		s.addTenants(r.Tenants)
		for i := range r.Admins {
			if a := &r.Admins[i]; s.admins[a.ID] == nil {
				s.admins[a.ID] = a
			}
		}
	}
	ps := &policies{
		now:   make(map[string]*sluice.Policy),
		naive: slices.ContainsFunc(sources, func(r Records) bool { return r.Naive }),
	}
	if o.Before != nil {
		ps.before = o.Before.policies
	}
	for _, r := range sources {
		for i := range r.Keys {
			s.addKey(&r.Keys[i], ps)
		}
	}
	if slices.ContainsFunc(sources, func(r Records) bool { return r.Tokens }) {
		s.addGuests(ps)
	}
	s.policies, s.naive = ps.now, ps.naive
	return s
}

// maxProblems bounds what Problems tells.
const maxProblems = 100

func (s *Snapshot) problem(format string, args ...any) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

func (s *Snapshot) addPlans(plans []Plan) {
	for i := range plans {
		p := &plans[i]
		if have := s.plans[p.ID]; have != nil {
			s.problem("plan %q %s is shadowed by the one %s", p.ID, place(p.Origin), place(have.Origin))
			continue
		}
		s.plans[p.ID] = p
	}
}

func (s *Snapshot) addTenants(tenants []Tenant) {
	for i := range tenants {
		t := &tenants[i]
		if have := s.tenants[t.ID]; have != nil {
			s.problem("tenant %q %s is shadowed by the one %s", t.ID, place(t.Origin), place(have.Origin))
			continue
		}
		s.tenants[t.ID] = t
	}
}

func place(o Origin) string {
	if !o.Declared() {
		return "of the store"
	}
	return fmt.Sprintf("of %s:%d", o.File, o.Line)
}

func (s *Snapshot) addKey(k *Key, ps *policies) {
	if have := s.keys[k.ID]; have != nil {
		s.problem("key %q %s is shadowed by the one %s", k.ID, place(k.Origin), place(have.key.Origin))
		return
	}
	e := &entry{key: k, principal: sluice.Principal{Tenant: k.Tenant, Project: k.Project, Key: k.ID}}
	if e.principal.Project == "" {
		e.principal.Project = sluice.DefaultProject
	}
	s.keys[k.ID] = e
	e.tenant = s.tenants[k.Tenant]
	if e.tenant == nil {
		e.broken = fmt.Sprintf("belongs to tenant %q, which does not exist", k.Tenant)
		s.problem("key %q %s %s", k.ID, place(k.Origin), e.broken)
		return
	}
	e.principal.Tenant = e.tenant.ID // the same string for all its keys: such are equal without a look at them
	plan := s.planOf(e.tenant)
	if plan == nil {
		e.broken = fmt.Sprintf("has plan %q, which does not exist", e.tenant.Plan)
		s.problem("tenant %q %s %s", k.Tenant, place(e.tenant.Origin), e.broken)
		return
	}
	var project *Project
	if i := slices.IndexFunc(e.tenant.Projects, func(p Project) bool { return p.ID == e.principal.Project }); i >= 0 {
		project = &e.tenant.Projects[i]
	} else if e.principal.Project != sluice.DefaultProject {
		e.broken = fmt.Sprintf("belongs to project %q, which tenant %q does not have", k.Project, k.Tenant)
		s.problem("key %q %s %s", k.ID, place(k.Origin), e.broken)
		return
	}
	policy := policyOf(plan, e.tenant, project, k)
	if ps.naive {
		simplify(policy)
	}
	e.principal.Policy = ps.intern(policy)
}

func (s *Snapshot) planOf(t *Tenant) *Plan {
	if t.Plan == "" {
		p := DefaultPlan("")
		return &p
	}
	return s.plans[t.Plan]
}

// Identify finds whose credential it is, at now. On success it allocates
// nothing. The error is a *sluice.Error: KindUnauthenticated for what is not a
// valid credential now, KindForbidden for a valid one whose tenant is suspended
// or misconfigured, KindOverloaded while the records are not all there.
func (s *Snapshot) Identify(credential string, now time.Time) (sluice.Principal, error) {
	ref, err := Parse(credential)
	if err != nil {
		return sluice.Principal{}, err
	}
	sum := ref.Hash(s.hasher)
	e := s.keys[ref.ID]
	match, live := 0, 0
	if e != nil {
		for i := range e.key.Secrets {
			h := &e.key.Secrets[i]
			same := h.Hash.equal(sum)
			match |= same
			if h.NotAfter.IsZero() || now.Before(h.NotAfter) {
				live |= same
			}
		}
	}
	if match == 0 {
		if s.partial && e == nil {
			return sluice.Principal{}, notReady()
		}
		return sluice.Principal{}, deny(sluice.Unauthenticated, "the API key is not known here", "check that it is whole and meant for this gateway, or ask its operator for a new one")
	}
	if err := e.refuse(s, live == 1, now); err != nil {
		return sluice.Principal{}, err
	}
	return e.principal, nil
}

// Principal is the caller that a key's credential identifies, without one: for
// rehearsals, in which no key is too old. The error says why the key could not be used.
func (s *Snapshot) Principal(id sluice.KeyID) (sluice.Principal, error) {
	return s.PrincipalAt(id, time.Time{})
}

// PrincipalAt is Principal at a time, for what was taken from a caller before.
func (s *Snapshot) PrincipalAt(id sluice.KeyID, now time.Time) (sluice.Principal, error) {
	e := s.keys[id]
	if e == nil && s.partial {
		return sluice.Principal{}, notReady()
	}
	if e == nil {
		return sluice.Principal{}, deny(sluice.Unauthenticated, "the API key is not known here", "")
	}
	if err := e.refuse(s, true, now); err != nil {
		return sluice.Principal{}, err
	}
	return e.principal, nil
}

// PolicyOf is what applies now to who was a caller before: a key's, or that of its project's
// bearers of tokens, of whatever class. Nil if it is not known.
func (s *Snapshot) PolicyOf(p sluice.Principal) *sluice.Policy {
	if e := s.keys[p.Key]; e != nil {
		return e.principal.Policy
	}
	if g := s.guests[membership{p.Tenant, p.Project}]; g != nil {
		return g.policy
	}
	return nil
}

// refuse says why a credential whose secret is right is not admitted, nil if it
// is.
func (e *entry) refuse(s *Snapshot, live bool, now time.Time) *sluice.Error {
	k := e.key
	switch {
	case !k.Revoked.IsZero():
		return deny(sluice.KeyRevoked, "the API key has been revoked", "ask the gateway's operator for a new one")
	case k.Disabled:
		return deny(sluice.KeyRevoked, "the API key is disabled", "ask the gateway's operator to enable it")
	case !k.NotAfter.IsZero() && !now.Before(k.NotAfter):
		return deny(sluice.KeyExpired, "the API key expired at "+k.NotAfter.UTC().Format(time.RFC3339), "ask the gateway's operator for a new one")
	case !live:
		return deny(sluice.KeyExpired, "the API key was rotated and this secret of it has ended", "use the key's new secret")
	case e.broken != "" && s.partial:
		return notReady()
	case e.broken != "":
		return &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied,
			Msg: "the API key " + e.broken, Hint: "the gateway's operator must mend its records",
		}
	case e.tenant.Suspended:
		return &sluice.Error{
			Kind: sluice.KindForbidden, Reason: sluice.PermissionDenied,
			Msg: fmt.Sprintf("tenant %q is suspended", e.tenant.ID), Hint: "ask the gateway's operator",
		}
	}
	return nil
}

// Admin finds whose operator's token it is, at now.
func (s *Snapshot) Admin(token string, now time.Time) (AdminToken, error) {
	id, secret, err := parseAdmin(token)
	if err != nil {
		return AdminToken{}, err
	}
	sum := s.hasher.Sum(secret)
	a := s.admins[id]
	if a == nil || a.Hash.equal(sum) == 0 {
		if s.partial && a == nil {
			return AdminToken{}, notReady()
		}
		return AdminToken{}, deny(sluice.Unauthenticated, "the admin token is not known here", "use the one printed at the first start, or make a new one on the gateway's machine")
	}
	switch {
	case !a.Revoked.IsZero():
		return AdminToken{}, deny(sluice.KeyRevoked, "the admin token has been revoked", "use another one")
	case !a.NotAfter.IsZero() && !now.Before(a.NotAfter):
		return AdminToken{}, deny(sluice.KeyExpired, "the admin token expired at "+a.NotAfter.UTC().Format(time.RFC3339), "use another one")
	}
	return *a, nil
}

func deny(reason sluice.Reason, msg, hint string) *sluice.Error {
	return &sluice.Error{Kind: sluice.KindUnauthenticated, Reason: reason, Msg: msg, Hint: hint}
}

func notReady() *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindOverloaded, Reason: sluice.NotReady, RetryAfter: time.Second,
		Msg: "the gateway has not loaded its keys yet", Hint: "try again in a moment",
	}
}

// Problems tells, for a log and the admin API, which records could not be used
// and why; at most 100.
func (s *Snapshot) Problems() []string { return slices.Clone(s.problems) }

// Keys is how many keys there are.
func (s *Snapshot) Keys() int { return len(s.keys) }

// Tenants is how many tenants are known.
func (s *Snapshot) Tenants() int { return len(s.tenants) }
