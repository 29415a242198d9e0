package config

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/auth"
)

// records turns what the file declares into what auth keeps.
func (c *Config) records(h auth.Hasher) auth.Records {
	r := auth.Records{Naive: c.Policy == Naive, Tokens: len(c.Auth.Issuers) > 0}
	for _, name := range sorted(c.Plans) {
		r.Plans = append(r.Plans, c.planRecord(name, c.Plans[name]))
	}
	for _, name := range sorted(c.Tenants) {
		t := c.Tenants[name]
		path := join("tenants", name)
		out := auth.Tenant{
			ID: sluice.TenantID(name), Name: t.Name, Plan: sluice.PlanID(t.Plan), Suspended: t.Suspended,
			Models: modelIDs(t.Models), Limits: slices.Clone(t.Limits), Residency: t.Residency.record(), Origin: c.origin(path),
			Translation: auth.Translation(t.Translation), ForeignIDs: auth.ForeignIDs(t.ForeignIDs), FetchMedia: auth.FetchMedia(t.FetchMedia), Hooks: slices.Clone(t.Hooks), OutputCache: t.OutputCache.record(),
		}
		if t.LimitsMode != "" {
			mode := t.LimitsMode.mode()
			out.LimitsMode = &mode
		}
		if t.Degrade != nil {
			m := t.Degrade.model()
			out.Degrade = &m
		}
		for _, p := range sorted(t.Projects) {
			out.Projects = append(out.Projects, auth.Project{
				ID: sluice.ProjectID(p), Name: t.Projects[p].Name, Models: modelIDs(t.Projects[p].Models), Limits: slices.Clone(t.Projects[p].Limits),
				Residency: t.Projects[p].Residency.record(), Translation: auth.Translation(t.Projects[p].Translation),
				Hooks: slices.Clone(t.Projects[p].Hooks),
			})
		}
		r.Tenants = append(r.Tenants, out)
		for _, k := range sorted(t.Keys) {
			r.Keys = append(r.Keys, c.keyRecord(join(join(path, "keys"), k), k, out.ID, t.Keys[k], h))
		}
	}
	return r
}

func (c *Config) origin(path string) auth.Origin {
	return auth.Origin{File: c.file, Line: near(c.pos, path).Line}
}

func (c *Config) planRecord(name string, p *Plan) auth.Plan {
	out := auth.Plan{
		ID: sluice.PlanID(name), Class: p.Class, Classes: slices.Clone(p.Classes), Weight: p.Weight, Models: modelIDs(p.Models),
		MaxWait: time.Duration(p.MaxWait), MaxOutput: sluice.Tokens(p.MaxOutput), Spend: auth.Spend(p.Spend),
		BudgetStatus: int(p.BudgetStatus), JournalSync: auth.Sync(p.JournalSync), Translation: auth.Translation(p.Translation), ForeignIDs: auth.ForeignIDs(p.ForeignIDs), FetchMedia: auth.FetchMedia(p.FetchMedia),
		Limits: p.Limits.top(), PerProject: p.PerProject.top(), PerKey: p.PerKey.top(),
		PerUser: p.PerUser.top(), PerRun: Limits(p.PerRun).top(), LimitsMode: p.LimitsMode.mode(),
		InputCeiling: sluice.Tokens(p.InputCeiling), OutputCeiling: sluice.Tokens(p.OutputCeiling),
		Residency: p.Residency.record(), Hooks: slices.Clone(p.Hooks), OutputCache: p.OutputCache.record(), Degrade: p.Degrade.model(), Origin: c.origin(join("plans", name)),
	}
	for _, f := range p.EngineFields {
		out.EngineFields = append(out.EngineFields, string(f))
	}
	for m, l := range p.PerModel {
		if out.PerModel == nil {
			out.PerModel = make(map[sluice.ModelID][]sluice.Limit)
		}
		out.PerModel[sluice.ModelID(m)] = slices.Clone(l)
	}
	return out
}

func (c *Config) keyRecord(path, name string, tenant sluice.TenantID, k *Key, h auth.Hasher) auth.Key {
	ref, _ := auth.Parse(k.Secret.Reveal()) // validated when the file was read
	out := auth.Key{
		ID: ref.ID, Env: ref.Env, Name: name, Tenant: tenant, Project: sluice.ProjectID(k.Project),
		Secrets: []auth.SecretHash{{Hash: ref.Hash(h)}}, Models: modelIDs(k.Models), Limits: slices.Clone(k.Limits),
		PerRun: slices.Clone(k.PerRun), InputCeiling: sluice.Tokens(k.InputCeiling), OutputCeiling: sluice.Tokens(k.OutputCeiling),
		Residency: k.Residency.record(), Disabled: k.Disabled, Origin: c.origin(path),
	}
	if out.Project == "" {
		out.Project = sluice.DefaultProject
	}
	if k.NotAfter != nil {
		out.NotAfter = k.NotAfter.Time
	}
	for _, old := range k.Previous {
		prev, _ := auth.Parse(old.Secret.Reveal())
		out.Secrets = append(out.Secrets, auth.SecretHash{Hash: prev.Hash(h), NotAfter: old.NotAfter.Time})
	}
	return out
}

func (r Residency) record() auth.Residency {
	out := auth.Residency{Regions: slices.Clone(r.Regions), Risk: r.Risk.label()}
	for _, p := range r.Providers {
		out.Providers = append(out.Providers, sluice.ProviderID(p))
	}
	return out
}

func modelIDs(names []string) []sluice.ModelID {
	var out []sluice.ModelID
	for _, n := range names {
		out = append(out, sluice.ModelID(n))
	}
	return out
}
