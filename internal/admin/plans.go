package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/wire"
)

// Plan is class, weight and limits that tenants have by its name.
type Plan struct {
	ID string `json:"id"`
	PlanFields
	Declared string     `json:"declared,omitempty" doc:"file:line that owns it; empty when it can be changed here"`
	Created  *time.Time `json:"created,omitempty"`
	Updated  *time.Time `json:"updated,omitempty"`
	Warned
}

// PlanFields is what a plan says. In an update, fields that are left out stay.
type PlanFields struct {
	Class         *string           `json:"class,omitempty" enum:"interactive,standard,batch" doc:"Class of a request that asks for none"`
	Classes       *[]string         `json:"classes,omitempty" maxItems:"3" doc:"Further classes that a request may ask for; lower ones always"`
	Weight        *int64            `json:"weight,omitempty" minimum:"1" maximum:"1000000" doc:"Share between tenants"`
	Models        *[]string         `json:"models,omitempty" maxItems:"1000" doc:"Public model names that are allowed; empty allows all"`
	MaxWait       *string           `json:"max_wait,omitempty" doc:"Longest time in a queue, a Go duration; empty takes the pool's"`
	MaxOutput     *int64            `json:"max_output,omitempty" minimum:"0" doc:"Output bound of a request that names none, in tokens; 0 takes the model's"`
	Spend         *string           `json:"spend,omitempty" enum:"hard,soft" doc:"hard: upper bounds are held and a budget is never exceeded"`
	BudgetStatus  *int              `json:"budget_status,omitempty" enum:"402,429" doc:"Status of a spent budget in the OpenAI dialect"`
	JournalSync   *string           `json:"journal_sync,omitempty" enum:",always,group" doc:"Whether a request waits for the disk; empty: always with hard spend"`
	Limits        Limits            `json:"limits,omitempty" doc:"Of the whole tenant"`
	PerProject    Limits            `json:"per_project,omitempty" doc:"Of each project"`
	PerKey        Limits            `json:"per_key,omitempty" doc:"Of each key"`
	PerModel      map[string]Limits `json:"per_model,omitempty" doc:"Of each tenant on one model; * is each model by itself"`
	PerUser       Limits            `json:"per_user,omitempty" doc:"Of each end user of the tenant"`
	PerRun        RunLimits         `json:"per_run,omitempty" doc:"Of each run of the tenant: steps, input_tokens, output_tokens, tokens, spend, time"`
	InputCeiling  *int64            `json:"input_ceiling,omitempty" minimum:"0" doc:"Most input tokens of one request; 0 for no bound"`
	OutputCeiling *int64            `json:"output_ceiling,omitempty" minimum:"0" doc:"Most output tokens of one request, over all its answers; 0 for no bound"`
	LimitsMode    *string           `json:"limits_mode,omitempty" enum:"enforce,shadow,off" doc:"shadow counts and tells what it would have refused; off counts nothing"`
	Translation   *string           `json:"translation,omitempty" enum:",strict,warn" doc:"Of requests to backends of another dialect: what that cannot carry refuses the request, or is named in sluice-dropped; empty is strict"`
	ForeignIDs    *string           `json:"foreign_ids,omitempty" enum:",refuse,allow" doc:"Of requests that refer to what a provider keeps, by an id that no answer here has given: refused, or left to the provider; empty is refuse"`
	FetchMedia    *string           `json:"fetch_media,omitempty" enum:",refuse,allow" doc:"Of images and documents by URL, for backends that take bytes alone: the gateway fetches them, from public addresses, or such backends are left out; empty is refuse"`
	EngineFields  *[]string         `json:"engine_fields,omitempty" maxItems:"20" doc:"Members of a body that steer a self-run engine and that requests may have, such as priority; empty allows none"`
	OutputCache   *string           `json:"output_cache,omitempty" maxLength:"200" doc:"How answers are kept and given again to the same request: ttl=10m, and behind it for=asked, price=20%, per_user, coalesce=false; empty keeps none"`
	Hooks         *[]string         `json:"hooks,omitempty" maxItems:"20" doc:"Hooks that look into requests and answers, by name, in order; empty names none"`
	Degrade       *string           `json:"degrade,omitempty" maxLength:"200" doc:"Consent to a smaller model while a pool is short of capacity: the model that may serve in place of the one asked for, or off; empty is off"`
	Residency
}

