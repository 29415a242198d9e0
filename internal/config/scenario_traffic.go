package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/tabletop"
)

// Traffic is one source of requests.
type Traffic struct {
	Name      string        `json:"name,omitempty" jsonschema:"in reports and events, unique; the tenant's if left out"`
	Tenant    string        `json:"tenant" jsonschema:"a tenant of the gateway's configuration"`
	Project   string        `json:"project,omitempty" jsonschema:"a project of the tenant; default if left out"`
	Model     string        `json:"model,omitempty" jsonschema:"what is asked for; may be left out where there is one model"`
	Dialect   Tongue        `json:"dialect,omitempty" jsonschema:"what the client speaks: openai, anthropic or gemini"`
	Class     *sluice.Class `json:"class,omitempty" jsonschema:"how requests wait; the plan's class if left out"`
	Task      string        `json:"task,omitempty" jsonschema:"label of the requests"`
	Arrivals  Arrivals      `json:"arrivals" jsonschema:"when they come: 5/s, {gamma: {rate: 5/s, cv: 4}}, {weibull: …}, {even: 5/s} or {trace: {…}}"`
	Start     Duration      `json:"start,omitempty" jsonschema:"the first moment"`
	Stop      Duration      `json:"stop,omitempty" jsonschema:"the last; the scenario's length if left out"`
	Day       *Day          `json:"day,omitempty" jsonschema:"the rate swings"`
	Pulse     *Pulse        `json:"pulse,omitempty" jsonschema:"the rate is on and off"`
	Input     *Lengths      `json:"input,omitempty" jsonschema:"tokens of a prompt: 1500, {p50: 1k, p99: 8k}, {uniform: [100, 2k]}, {quantiles: …} or {mix: …}; a trace has its own"`
	Output    *Lengths      `json:"output,omitempty" jsonschema:"true tokens of an answer, likewise; what decides never sees them"`
	MaxTokens Count         `json:"max_tokens,omitempty" jsonschema:"the bound that the client sends; none if left out"`
	Prefix    *Prefix       `json:"prefix,omitempty" jsonschema:"what prompts have in common"`
	Client    *Client       `json:"client,omitempty" jsonschema:"how the caller behaves"`
	Target    *Target       `json:"target,omitempty" jsonschema:"what makes a request good"`
}

func (t *Traffic) setDefaults() { t.Dialect = "openai" }

// Tongue is what a client speaks.
type Tongue string

func (Tongue) words() []string { return []string{"openai", "anthropic", "gemini"} }

// Day is a rate that swings like a cosine.
type Day struct {
	Period Duration `json:"period" jsonschema:"of one swing, such as 24h"`
	Swing  Share    `json:"swing" jsonschema:"how far the rate goes below and above its mean"`
	Peak   Duration `json:"peak,omitempty" jsonschema:"when it is highest"`
}

// Pulse is a rate that is on and off.
type Pulse struct {
	On  Duration `json:"on" jsonschema:"how long arrivals pass"`
	Off Duration `json:"off" jsonschema:"how long none does"`
}

// Prefix is what prompts have in common.
type Prefix struct {
	Tokens Count `json:"tokens" jsonschema:"of each prompt"`
	Groups Count `json:"groups,omitempty" jsonschema:"how many different ones there are; 1 if left out"`
}

// Target is what a request must meet to be good.
type Target struct {
	TTFT Duration `json:"ttft,omitempty" jsonschema:"until the first token, waits and resubmissions included"`
	TPOT Duration `json:"tpot,omitempty" jsonschema:"mean time of an output token after the first"`
	E2E  Duration `json:"e2e,omitempty" jsonschema:"until the last token"`
}

// Client is how a caller behaves.
type Client struct {
	Patience Duration       `json:"patience,omitempty" jsonschema:"it leaves where no first token has come by then; never if left out"`
	Cancel   *Cancel        `json:"cancel,omitempty" jsonschema:"a share of requests that it leaves anyhow"`
	Retries  *Resubmissions `json:"retries,omitempty" jsonschema:"what it does with a refusal or a failure; nothing if left out"`
	MaxWait  *Duration      `json:"max_wait,omitempty" jsonschema:"sluice-max-wait; 0s does not queue"`
	Streams  Count          `json:"streams,omitempty" jsonschema:"most of its requests at a time: what comes beyond waits at the client"`
}

// Cancel is a share of requests that the client leaves.
type Cancel struct {
	Share  Share    `json:"share" jsonschema:"of its requests"`
	Within Duration `json:"within" jsonschema:"at a random moment up to so long after submission"`
}

