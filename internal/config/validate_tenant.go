package config

import (
	"fmt"
	"net"

	"sluice"
	"sluice/internal/auth"
)

func (v *validator) plan(path, name string, p *Plan) {
	v.name(path, "plan", name)
	if p.Weight < 1 || p.Weight > maxWeight {
		v.fail(join(path, "weight"), fmt.Sprintf("write a whole number from 1 to %d", maxWeight), "%d is not a weight", p.Weight)
	}
	if p.BudgetStatus != 429 && p.BudgetStatus != 402 {
		v.fail(join(path, "budget_status"), "write 429 or 402", "%d is not a status of a spent budget", p.BudgetStatus)
	}
	if at := join(path, "max_wait"); p.MaxWait == 0 && v.given(at) {
		v.fail(at, zeroFix, "0 would be as if it were left out")
	}
	v.models(join(path, "models"), p.Models)
	v.residency(path, p.Residency)
	v.hookNames(path, p.Hooks)
	v.degrade(path, p.Degrade)
	for _, m := range sorted(p.PerModel) {
		if m != string(auth.AnyModel) && v.c.Models[m] == nil {
			v.fail(join(join(path, "per_model"), m), suggest(m, sorted(v.c.Models)), "model %q is not declared", m)
		}
	}
}

func (v *validator) tenant(path, name string, t *Tenant, ids map[sluice.KeyID]string) {
	v.name(path, "tenant", name)
	if t.Plan != "" && v.c.Plans[t.Plan] == nil {
		v.fail(join(path, "plan"), suggest(t.Plan, sorted(v.c.Plans)), "plan %q is not declared", t.Plan)
	}
	v.models(join(path, "models"), t.Models)
	v.residency(path, t.Residency)
	v.hookNames(path, t.Hooks)
	v.degrade(path, t.Degrade)
	for _, p := range sorted(t.Projects) {
		at := join(join(path, "projects"), p)
		v.name(at, "project", p)
		v.models(join(at, "models"), t.Projects[p].Models)
		v.residency(at, t.Projects[p].Residency)
		v.hookNames(at, t.Projects[p].Hooks)
	}
	for _, k := range sorted(t.Keys) {
		v.key(join(join(path, "keys"), k), t, t.Keys[k], ids)
	}
}

func (v *validator) key(path string, t *Tenant, k *Key, ids map[sluice.KeyID]string) {
	v.models(join(path, "models"), k.Models)
	v.residency(path, k.Residency)
	if k.Project != "" && k.Project != string(sluice.DefaultProject) && t.Projects[k.Project] == nil {
		v.fail(join(path, "project"), suggest(k.Project, sorted(t.Projects)), "project %q is not declared at the tenant", k.Project)
	}
	if k.Secret == nil || k.Secret.Empty() {
		return // reported
	}
	ref, ok := v.credential(join(path, "secret"), k.Secret)
	if !ok {
		return
	}
	if first, dup := ids[ref.ID]; dup {
		v.fail(join(path, "secret"), "give each key a credential of its own; earlier secrets of one key go under previous", "has the id %q, as %s does", ref.ID, first)
	}
	ids[ref.ID] = path
	if len(k.Previous) >= auth.MaxSecrets {
		v.fail(join(path, "previous"), "remove those that have ended", "a key has at most %d earlier secrets", auth.MaxSecrets-1)
	}
	for i, old := range k.Previous {
		at := join(index(join(path, "previous"), i), "secret")
		if old.Secret == nil || old.Secret.Empty() {
			continue
		}
		if prev, ok := v.credential(at, old.Secret); ok && prev.ID != ref.ID {
			v.fail(at, "declare it as a key of its own", "has the id %q, the key has %q", prev.ID, ref.ID)
		}
	}
}

// credential takes a declared key apart. The error never echoes it.
func (v *validator) credential(path string, s *Secret) (auth.KeyRef, bool) {
	ref, err := auth.Parse(s.Reveal())
	if err != nil {
		v.fail(path, "use a whole key as `sluice key mint` prints it, slk_<env>_<id>_<secret>_<check>", "%s", sluice.AsError(err).Msg)
		return ref, false
	}
	return ref, true
}

// loopback reports whether an address is reachable from this machine alone.
func loopback(a Address) bool {
	host, _, err := net.SplitHostPort(string(a))
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