func planView(p *auth.Plan) Plan {
	class, weight, spend := p.Class.String(), max(p.Weight, 1), string(p.Spend)
	out := Plan{ID: string(p.ID), Declared: place(p.Origin), Created: moment(p.Created), Updated: moment(p.Updated)}
	out.Class, out.Weight = &class, &weight
	mode := p.LimitsMode.String()
	out.LimitsMode, out.Translation, out.ForeignIDs = &mode, translationOf(p.Translation), foreignOf(p.ForeignIDs)
	out.FetchMedia, out.Degrade = fetchOf(p.FetchMedia), planDegradeOf(p.Degrade)
	out.InputCeiling, out.OutputCeiling = ceilings{&p.InputCeiling, &p.OutputCeiling}.told()
	out.PerUser, out.PerRun = limitsOf(p.PerUser), runLimitsOf(p.PerRun)
	if spend == "" {
		spend = string(auth.SpendHard)
	}
	out.Spend = &spend
	if len(p.Classes) > 0 {
		names := texts(p.Classes)
		out.Classes = &names
	}
	if len(p.Models) > 0 {
		names := words(p.Models)
		out.Models = &names
	}
	if len(p.EngineFields) > 0 {
		names := slices.Clone(p.EngineFields)
		out.EngineFields = &names
	}
	out.Residency, out.Hooks, out.OutputCache = residencyOf(p.Residency), hooksOf(p.Hooks), outputCacheOf(p.OutputCache)
	if p.MaxWait > 0 {
		s := p.MaxWait.String()
		out.MaxWait = &s
	}
	if p.MaxOutput > 0 {
		n := int64(p.MaxOutput)
		out.MaxOutput = &n
	}
	if p.BudgetStatus != 0 {
		out.BudgetStatus = &p.BudgetStatus
	}
	if p.JournalSync != "" {
		s := string(p.JournalSync)
		out.JournalSync = &s
	}
	out.Limits, out.PerProject, out.PerKey = limitsOf(p.Limits), limitsOf(p.PerProject), limitsOf(p.PerKey)
	for m, ls := range p.PerModel {
		if out.PerModel == nil {
			out.PerModel = make(map[string]Limits, len(p.PerModel))
		}
		out.PerModel[string(m)] = limitsOf(ls)
	}
	return out
}

// apply changes p by what f names.
func (f *PlanFields) apply(p *auth.Plan) error {
	if f.Class != nil {
		if err := p.Class.UnmarshalText([]byte(*f.Class)); err != nil {
			return sluice.Invalid("class", "is wrong: %s", err)
		}
	}
	if f.Classes != nil {
		p.Classes = nil
		for _, s := range *f.Classes {
			var c sluice.Class
			if err := c.UnmarshalText([]byte(s)); err != nil {
				return sluice.Invalid("classes", "has an entry that is wrong: %s", err)
			}
			p.Classes = append(p.Classes, c)
		}
	}
	if f.MaxWait != nil {
		d, err := parseDuration("max_wait", *f.MaxWait)
		if err != nil {
			return err
		}
		p.MaxWait = d
	}
	if f.Models != nil {
		p.Models = ids[sluice.ModelID](*f.Models)
	}
	f.Residency.apply(&p.Residency)
	set(&p.Weight, f.Weight)
	set(&p.BudgetStatus, f.BudgetStatus)
	if f.MaxOutput != nil {
		p.MaxOutput = sluice.Tokens(*f.MaxOutput)
	}
	if f.Spend != nil {
		p.Spend = auth.Spend(*f.Spend)
	}
	if f.JournalSync != nil {
		p.JournalSync = auth.Sync(*f.JournalSync)
	}
	if f.LimitsMode != nil {
		if err := p.LimitsMode.UnmarshalText([]byte(*f.LimitsMode)); err != nil {
			return sluice.Invalid("limits_mode", "is wrong: %s", err)
		}
	}
	ceilings{&p.InputCeiling, &p.OutputCeiling}.set(f.InputCeiling, f.OutputCeiling)
	applyPlanDegrade(&p.Degrade, f.Degrade)
	if err := applyTranslation(&p.Translation, f.Translation); err != nil {
		return err
	}
	if err := applyFetch(&p.FetchMedia, f.FetchMedia); err != nil {
		return err
	}
	if err := applyOutputCache(&p.OutputCache, f.OutputCache); err != nil {
		return err
	}
	if err := applyForeign(&p.ForeignIDs, f.ForeignIDs); err != nil {
		return err
	}
	if f.EngineFields != nil {
		for _, name := range *f.EngineFields {
			if !slices.Contains(wire.EngineFields, name) {
				return sluice.Invalid("engine_fields", "has %q: write some of %s", name, strings.Join(wire.EngineFields, ", "))
			}
		}
		p.EngineFields = slices.Clone(*f.EngineFields)
	}
	return f.applyLimits(p)
}

