package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice"
	"sluice/internal/auth/jwt"
	"sluice/internal/quota"
	"sluice/internal/route"
)

//go:generate go test . -run IsCurrent -update

// SchemaJSON is the JSON Schema of the configuration file, for editors. Schema
// makes it.
//
//go:embed schema.json
var SchemaJSON []byte

// Schema makes the JSON Schema of the configuration file from the struct tags.
func Schema() ([]byte, error) { return schemaOf[Config]("Sluice configuration", typeSchemas()) }

// schemaOf makes the JSON Schema of a file, in which types that read text stand as
// definitions.
func schemaOf[T any](title string, types map[reflect.Type]*jsonschema.Schema) ([]byte, error) {
	defs, refs := make(map[string]*jsonschema.Schema), make(map[reflect.Type]*jsonschema.Schema)
	for t, s := range types {
		name := strings.ToLower(t.Name())
		defs[name], refs[t] = s, &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: refs})
	if err != nil {
		return nil, fmt.Errorf("make schema: %w", err)
	}
	s.Defs = defs
	relax(reflect.TypeFor[T](), s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(out, '\n'), nil
}

// ref is what a value may be instead: a reference to the environment.
const ref = `\$\{[A-Za-z_][A-Za-z0-9_]*\}`

func pattern(p, example string) *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "integer", "number"}, Pattern: "^(" + p + "|.*" + ref + ".*)$", Examples: []any{example}}
}

func words(list ...string) *jsonschema.Schema {
	return pattern(strings.Join(list, "|"), list[0])
}

