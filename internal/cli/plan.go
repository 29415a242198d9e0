package cli

import (
	"context"
	"net/http"
	"strconv"

	"sluice/internal/admin"
)

const plansPath = "/admin/v1/plans"

type planCmd struct {
	List   planListCmd   `cmd:"" help:"List plans."`
	Show   planShowCmd   `cmd:"" help:"Show a plan."`
	Create planCreateCmd `cmd:"" help:"Create a plan."`
	Update planUpdateCmd `cmd:"" help:"Change a plan; what is not named stays."`
	Delete planDeleteCmd `cmd:"" help:"Delete a plan that no tenant has."`
}

type planFields struct {
	Class           *string           `enum:"interactive,standard,batch" help:"Class of a request that asks for none: ${enum}." placeholder:"CLASS"`
	AllowClass      []string          `help:"Further classes that a request may ask for." placeholder:"CLASS"`
	Weight          *int64            `help:"Share between tenants, at least 1."`
	Model           []string          `help:"Allowed public model names; none allows all." placeholder:"MODEL"`
	MaxWait         *string           `help:"Longest time in a queue, such as 10s." placeholder:"D"`
	MaxOutput       *int64            `help:"Output bound of a request that names none, in tokens." placeholder:"N"`
	Spend           *string           `enum:"hard,soft" help:"hard: a budget is never exceeded; soft: it may show debt." placeholder:"MODE"`
	BudgetStatus    *int              `help:"Status of a spent budget in the OpenAI dialect: 402 or 429." placeholder:"N"`
	JournalSync     *string           `enum:"always,group" help:"Whether a request waits for the disk: ${enum}." placeholder:"MODE"`
	Limit           map[string]string `mapsep:"," help:"Of the whole tenant, such as requests_per_minute=600 or spend_per_month=$$100; none removes it." placeholder:"NAME=AMOUNT"`
	PerKeyLimit     map[string]string `mapsep:"," help:"Of each key." placeholder:"NAME=AMOUNT"`
	PerProjectLimit map[string]string `mapsep:"," help:"Of each project." placeholder:"NAME=AMOUNT"`
	PerModelLimit   modelLimits       `mapsep:"," help:"Of each tenant on one model, such as fast:concurrency=8; of each model by itself with * as the model." placeholder:"MODEL:NAME=AMOUNT"`
	PerUserLimit    map[string]string `mapsep:"," help:"Of each end user of the tenant." placeholder:"NAME=AMOUNT"`
	PerRunLimit     map[string]string `mapsep:"," help:"Of each run: steps, input_tokens, output_tokens, tokens, spend, time." placeholder:"NAME=AMOUNT"`
	InputCeiling    *int64            `help:"Most input tokens of one request; 0 for no bound." placeholder:"N"`
	OutputCeiling   *int64            `help:"Most output tokens of one request; 0 for no bound." placeholder:"N"`
	residencyFlags
	LimitsMode  *string  `enum:"enforce,shadow,off" help:"What becomes of what does not fit: ${enum}." placeholder:"MODE"`
	Translation *string  `enum:",strict,warn" help:"Of requests to backends of another dialect: strict refuses what that cannot carry, warn names it." placeholder:"MODE"`
	ForeignIDs  *string  `name:"foreign-ids" enum:",refuse,allow" help:"Of requests that refer to what a provider keeps, by an id that no answer here has given: refuse them, or allow them." placeholder:"MODE"`
	FetchMedia  *string  `name:"fetch-media" enum:",refuse,allow" help:"Of images and documents by URL, for backends that take bytes alone: allow fetches them, refuse leaves such backends out." placeholder:"MODE"`
	EngineField []string `help:"Member of a body that steers a self-run engine and that requests may have, such as priority; none removes all." placeholder:"FIELD"`
	OutputCache *string  `name:"output-cache" help:"Keep answers, and give them again to the same request: ttl=10m, and behind it for=asked, price=20%, per_user, coalesce=false; empty keeps none." placeholder:"SPEC"`
	Degrade     *string  `help:"Consent to a smaller model while a pool is short of capacity: the model that may serve in place of the one asked for, or off." placeholder:"MODEL"`
	Hooks       []string `name:"hooks" help:"Hooks that look into requests and answers, by name, in order; none removes all." placeholder:"HOOK"`
}

func (f *planFields) fields() admin.PlanFields {
	return admin.PlanFields{
		Class: f.Class, Classes: names(f.AllowClass), Weight: f.Weight, Models: names(f.Model), MaxWait: f.MaxWait, MaxOutput: f.MaxOutput,
		Spend: f.Spend, BudgetStatus: f.BudgetStatus, JournalSync: f.JournalSync,
		Limits: limitsFlag(f.Limit), PerKey: limitsFlag(f.PerKeyLimit), PerProject: limitsFlag(f.PerProjectLimit),
		PerModel: f.PerModelLimit.limits(), PerUser: limitsFlag(f.PerUserLimit), PerRun: admin.RunLimits(limitsFlag(f.PerRunLimit)),
		InputCeiling: f.InputCeiling, OutputCeiling: f.OutputCeiling, LimitsMode: f.LimitsMode, Translation: f.Translation,
		ForeignIDs: f.ForeignIDs, FetchMedia: f.FetchMedia, Degrade: f.Degrade, EngineFields: names(f.EngineField), Hooks: names(f.Hooks), OutputCache: f.OutputCache, Residency: f.residency(),
	}
}