// Resubmissions is what a client does with a refusal or a failure.
type Resubmissions struct {
	Max     Count    `json:"max" jsonschema:"resubmissions of a request"`
	Backoff Duration `json:"backoff,omitempty" jsonschema:"wait before the first"`
	Factor  float64  `json:"factor,omitempty" jsonschema:"of each further wait to the one before"`
	Cap     Duration `json:"cap,omitempty" jsonschema:"longest wait"`
	Jitter  Share    `json:"jitter,omitempty" jsonschema:"part of a wait that is drawn at random"`
	Honour  bool     `json:"honour,omitempty" jsonschema:"wait at least as long as Retry-After says"`
}

func (r *Resubmissions) setDefaults() {
	*r = Resubmissions{Backoff: Duration(time.Second), Factor: 2, Cap: Duration(30 * time.Second), Jitter: 500}
}

// traffic compiles the sources.
func (r *reader) traffic() {
	r.sources = make(map[string]int)
	if len(r.in.Traffic) == 0 && !r.brokenAt("traffic") {
		r.fail("traffic", "add a source: - {tenant: NAME, arrivals: 5/s, input: 1k, output: 200}", "nobody asks for anything")
	}
	for i := range r.in.Traffic {
		r.source(index("traffic", i), &r.in.Traffic[i])
	}
	for _, name := range sorted(r.o.Traces) {
		if _, ok := r.sources[name]; !ok {
			r.elsewhere = append(r.elsewhere, Problem{File: r.d.file, Cause: fmt.Sprintf("there is no source %q to give a trace", name), Fix: suggest(name, sorted(r.sources))})
		}
	}
}

func (r *reader) source(at string, in *Traffic) {
	out := tabletop.Source{
		Name: cmp.Or(in.Name, in.Tenant), Tenant: sluice.TenantID(in.Tenant), Project: sluice.ProjectID(cmp.Or(in.Project, string(sluice.DefaultProject))),
		Dialect: string(in.Dialect), Model: r.model(at, in.Model), Task: in.Task,
	}
	if err := sluice.ValidName(out.Name); err != nil && out.Name != "" {
		r.fail(join(at, "name"), "rename it", "%s", err)
	}
	if _, twice := r.sources[out.Name]; twice {
		r.fail(join(at, "name"), "give it a name of its own: name: "+out.Name+"-2", "two sources are named %q", out.Name)
	}
	r.sources[out.Name] = len(r.out.Sources)
	r.who(at, in)
	if _, err := sluice.ParseTask(in.Task); err != nil {
		r.fail(join(at, "task"), "use at most 64 of a-z, 0-9, dot, hyphen and underscore", "%q is not a task", in.Task)
	}
	out.Arrivals = r.arrivals(at, out.Name, in)
	if r.o.Traces[out.Name] == "" { // else they are the trace's
		out.Input, out.Output = r.both(at, in, out.Arrivals.Process == tabletop.Trace)
	}
	if in.Prefix != nil {
		out.Prefix = tabletop.Prefix{Tokens: sluice.Tokens(in.Prefix.Tokens), Groups: max(int(in.Prefix.Groups), 1)}
		if in.Prefix.Groups > maxGroups {
			r.fail(join(join(at, "prefix"), "groups"), "write at most 1M", "there are too many")
		}
	}
	if in.Client != nil {
		out.Client = r.client(join(at, "client"), in.Client)
	}
	out.Client.Bound = sluice.Tokens(in.MaxTokens)
	if in.Target != nil {
		out.Target = tabletop.Target{TTFT: time.Duration(in.Target.TTFT), TPOT: time.Duration(in.Target.TPOT), E2E: time.Duration(in.Target.E2E)}
	}
	r.out.Sources = append(r.out.Sources, out)
}

// maxGroups bounds how many different prefixes a source has.
const maxGroups = 1_000_000

// both are the lengths of prompts and answers.
func (r *reader) both(at string, in *Traffic, recorded bool) (input, output tabletop.Lengths) {
	for _, l := range []struct {
		name string
		in   *Lengths
		out  *tabletop.Lengths
	}{{"input", in.Input, &input}, {"output", in.Output, &output}} {
		path := join(at, l.name)
		switch {
		case l.in != nil && recorded:
			r.fail(path, "remove it, or take the times from elsewhere", "a trace says the lengths of its requests")
		case l.in != nil:
			*l.out = r.lengths(path, l.in)
		case !recorded && !r.brokenAt(path) && !r.brokenAt(join(at, "arrivals")):
			r.fail(path, "add it: a number of tokens, or a law such as {p50: 1k, p99: 8k}", "is missing")
		}
	}
	return input, output
}