func (f *PlanFields) applyLimits(p *auth.Plan) (err error) {
	if p.Limits, err = f.Limits.applyTop(p.Limits, "limits"); err != nil {
		return err
	}
	if p.PerProject, err = f.PerProject.applyTop(p.PerProject, "per_project"); err != nil {
		return err
	}
	if p.PerKey, err = f.PerKey.applyTop(p.PerKey, "per_key"); err != nil {
		return err
	}
	if p.PerUser, err = f.PerUser.applyTop(p.PerUser, "per_user"); err != nil {
		return err
	}
	if p.PerRun, err = f.PerRun.apply(p.PerRun, "per_run", true); err != nil {
		return err
	}
	if len(f.PerModel) == 0 {
		return nil
	}
	byModel := make(map[sluice.ModelID][]sluice.Limit, len(p.PerModel)+len(f.PerModel))
	maps.Copy(byModel, p.PerModel)
	for m, ls := range f.PerModel {
		id := sluice.ModelID(m)
		if byModel[id], err = ls.apply(byModel[id], "per_model."+m); err != nil {
			return err
		}
		if len(byModel[id]) == 0 {
			delete(byModel, id)
		}
	}
	p.PerModel = byModel
	return nil
}

// The inputs and outputs of the plan operations. Those that are embedded are
// exported because the library reads no parameter of an unexported one.
type (
	// PlanPath is the plan that a path names.
	PlanPath struct {
		Plan string `path:"plan" maxLength:"64"`
	}
	// Mutation is what every change takes.
	Mutation struct {
		DryRun bool `query:"dry_run" doc:"Check everything and answer alike, but change nothing"`
	}
	createPlanIn struct {
		Mutation
		Body struct {
			ID string `json:"id" maxLength:"64" doc:"1 to 64 of a-z, 0-9, dot, underscore and hyphen"`
			PlanFields
		}
	}
	updatePlanIn struct {
		PlanPath
		Mutation
		Body PlanFields
	}
	planRef struct {
		PlanPath
		Mutation
	}
	planOut  struct{ Body Plan }
	plansOut struct {
		Body struct {
			Plans []Plan `json:"plans"`
		}
	}
	noneOut struct{}
)

func (a *API) registerPlans(api huma.API) {
	tags := []string{"plans"}
	register(a, api, huma.Operation{OperationID: "list-plans", Method: http.MethodGet, Path: "/admin/v1/plans", Summary: "List plans", Tags: tags}, a.listPlans)
	register(a, api, huma.Operation{OperationID: "show-plan", Method: http.MethodGet, Path: "/admin/v1/plans/{plan}", Summary: "Show a plan", Tags: tags, Errors: []int{404}},
		func(ctx context.Context, in *PlanPath) (*planOut, error) {
			p, err := a.records.plan(ctx, sluice.PlanID(in.Plan))
			return &planOut{Body: planView(&p)}, err
		})
	register(a, api, huma.Operation{OperationID: "create-plan", Method: http.MethodPost, Path: "/admin/v1/plans", Summary: "Create a plan", Tags: tags, DefaultStatus: 201, Errors: []int{409}}, a.createPlan)
	register(a, api, huma.Operation{OperationID: "update-plan", Method: http.MethodPatch, Path: "/admin/v1/plans/{plan}", Summary: "Change a plan", Tags: tags, Errors: []int{404, 409}}, a.updatePlan)
	register(a, api, huma.Operation{OperationID: "delete-plan", Method: http.MethodDelete, Path: "/admin/v1/plans/{plan}", Summary: "Delete a plan that no tenant has", Tags: tags, DefaultStatus: 204, Errors: []int{404, 409}}, a.deletePlan)
}

