package auth

import (
	"encoding/binary"
	"slices"
	"strings"

	"sluice"
)

// nothing is the list of a key that may ask for no model: an empty list would allow
// all, and no model has an empty name. It is that of a key whose requests may go to
// no region or no provider, too.
func nothing[T ~string]() []T { return []T{""} }

// policyOf narrows a plan by what tenant, project and key say themselves.
// project may be nil.
func policyOf(p *Plan, t *Tenant, project *Project, k *Key) *sluice.Policy {
	out := &sluice.Policy{
		Plan:      p.ID,
		Class:     p.Class,
		Classes:   p.Classes,
		Weight:    max(p.Weight, 1),
		Models:    narrow(narrow(p.Models, t.Models), k.Models),
		MaxWait:   int64(max(p.MaxWait, 0)),
		MaxOutput: max(p.MaxOutput, 0),
		Mode:      p.LimitsMode,
		HardSpend: p.Spend != SpendSoft,
		Budget402: p.BudgetStatus == 402,
		ByModel:   byModel(p.PerModel),

		EngineFields: p.EngineFields,
	}
	out.WarnDropped, out.ForeignState = warns(p.Translation, t.Translation), allowsForeign(p.ForeignIDs, t.ForeignIDs)
	out.FetchMedia = fetches(p.FetchMedia, t.FetchMedia)
	out.Hooks = together(p.Hooks, t.Hooks)
	cachesBy(out, p.OutputCache, t.OutputCache)
	out.Degrade = p.Degrade
	if t.Degrade != nil {
		out.Degrade = *t.Degrade
	}
	where := p.Residency.narrow(t.Residency)
	out.InputCeiling, out.OutputCeiling = lower(p.InputCeiling, k.InputCeiling), lower(p.OutputCeiling, k.OutputCeiling)
	if t.LimitsMode != nil {
		out.Mode = *t.LimitsMode
	}
	projectLimits := p.PerProject
	if project != nil {
		out.Models = narrow(narrow(narrow(p.Models, t.Models), project.Models), k.Models)
		out.WarnDropped = warns(p.Translation, t.Translation, project.Translation)
		out.Hooks = together(out.Hooks, project.Hooks)
		where = where.narrow(project.Residency)
		projectLimits = override(projectLimits, project.Limits)
	}
	where = where.narrow(k.Residency)
	out.Regions, out.Providers, out.Risk = where.Regions, where.Providers, where.Risk
	out.Limits[sluice.ScopeTenant] = override(p.Limits, t.Limits)
	out.Limits[sluice.ScopeProject] = override(projectLimits, nil)
	out.Limits[sluice.ScopeKey] = override(p.PerKey, k.Limits)
	out.Limits[sluice.ScopeUser] = override(p.PerUser, nil)
	out.Limits[sluice.ScopeRun] = override(p.PerRun, k.PerRun)
	out.Limits[sluice.ScopeTenantModel] = override(p.PerModel[AnyModel], nil)
	switch p.JournalSync {
	case SyncAlways:
		out.JournalSync = true
	case SyncGroup:
	default:
		out.JournalSync = out.HardSpend && hasSpend(out)
	}
	return out
}

// simplify takes all limits out of a policy but those of requests and spend.
func simplify(p *sluice.Policy) {
	other := func(l sluice.Limit) bool { return l.Dimension != sluice.Requests && l.Dimension != sluice.Spend }
	for scope, limits := range p.Limits {
		p.Limits[scope] = slices.DeleteFunc(limits, other) // it is the policy's own: override makes it
	}
	for m, limits := range p.ByModel {
		p.ByModel[m] = slices.DeleteFunc(limits, other)
	}
}