// typeSchemas are the schemas of types that read text.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	const amount = `[0-9][0-9_]*(\.[0-9]{1,3})?`
	rates := &jsonschema.Schema{}
	limits := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range limitFields {
		p := pattern(amount+"[kKMG]?|none", "600")
		if f.of.Dimension == sluice.Spend {
			p = pattern(dollars+"|none", "$100")
		}
		p.Description = f.doc
		limits.Properties[f.name] = p
		limits.PropertyOrder = append(limits.PropertyOrder, f.name)
	}
	run := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range quota.RunBounds {
		p := pattern(amount+"[kKMG]?|none", "50")
		switch f.Of {
		case sluice.Spend:
			p = pattern(dollars+"|none", "$2")
		case sluice.RunTime:
			p = pattern(span+"|none", "10m")
		}
		p.Description = f.Doc
		run.Properties[f.Name] = p
		run.PropertyOrder = append(run.PropertyOrder, f.Name)
	}
	if r, err := jsonschema.For[Rates](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Money](): money(), reflect.TypeFor[Percent](): pattern("(100|[0-9]{1,2})%", "50%"),
	}}); err == nil {
		rates = r
	}
	units := &jsonschema.Schema{}
	if u, err := jsonschema.For[UnitPrice](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[Money](): money()}}); err == nil {
		units = u
	}
	ceiling := &jsonschema.Schema{Type: "object", Required: []string{"ceiling"}, Properties: map[string]*jsonschema.Schema{"ceiling": rates}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	plainFallback := &jsonschema.Schema{}
	type fallback Fallback // without its method
	if f, err := jsonschema.For[fallback](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[Time](): moment(), reflect.TypeFor[Risk](): words(Risk("").words()...)}}); err == nil {
		plainFallback = f
	}
	plainPool := &jsonschema.Schema{}
	type modelPool ModelPool // without its method
	if f, err := jsonschema.For[modelPool](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Count](): pattern(amount+"[kKMG]?", "50k"), reflect.TypeFor[Percent](): pattern("(100|[0-9]{1,2})%", "60%"), reflect.TypeFor[sluice.Class](): words(classWords...),
		reflect.TypeFor[Risk](): words(Risk("").words()...),
	}}); err == nil {
		relax(reflect.TypeFor[modelPool](), f)
		plainPool = f
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():     pattern(span+"|0", "15s"),
		reflect.TypeFor[Count]():        pattern(amount+"[kKMG]?", "50k"),
		reflect.TypeFor[Bytes]():        pattern(amount+" ?([KMG]i?B|B)?", "32MiB"),
		reflect.TypeFor[Percent]():      pattern("(100|[0-9]{1,2})%", "60%"),
		reflect.TypeFor[Money]():        money(),
		reflect.TypeFor[Address]():      pattern(".*:[0-9]+", "127.0.0.1:8080"),
		reflect.TypeFor[Time]():         moment(),
		reflect.TypeFor[Secret]():       {Type: "string", Examples: []any{"${NAME}", "file:/run/secrets/name"}},
		reflect.TypeFor[LogLevel]():     words(logLevels...),
		reflect.TypeFor[LogFormat]():    words(LogFormat("").words()...),
		reflect.TypeFor[Dialect]():      words(Dialect("").words()...),
		reflect.TypeFor[Tongue]():       words(Tongue("").words()...),
		reflect.TypeFor[Service]():      words(Service("").words()...),
		reflect.TypeFor[Engine]():       words(Engine("").words()...),
		reflect.TypeFor[Charge]():       words(Charge("").words()...),
		reflect.TypeFor[LostCharge]():   words(LostCharge("").words()...),
		reflect.TypeFor[Lend]():         words(Lend("").words()...),
		reflect.TypeFor[PoolChoice]():   words(route.Choices()...),
		reflect.TypeFor[Policy]():       words(Policy("").words()...),
		reflect.TypeFor[Spend]():        words(Spend("").words()...),
		reflect.TypeFor[Sync]():         words(Sync("").words()...),
		reflect.TypeFor[sluice.Class](): words(classWords...),
		reflect.TypeFor[LimitMode]():    words(LimitMode("").words()...),
		reflect.TypeFor[EngineField]():  words(EngineField("").words()...),
		reflect.TypeFor[Translation]():  words(Translation("").words()...),
		reflect.TypeFor[ForeignIDs]():   words(ForeignIDs("").words()...),
		reflect.TypeFor[FetchMedia]():   words(FetchMedia("").words()...),
		reflect.TypeFor[CacheStore]():   words(CacheStore("").words()...),
		reflect.TypeFor[CacheFor]():     words(CacheFor("").words()...),
		reflect.TypeFor[Limits]():       limits,
		reflect.TypeFor[RunLimits]():    run,
		reflect.TypeFor[Price]():        {AnyOf: []*jsonschema.Schema{words("free"), rates, units}},
		reflect.TypeFor[Drain]():        drainSchema(),
		reflect.TypeFor[Ladder]():       ladderSchema(),
		reflect.TypeFor[Degrade]():      degradeSchema(),
		reflect.TypeFor[UnknownPrice](): {AnyOf: []*jsonschema.Schema{words("refuse"), ceiling}},
		reflect.TypeFor[ModelPool]():    {AnyOf: []*jsonschema.Schema{{Type: "string"}, plainPool}},
		reflect.TypeFor[Sticky]():       words(Sticky("").words()...),
		reflect.TypeFor[HedgeAfter]():   pattern(span+`|p(100|[0-9]{1,2})(\.[0-9])?`, "p95"),
		reflect.TypeFor[Prefer]():       words(route.Preferences()...),
		reflect.TypeFor[Risk]():         words(Risk("").words()...),
		reflect.TypeFor[Names]():        {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}},
		reflect.TypeFor[Figure]():       pattern(".+", "30"),
		reflect.TypeFor[Headroom]():     pattern("(100|[0-9]{1,2})%|planner", "30%"),
		reflect.TypeFor[Failover]():     words(Failover("").words()...),
		reflect.TypeFor[APIKey]():       apiKeySchema(),
		reflect.TypeFor[HookStage]():    words(HookStage("").words()...),
		reflect.TypeFor[OnFailure]():    words(OnFailure("").words()...),
		reflect.TypeFor[Redact]():       {AnyOf: []*jsonschema.Schema{words("all"), {Type: "array", Items: words(redactKinds()...)}}},
		reflect.TypeFor[Claim]():        claimSchema(),
		reflect.TypeFor[Algorithm]():    words(jwt.Algorithms...),
		reflect.TypeFor[Fallback]():     {AnyOf: []*jsonschema.Schema{{Type: "string"}, plainFallback}},
	}
}

func money() *jsonschema.Schema {
	return pattern(dollars, "$100")
}