func (a *API) listPlans(ctx context.Context, _ *struct{}) (*plansOut, error) {
	all, err := a.records.plans(ctx)
	if err != nil {
		return nil, err
	}
	out := &plansOut{}
	out.Body.Plans = make([]Plan, 0, len(all))
	for i := range all {
		out.Body.Plans = append(out.Body.Plans, planView(&all[i]))
	}
	return out, nil
}

func (a *API) createPlan(ctx context.Context, in *createPlanIn) (*planOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	if err := sluice.ValidName(in.Body.ID); err != nil {
		return nil, sluice.Invalid("id", "is wrong: %s", err)
	}
	p := auth.DefaultPlan(sluice.PlanID(in.Body.ID))
	old, err := a.records.plan(ctx, p.ID)
	switch {
	case err == nil:
		if err := owned("plan", in.Body.ID, old.Origin); err != nil {
			return nil, err
		}
		return nil, exists("plan", in.Body.ID)
	case sluice.AsError(err).Kind != sluice.KindNotFound:
		return nil, err
	}
	if err := in.Body.PlanFields.apply(&p); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&p.Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	if !in.DryRun {
		if err := a.o.Plans.CreatePlan(ctx, p); err != nil {
			return nil, err
		}
		if p, err = a.planChanged(ctx, p.ID, "plan created"); err != nil {
			return nil, err
		}
	}
	return a.planAnswer(&p, &in.Body.PlanFields), nil
}

func (a *API) updatePlan(ctx context.Context, in *updatePlanIn) (*planOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	p, err := a.records.plan(ctx, sluice.PlanID(in.Plan))
	if err != nil {
		return nil, err
	}
	if err := owned("plan", in.Plan, p.Origin); err != nil {
		return nil, err
	}
	if err := in.Body.apply(&p); err != nil {
		return nil, err
	}
	if err := a.applyHooks(&p.Hooks, in.Body.Hooks); err != nil {
		return nil, err
	}
	if !in.DryRun {
		if err := a.o.Plans.UpdatePlan(ctx, p); err != nil {
			return nil, err
		}
		if p, err = a.planChanged(ctx, p.ID, "plan updated"); err != nil {
			return nil, err
		}
	}
	return a.planAnswer(&p, &in.Body), nil
}

// planChanged makes a change take effect and reads what the store has now.
func (a *API) planChanged(ctx context.Context, id sluice.PlanID, what string) (auth.Plan, error) {
	if err := a.changed(ctx, what, string(id)); err != nil {
		return auth.Plan{}, err
	}
	return a.records.plan(ctx, id)
}

// planAnswer is what has become of a change, with what looks wrong in it.
func (a *API) planAnswer(p *auth.Plan, f *PlanFields) *planOut {
	out := &planOut{Body: planView(p)}
	out.Body.Warned = a.unknownPerModel(f).and(a.idleConsent(f.Degrade, p.Models))
	return out
}

func (a *API) deletePlan(ctx context.Context, in *planRef) (*noneOut, error) {
	a.records.mu.Lock()
	defer a.records.mu.Unlock()
	p, err := a.records.plan(ctx, sluice.PlanID(in.Plan))
	if err != nil {
		return nil, err
	}
	if err := owned("plan", in.Plan, p.Origin); err != nil {
		return nil, err
	}
	tenants, err := a.records.tenants(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tenants {
		if tenants[i].Plan == p.ID {
			return nil, &sluice.Error{
				Kind: sluice.KindConflict, Reason: sluice.InvalidRequest,
				Msg: fmt.Sprintf("plan %q is in use by tenant %q", p.ID, tenants[i].ID), Hint: "give the tenant another plan first",
			}
		}
	}
	if in.DryRun {
		return &noneOut{}, nil
	}
	if err := a.o.Plans.DeletePlan(ctx, p.ID); err != nil {
		return nil, err
	}
	return &noneOut{}, a.changed(ctx, "plan deleted", in.Plan)
}