type planListCmd struct {
	connection
	output
}

// Run lists plans.
func (c *planListCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var out struct {
		Plans []admin.Plan `json:"plans"`
	}
	if err := api.get(ctx, plansPath, nil, &out); err != nil {
		return err
	}
	v := view{data: out.Plans, columns: []string{"plan", "class", "weight", "spend", "limits", "declared"}}
	for i := range out.Plans {
		p := &out.Plans[i]
		v.rows = append(v.rows, []string{p.ID, deref(p.Class), count(deref(p.Weight)), deref(p.Spend), limitsText(p.Limits), p.Declared})
	}
	return c.print(env.Stdout, v)
}

func planView(p *admin.Plan) view {
	status := ""
	if p.BudgetStatus != nil {
		status = strconv.Itoa(*p.BudgetStatus)
	}
	output := some(p.MaxOutput)
	rows := pairs("plan", p.ID, "class", deref(p.Class), "classes", join(p.Classes), "weight", count(deref(p.Weight)), "models", join(p.Models), "regions", join(p.Regions), "providers", join(p.Providers), "risk", deref(p.Risk),
		"max wait", deref(p.MaxWait), "max output", output, "spend", deref(p.Spend), "budget status", status, "journal sync", deref(p.JournalSync),
		"limits", limitsText(p.Limits), "per project", limitsText(p.PerProject), "per key", limitsText(p.PerKey), "per user", limitsText(p.PerUser),
		"per run", limitsText(admin.Limits(p.PerRun)), "input ceiling", some(p.InputCeiling), "output ceiling", some(p.OutputCeiling), "limits mode", deref(p.LimitsMode), "translation", deref(p.Translation), "foreign ids", deref(p.ForeignIDs), "fetch media", deref(p.FetchMedia), "degrade", deref(p.Degrade), "engine fields", join(p.EngineFields), "hooks", join(p.Hooks), "output cache", deref(p.OutputCache))
	for _, m := range sortedKeys(p.PerModel) {
		rows = append(rows, []string{"per model " + m, limitsText(p.PerModel[m])})
	}
	rows = append(rows, pairs("declared", p.Declared, "created", stamp(p.Created), "updated", stamp(p.Updated))...)
	return view{data: p, columns: fieldColumns, rows: rows}
}

type planShowCmd struct {
	Plan string `arg:"" help:"Its id."`
	connection
	output
}

// Run shows a plan.
func (c *planShowCmd) Run(ctx context.Context, env *Env) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	var p admin.Plan
	if err := api.get(ctx, plansPath+"/"+seg(c.Plan), nil, &p); err != nil {
		return err
	}
	return c.print(env.Stdout, planView(&p))
}

type planCreateCmd struct {
	Plan string `arg:"" help:"Its id."`
	planFields
	dryRun
	connection
	output
}

// Run creates a plan.
func (c *planCreateCmd) Run(ctx context.Context, env *Env) error {
	body := struct {
		ID string `json:"id"`
		admin.PlanFields
	}{c.Plan, c.fields()}
	p, err := change[admin.Plan](ctx, &c.connection, request{http.MethodPost, plansPath, c.DryRun, body})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "plan %s created", c.Plan)
	warn(env, p.Warnings)
	return c.print(env.Stdout, planView(&p))
}

type planUpdateCmd struct {
	Plan string `arg:"" help:"Its id."`
	planFields
	dryRun
	connection
	output
}

// Run changes a plan.
func (c *planUpdateCmd) Run(ctx context.Context, env *Env) error {
	p, err := change[admin.Plan](ctx, &c.connection, request{http.MethodPatch, plansPath + "/" + seg(c.Plan), c.DryRun, c.fields()})
	if err != nil {
		return err
	}
	c.said(env.Stderr, "plan %s updated", c.Plan)
	warn(env, p.Warnings)
	return c.print(env.Stdout, planView(&p))
}

type planDeleteCmd struct {
	Plan string `arg:"" help:"Its id."`
	dryRun
	connection
}

// Run deletes a plan.
func (c *planDeleteCmd) Run(ctx context.Context, env *Env) error {
	if _, err := change[struct{}](ctx, &c.connection, request{http.MethodDelete, plansPath + "/" + seg(c.Plan), c.DryRun, nil}); err != nil {
		return err
	}
	c.said(env.Stderr, "plan %s deleted", c.Plan)
	return nil
}