const span = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`

const dollars = `\$?[0-9_]*(\.[0-9]{1,9})?`

func moment() *jsonschema.Schema {
	return pattern(`[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?`, "2026-11-01")
}

// relax makes the schema say what the decoder does about fields that may be
// left out.
func relax(t reflect.Type, s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" || t == "" }); len(s.Types) {
	case 0:
		s.Types = nil
	case 1:
		s.Types, s.Type = nil, s.Types[0]
	}
	switch {
	case t.Kind() == reflect.Map:
		relax(t.Elem(), s.AdditionalProperties)
	case t.Kind() == reflect.Slice && s.Items != nil:
		relax(t.Elem(), s.Items)
	case t.Kind() == reflect.Struct && len(s.Properties) > 0:
		for _, f := range reflect.VisibleFields(t) {
			name := fieldName(f)
			if mayBeLeftOut(f) {
				s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
			}
			relax(f.Type, s.Properties[name])
		}
	}
}

const referenceHead = `# Configuration reference

Generated from the code by ` + "`go generate ./internal/config`" + `; edit the struct tags there.

One YAML file. Unknown and repeated keys are mistakes. ` + "`sluice check FILE`" + ` tells every mistake with line, column, cause and fix, and what is
questionable. A reload that fails changes nothing. What the file declares it owns: plans, tenants and keys of the file are read-only in the API.

For editors, start the file with ` + "`# yaml-language-server: $schema=…/internal/config/schema.json`" + `.

## Values

| value | written as |
|---|---|
| duration | ` + "`250ms`, `15s`, `1h30m`" + ` |
| count | ` + "`600`, `50k`, `1M`, `1.5M`" + ` (decimal) |
| bytes | ` + "`512KiB`, `32MiB`, `1GB`" + ` |
| share | ` + "`60%`" + ` |
| money | ` + "`$100`, `$0.50`" + `: US dollars, at most nine decimals |
| moment | ` + "`2026-11-01` (UTC midnight), `2026-11-01T12:00:00Z`" + ` |
| secret | ` + "`${NAME}`, `file:/path`" + `; the credential itself is accepted with a warning |
| class | ` + "`interactive`, `standard`, `batch`" + ` |
| price | ` + "`{input: $0.10, output: $0.40}` in dollars per million tokens, or `free`" + ` |
| unknown price | ` + "`refuse`, or `{ceiling: {input: $15, output: $75}}`" + ` |

` + "`${NAME}`" + ` in any value is the environment variable, also inside of ` + "`{…}`" + `. YAML anchors, aliases and ` + "`<<`" + ` work; tags do not.

A price is looked for at the backend, in ` + "`prices`" + `, at the provider, and in the built-in catalogue, in this order. Where there is none,
` + "`unknown_price`" + ` decides, at the backend, the provider, and the top: a request is refused or charged the ceiling, never free.

Limits of a tenant, project or key replace those of the same name that its plan gives, and those of ` + "`per_model`" + ` for a model those of ` + "`*`" + `;
` + "`none`" + ` lifts one. Lists of models only ever narrow.

## Sharing a pool

` + "```yaml" + `
pools:
  chat-eu:
    classes:
      interactive: {share: 60%, headroom: 10%}   # 10% that no other class may occupy
      standard: {share: 30%}
      batch: {share: 10%, ceiling: 50%}          # never more than half of the pool
    contracts:
      - {tenant: acme, concurrency: 8, kv_tokens: 50k, lend: short, reclaim: 2s}
    queue: {requests: 1000, per_tenant: 50%}
    work: {input: 1, output: 2}
` + "```" + `

Classes share the pool, tenants their class by the weight of their plan, and projects their tenant equally: by work, which is uncached input tokens and output
tokens by the weights of ` + "`work`" + `. Whoever uses less than its share lends the rest; nothing is earned by idling.

- A pool that says nothing has the shares 60%, 30% and 10%, and 10% headroom for interactive. Shares add up to at most 100%. What the classes that name a share leave is
  split between those that do not in the same proportion: ` + "`{interactive: {share: 80%}}`" + ` leaves standard 15% and batch 5%. Headroom and ceiling of a class keep their defaults
  unless it names them. Parts of the pool's requests are rounded down: 10% headroom of less than 10 is none.
- Contracts and headroom leave some of the pool's requests and KV tokens to share, or the file is refused. A contract may be for a tenant that does not exist yet, with a warning.
- ` + "`policy: naive`" + ` leaves all of it out, and limits of tokens, concurrency and KV memory: requests and spend are limited, every pool serves in order of arrival at the
  backend with the fewest requests by weight, also one that fails all the time, and a failed attempt is followed by up to two others without a budget. What backends hold, and the
  ceilings of a single request, stay.
  A reload may change shares, contracts and the policy: what waits keeps its arrival and its deadline, what runs goes on. A limit of concurrency or KV tokens that is
  raised, lifted, or refuses no more (` + "`limits_mode`" + `) is so for what waits too; of all else it keeps what it came with.

## Where requests go

A request goes only to backends that can serve it (` + "`capabilities`" + `, for what the catalogue and the engine do not tell), that its tenant may use (` + "`regions`, `providers`" + `), and after a failure
to another failure domain first (` + "`domain`" + `). A fallback needs ` + "`evaluated`" + `, or ` + "`allow_unevaluated: true`" + `. [How requests are routed](routing.md).

## Retries

` + "```yaml" + `
retries: {budget: 10%, minimum: 1, attempts: 4}   # the default
` + "```" + `

An attempt that failed before its first content may be followed by another, at a backend that has not failed the request yet. It needs room in three budgets: of all attempts,
of its tenant, and of the backend that it is given. Each is 10 % of the first attempts of the last ten seconds, or one per second if that is more. There is none while the breaker
of the backend is open, nor while the pool sheds. A request that gets no further attempt ends with the error of its last one. [What that means under load](operations/retries.md), and [how a backend is left alone and comes back](operations/health.md).
`