// together is two lists of hooks, each once: what stands below adds to what stands above
// and takes nothing away.
func together(a, b []string) []string {
	out := slices.Clip(a)
	for _, name := range b {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// lower is the smaller of two bounds, where 0 is none.
func lower(a, b sluice.Tokens) sluice.Tokens {
	if a <= 0 || b > 0 && b < a {
		a = b
	}
	return max(a, 0)
}

func (r Residency) narrow(by Residency) Residency {
	return Residency{Regions: narrow(r.Regions, by.Regions), Providers: narrow(r.Providers, by.Providers), Risk: max(r.Risk, by.Risk)}
}

// narrow is the intersection of two lists, where an empty one is all.
func narrow[T ~string](a, b []T) []T {
	if len(a) == 0 {
		a, b = b, a
	}
	if len(b) == 0 {
		return a
	}
	var out []T
	for _, m := range a {
		if slices.Contains(b, m) {
			out = append(out, m)
		}
	}
	if out == nil {
		return nothing[T]()
	}
	return out
}

// Unlimited is the amount of a limit that lifts that of the same dimension and
// window, where limits replace others.
const Unlimited int64 = -1

// override is base with each limit of over replacing that of the same dimension
// and window, in a fixed order; Unlimited lifts it. Limits that bound nothing
// otherwise (amount ≤ 0, or no such dimension or window) are left out; of two
// alike the later stays.
func override(base, over []sluice.Limit) []sluice.Limit {
	var out []sluice.Limit
	for _, l := range slices.Concat(base, over) {
		if l.Amount <= 0 && l.Amount != Unlimited || l.Dimension >= sluice.NumDimensions || l.Window >= sluice.NumWindows {
			continue
		}
		i, found := slices.BinarySearchFunc(out, l, compareLimit)
		switch {
		case l.Amount == Unlimited && found:
			out = slices.Delete(out, i, i+1)
		case l.Amount == Unlimited:
		case found:
			out[i] = l
		default:
			out = slices.Insert(out, i, l)
		}
	}
	return out
}

func compareLimit(a, b sluice.Limit) int {
	if a.Dimension != b.Dimension {
		return int(a.Dimension) - int(b.Dimension)
	}
	return int(a.Window) - int(b.Window)
}

func byModel(per map[sluice.ModelID][]sluice.Limit) map[sluice.ModelID][]sluice.Limit {
	var out map[sluice.ModelID][]sluice.Limit
	for m, own := range per {
		if m == AnyModel {
			continue
		}
		if out == nil {
			out = make(map[sluice.ModelID][]sluice.Limit)
		}
		out[m] = override(per[AnyModel], own)
	}
	return out
}

func hasSpend(p *sluice.Policy) bool {
	is := func(l sluice.Limit) bool { return l.Dimension == sluice.Spend }
	for _, limits := range p.Limits {
		if slices.ContainsFunc(limits, is) {
			return true
		}
	}
	for _, limits := range p.ByModel {
		if slices.ContainsFunc(limits, is) {
			return true
		}
	}
	return false
}

// policies holds one policy per content, so that keys share them and equal
// content keeps its pointer over refreshes.
type policies struct {
	before map[string]*sluice.Policy // of the snapshot before
	now    map[string]*sluice.Policy
	naive  bool // see Records.Naive
	buf    []byte
}

func (ps *policies) intern(p *sluice.Policy) *sluice.Policy {
	ps.buf = encodePolicy(ps.buf[:0], p)
	if have, ok := ps.now[string(ps.buf)]; ok {
		return have
	}
	if have, ok := ps.before[string(ps.buf)]; ok {
		p = have
	}
	ps.now[string(ps.buf)] = p
	return p
}

// encodePolicy writes the content of a policy so that two are equal exactly
// when their encodings are: every variable part stands behind its length.
func encodePolicy(b []byte, p *sluice.Policy) []byte {
	b = appendText(b, string(p.Plan))
	b = appendText(b, string(p.Degrade))
	b = append(b, byte(p.Class), byte(p.Mode), byte(p.Risk), flag(p.HardSpend), flag(p.Budget402), flag(p.WarnDropped), flag(p.ForeignState), flag(p.FetchMedia), flag(p.JournalSync), flag(p.CacheAsked), flag(p.CachePerUser), flag(p.CacheApart))
	b = binary.AppendUvarint(b, uint64(len(p.Classes)))
	for _, c := range p.Classes {
		b = append(b, byte(c))
	}
	for _, v := range []int64{p.Weight, p.MaxWait, int64(p.MaxOutput), int64(p.InputCeiling), int64(p.OutputCeiling), p.CacheTTL, p.CachePercent} {
		b = binary.AppendVarint(b, v)
	}
	b = appendTexts(b, p.Models)
	b = appendTexts(b, p.Regions)
	b = appendTexts(b, p.Providers)
	b = appendTexts(b, p.EngineFields)
	b = appendTexts(b, p.Hooks)
	for _, limits := range p.Limits {
		b = appendLimits(b, limits)
	}
	models := make([]sluice.ModelID, 0, len(p.ByModel))
	for m := range p.ByModel {
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, c sluice.ModelID) int { return strings.Compare(string(a), string(c)) })
	b = binary.AppendUvarint(b, uint64(len(models)))
	for _, m := range models {
		b = appendText(b, string(m))
		b = appendLimits(b, p.ByModel[m])
	}
	return b
}

func appendTexts[T ~string](b []byte, list []T) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendText(b, string(s))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendLimits(b []byte, limits []sluice.Limit) []byte {
	b = binary.AppendUvarint(b, uint64(len(limits)))
	for _, l := range limits {
		b = append(b, byte(l.Dimension), byte(l.Window))
		b = binary.AppendVarint(b, l.Amount)
	}
	return b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}