// model is the model that is asked for.
func (r *reader) model(at, name string) sluice.ModelID {
	models := r.policies[0].config.Models
	if name == "" && len(models) == 1 {
		name = sorted(models)[0]
	}
	path := join(at, "model")
	switch {
	case name == "" && !r.brokenAt(path):
		r.fail(path, "add it: "+suggest("", sorted(models)), "is missing, and there are several models")
	case name != "" && models[name] == nil:
		r.fail(path, suggest(name, sorted(models)), "model %q is not declared in gateway", name)
	}
	return sluice.ModelID(name)
}

// who checks tenant and project.
func (r *reader) who(at string, in *Traffic) {
	tenants := r.policies[0].config.Tenants
	t := tenants[in.Tenant]
	switch {
	case in.Tenant == "":
	case t == nil:
		r.fail(join(at, "tenant"), suggest(in.Tenant, sorted(tenants))+" Or declare it: gateway: {tenants: {"+in.Tenant+": {plan: …}}}", "tenant %q is not declared in gateway", in.Tenant)
	case in.Project != "" && in.Project != string(sluice.DefaultProject) && t.Projects[in.Project] == nil:
		r.fail(join(at, "project"), suggest(in.Project, sorted(t.Projects)), "project %q is not declared at tenant %q", in.Project, in.Tenant)
	}
}

// principals finds, for each policy, who the sources are and whether they may ask
// for what they ask for.
func (r *reader) principals() {
	for p := range r.policies {
		for t := range r.policies[p].tables {
			r.policies[p].tables[t].Principals = r.principalsOf(&r.policies[p], t)
		}
	}
	r.out.Policies = nil
	for _, p := range r.policies {
		r.out.Policies = append(r.out.Policies, p.tables[0])
	}
}

// principalsOf are the sources' principals under one version of a policy. Of the
// first one it takes the classes too.
func (r *reader) principalsOf(p *policy, version int) []sluice.Principal {
	records := p.records[version]
	for i := range r.out.Sources {
		s := &r.out.Sources[i]
		id := keyOf(s)
		if !slices.ContainsFunc(records.Keys, func(k auth.Key) bool { return k.ID == id }) {
			records.Keys = append(records.Keys, auth.Key{ID: id, Tenant: s.Tenant, Project: s.Project})
		}
	}
	snapshot := auth.Compile(auth.CompileOptions{}, records)
	out := make([]sluice.Principal, len(r.out.Sources))
	for i := range r.out.Sources {
		s, at := &r.out.Sources[i], index("traffic", i)
		who, err := snapshot.Principal(keyOf(s))
		if r.brokenAt(join(at, "tenant")) || r.brokenAt(join(at, "project")) {
			continue
		}
		if err != nil {
			r.fail(at, "", "under policy %s, %s", p.name, sluice.AsError(err).Msg)
			continue
		}
		out[i] = who
		if !who.Policy.Allows(s.Model) {
			r.fail(join(at, "model"), "name it in the models of the plan or the tenant", "under policy %s, tenant %q may not ask for model %q", p.name, s.Tenant, s.Model)
		}
		if p.name != PolicySluice || version > 0 {
			continue
		}
		s.Class = who.Policy.Class
		if c := r.in.Traffic[i].Class; c != nil {
			s.Class = *c
		}
		if !who.Policy.AllowsClass(s.Class) {
			r.fail(join(at, "class"), "ask for a lower class, or list it in the plan's classes", "tenant %q may not ask for class %s", s.Tenant, s.Class)
		}
	}
	return out
}

// keyOf names the key that a source is given.
func keyOf(s *tabletop.Source) sluice.KeyID {
	return sluice.KeyID(string(s.Tenant) + "/" + string(s.Project))
}

func (r *reader) client(at string, in *Client) tabletop.Client {
	out := tabletop.Client{Patience: time.Duration(in.Patience), Streams: int(in.Streams)}
	if in.MaxWait != nil {
		out.MaxWait = time.Duration(*in.MaxWait)
		if out.MaxWait == 0 {
			out.MaxWait = -1
		}
	}
	if c := in.Cancel; c != nil {
		out.Leave = tabletop.Leave{Permille: int64(c.Share), After: time.Duration(c.Within)}
	}
	if t := in.Retries; t != nil {
		path := join(at, "retries")
		r.between(join(path, "factor"), t.Factor, 1, 100)
		r.between(join(path, "max"), float64(t.Max), 1, 100)
		if t.Backoff == 0 && !t.Honour {
			r.fail(join(path, "backoff"), "write a time such as 500ms, or honour: true", "0s would ask again at the same moment")
		}
		out.Retry = tabletop.Retry{
			Max: int(t.Max), Backoff: time.Duration(t.Backoff), Factor: t.Factor, Cap: time.Duration(max(t.Cap, t.Backoff)),
			Jitter: float64(t.Jitter) / 1000, Honour: t.Honour,
		}
	}
	return out
}

// arrivals compiles when a source's requests come.
func (r *reader) arrivals(at, name string, in *Traffic) tabletop.Arrivals {
	a, path := &in.Arrivals, join(at, "arrivals")
	out := tabletop.Arrivals{Start: time.Duration(in.Start), Stop: time.Duration(in.Stop)}
	if in.Stop > 0 && in.Stop <= in.Start {
		r.fail(join(at, "stop"), "write a moment after start", "%s is not after %s", in.Stop, in.Start)
	}
	r.rhythm(at, in, &out)
	if file := r.o.Traces[name]; file != "" {
		t := Trace{}
		if a.Trace != nil {
			t = *a.Trace
			t.Columns = nil // those of the file that it takes the place of
		}
		t.Shape, t.File = "", file
		out.Process, out.Rate, out.Loop = tabletop.Trace, cmp.Or(t.Scale, 1), t.Loop
		out.Rows = r.given(file, &t, r.playable(name, in))
		return out
	}
	if !r.onlyOne(path, map[string]bool{"poisson": a.Poisson != nil, "even": a.Even != nil, "gamma": a.Gamma != nil, "weibull": a.Weibull != nil, "trace": a.Trace != nil}) {
		return out
	}
	switch {
	case a.Poisson != nil:
		out.Process, out.Rate = tabletop.Poisson, float64(*a.Poisson)
	case a.Even != nil:
		out.Process, out.Rate = tabletop.Even, float64(*a.Even)
	case a.Gamma != nil:
		out.Process, out.Rate, out.CV = tabletop.Gamma, float64(a.Gamma.Rate), a.Gamma.CV
		r.between(join(join(path, "gamma"), "cv"), a.Gamma.CV, 0.01, 100)
	case a.Weibull != nil:
		out.Process, out.Rate, out.CV = tabletop.Weibull, float64(a.Weibull.Rate), a.Weibull.CV
		r.between(join(join(path, "weibull"), "cv"), a.Weibull.CV, 0.01, 100)
	default:
		out.Process, out.Rate, out.Loop = tabletop.Trace, cmp.Or(a.Trace.Scale, 1), a.Trace.Loop
		out.Rows = r.trace(join(path, "trace"), a.Trace, r.playable(name, in))
		r.loops(join(path, "trace"), &out)
	}
	return out
}

// loops holds a recording that begins again to the rate of any other source: a short
// one would let hardly any time pass.
func (r *reader) loops(at string, a *tabletop.Arrivals) {
	n := len(a.Rows)
	if n == 0 || !a.Loop {
		return
	}
	rate := float64(n) * a.Rate
	if span := a.Rows[n-1].At - a.Rows[0].At; span > 0 {
		rate = float64(n-1) / span.Seconds() * a.Rate
	}
	if rate > maxRate {
		r.fail(at, "lower scale, mend the unit of its times, or loop a longer trace", "the trace, again and again, is %.3g requests/s, which is too much for one source", rate)
	}
}

// playable is the most of a recording that a run can come to: its length, as fast as
// the trace's scale, events and the swing of a day let it be played.
func (r *reader) playable(name string, in *Traffic) time.Duration {
	speed := 1.0
	faster := func(events []Event) {
		for i := range events {
			if c := events[i].Traffic; c != nil && c.Rate != nil && (len(c.Sources) == 0 || slices.Contains(c.Sources, name)) {
				speed = max(speed, *c.Rate)
			}
		}
	}
	faster(r.in.Events)
	for _, act := range r.in.Acts {
		if act != nil {
			faster(act.Events)
		}
	}
	if t := in.Arrivals.Trace; t != nil {
		speed *= cmp.Or(t.Scale, 1)
	}
	if in.Day != nil {
		speed *= 1 + float64(in.Day.Swing)/1000
	}
	return time.Duration(min(r.out.Length.Seconds()*speed, maxPlayable) * float64(time.Second))
}

const maxPlayable = 1e9 // seconds

// rhythm is what a rate does over time.
func (r *reader) rhythm(at string, in *Traffic, out *tabletop.Arrivals) {
	if d := in.Day; d != nil {
		out.Day = tabletop.Day{Period: time.Duration(d.Period), Swing: float64(d.Swing) / 1000, Peak: time.Duration(d.Peak)}
		if d.Period < Duration(time.Second) {
			r.fail(join(join(at, "day"), "period"), "write a time such as 24h", "%s is no day", d.Period)
		}
	}
	if p := in.Pulse; p != nil {
		out.Pulse = tabletop.Pulse{On: time.Duration(p.On), Off: time.Duration(p.Off)}
		if p.On == 0 && !r.brokenAt(join(at, "pulse")) {
			r.fail(join(join(at, "pulse"), "on"), "write a time such as 10s", "0s lets nothing pass")
		}
	}
}
