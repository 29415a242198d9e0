package config

import (
	"encoding/json"

	"sluice"
	"sluice/internal/wire"
)

// Config is one configuration file, with its defaults filled in.
type Config struct {
	Listen Address `json:"listen,omitempty" jsonschema:"where the data plane listens"`
	Admin  Admin   `json:"admin,omitzero" jsonschema:"the admin plane: API, console, metrics, health"`
	Data   string  `json:"data,omitempty" jsonschema:"directory of the journal and, by default, of the store"`
	Store  *Secret `json:"store,omitempty" jsonschema:"store of entries and of what the API creates: sqlite:PATH or postgres://…; sqlite below data if left out"`
	Shared *Secret `json:"shared,omitempty" jsonschema:"redis://… for limits that several replicas share; not yet in force"`

	BodyLimit      Bytes       `json:"body_limit,omitempty" jsonschema:"largest request body"`
	EventLimit     Bytes       `json:"event_limit,omitempty" jsonschema:"largest event of a backend's stream, such as one that holds a picture; a stream with a larger one is cut with upstream_too_large. Each stream holds one event at a time. From 64KiB to 32MiB"`
	KeepaliveAfter Duration    `json:"keepalive_after,omitempty" jsonschema:"silence before the first content after which a stream is kept alive; until then status and headers are true"`
	LameDuck       Duration    `json:"lame_duck,omitempty" jsonschema:"how long a stopping gateway answers not ready and still accepts"`
	Drain          Duration    `json:"drain,omitempty" jsonschema:"how long a stopping gateway lets running requests finish"`
	Log            Log         `json:"log,omitzero" jsonschema:"the log on standard error"`
	Keys           Keys        `json:"keys,omitzero" jsonschema:"how keys are checked"`
	Auth           Auth        `json:"auth,omitzero" jsonschema:"who is let in beside keys: bearers of signed tokens"`
	State          State       `json:"state,omitzero" jsonschema:"what is remembered of what providers keep between requests: containers, files, stored answers, by their ids"`
	Batch          Batch       `json:"batch,omitzero" jsonschema:"files and batches: how much of them a tenant may have, and how many of their lines run at a time"`
	Cache          Cache       `json:"cache,omitzero" jsonschema:"where answers are kept, for plans and tenants with output_cache"`
	Idempotency    Idempotency `json:"idempotency,omitzero" jsonschema:"answers that are kept for requests that come again with the same Idempotency-Key"`

	Region  string             `json:"region,omitempty" jsonschema:"where the gateway stands, for locality: {prefer: local}"`
	Regions map[string]*Region `json:"regions,omitempty" jsonschema:"what each region has to spare for requests that are at home in another, by name"`

	Policy       Policy            `json:"policy,omitempty" jsonschema:"fair, or naive, to compare with: what most gateways do. Naive limits requests and spend alone, serves every pool in order of arrival at the backend with the fewest requests by weight, and retries twice: limits of tokens, concurrency and KV memory are not in force, nor are classes, weights, contracts, headroom, localities, breakers and the retry budget"`
	Retries      Retries           `json:"retries,omitzero" jsonschema:"attempts that follow failed ones"`
	Breaker      Breaker           `json:"breaker,omitzero" jsonschema:"when a backend is left alone, and how it comes back"`
	UnknownPrice UnknownPrice      `json:"unknown_price,omitzero" jsonschema:"what happens to a request whose backend has no price: refuse, or {ceiling: RATES}"`
	Prices       map[string]*Price `json:"prices,omitempty" jsonschema:"prices by PROVIDER/MODEL, before those of the built-in catalogue; providers are those of this file, models those of the provider"`
	Limits       Limits            `json:"limits,omitempty" jsonschema:"limits of the whole fleet, over all tenants"`

	Providers map[string]*Provider `json:"providers,omitempty" jsonschema:"accounts at providers and families of engines, by name"`
	Pools     map[string]*Pool     `json:"pools,omitempty" jsonschema:"backends that share a queue, by name"`
	Models    map[string]*Model    `json:"models,omitempty" jsonschema:"public model names that clients ask for"`
	Hooks     map[string]*Hook     `json:"hooks,omitempty" jsonschema:"what looks into requests and answers, by name: services that are called, and the built-in redaction. Plans, tenants, projects and models name those of their requests"`
	Plans     map[string]*Plan     `json:"plans,omitempty" jsonschema:"limits and class that tenants have, by name"`
	Tenants   map[string]*Tenant   `json:"tenants,omitempty" jsonschema:"tenants with their projects and keys; what is declared here is read-only in the API"`

	file     string
	pos      map[string]Pos
	standing []standing // secrets that stand in the file
	values   []expanded // what references expanded to, the longest first
}

func (c *Config) setDefaults() {
	*c = Config{
		Listen:         "127.0.0.1:8080",
		Admin:          Admin{Listen: "127.0.0.1:8081"},
		Data:           "./sluice-data",
		BodyLimit:      32 << 20,
		EventLimit:     wire.DefaultEventLimit,
		KeepaliveAfter: Duration(15e9),
		LameDuck:       Duration(5e9),
		Drain:          Duration(120e9),
		Log:            Log{Format: "json"},
		Keys:           Keys{Poll: Duration(1e9)},
		Policy:         Fair,
	}
	c.Retries.setDefaults()
	c.Breaker.setDefaults()
	c.State.setDefaults()
	c.Batch.setDefaults()
	c.Cache.setDefaults()
	c.Idempotency.setDefaults()
}

// Admin is the admin plane.
type Admin struct {
	Listen      Address `json:"listen,omitempty" jsonschema:"where the admin plane listens; keep it off the internet"`
	OpenMetrics bool    `json:"open_metrics,omitempty" jsonschema:"serve /metrics without a token, for a Prometheus that has none; it tells model, pool, backend and tenant names"`
}

// Log is the log.
type Log struct {
	Level  LogLevel  `json:"level" zero:"meant" jsonschema:"debug, info, warn or error"`
	Format LogFormat `json:"format,omitempty" jsonschema:"text or json"`
}

// LogFormat is text or json.
type LogFormat string

func (LogFormat) words() []string { return []string{"text", "json"} }

// Keys is how keys are checked.
type Keys struct {
	Pepper   *Secret  `json:"pepper,omitempty" jsonschema:"secret that is mixed into the hashes of keys, kept outside of the store; changing it makes every stored key unknown"`
	Poll     Duration `json:"poll,omitempty" jsonschema:"how often the store is asked whether keys have changed, at most 2s"`
	StaleMax Duration `json:"stale_max,omitempty" jsonschema:"how long keys stay valid while the store is down; for ever if 0"`
}

// Provider is an account at a provider, or a family of engines.
type Provider struct {
	Dialect       Dialect            `json:"dialect" jsonschema:"what it speaks: openai, anthropic, gemini or bedrock (Converse)"`
	Service       Service            `json:"service,omitempty" jsonschema:"the cloud that it is reached through, if that is not its maker: azure, vertex or bedrock"`
	BaseURL       string             `json:"base_url,omitempty" jsonschema:"address up to and with the version, such as https://api.openai.com/v1; vertex and bedrock have one of their own for each location"`
	Project       string             `json:"project,omitempty" jsonschema:"vertex: the project that is called"`
	Location      string             `json:"location,omitempty" jsonschema:"vertex, bedrock: where its models are called, such as us-east-1, europe-west4, eu or global"`
	APIVersion    string             `json:"api_version,omitempty" jsonschema:"azure: the dated version that each deployment is called with; left out for /openai/v1"`
	Login         *Login             `json:"login,omitempty" jsonschema:"what the service knows it by, in place of api_key"`
	APIKey        *Secret            `json:"api_key,omitempty" jsonschema:"its key: ${NAME} or file:/path"`
	APIKeys       []APIKey           `json:"api_keys,omitempty" jsonschema:"several keys in its place, which share the requests by weight: each is paced, parked and disabled on its own, and rates of capacity are those of one"`
	Probe         *Probe             `json:"probe,omitzero" jsonschema:"ask each of its backends outside of requests how it is"`
	Engine        Engine             `json:"engine,omitempty" jsonschema:"the engine, if you run it: vllm, sglang, tgi, llamacpp, ollama or other"`
	Headers       map[string]*Secret `json:"headers,omitempty" jsonschema:"headers added to every call, such as an organization"`
	Simulated     bool               `json:"simulated,omitempty" jsonschema:"the fleet simulated inside of this process; has no base_url"`
	AllowPrivate  bool               `json:"allow_private,omitempty" jsonschema:"let the host name resolve to private addresses"`
	Catalog       string             `json:"catalog,omitempty" jsonschema:"the provider's name in the built-in catalogue of prices, if it is not the name here"`
	Timeouts      Timeouts           `json:"timeouts,omitzero" jsonschema:"deadlines of one attempt"`
	StopsOnCancel *bool              `json:"stops_on_cancel,omitempty" jsonschema:"whether generation and billing stop when the connection closes; true for an engine, else false"`
	Drain         *Drain             `json:"drain,omitempty" jsonschema:"how an answer is read on to its end after its client has left, to learn what the provider bills for it: bounds, or off. On if left out for providers that are known to go on; never of those that stop"`
	Batch         *HandOver          `json:"batch,omitempty" jsonschema:"give lines of batches to the provider's own batch API, where that is cheaper and there is time"`
	Capabilities  *Capabilities      `json:"capabilities,omitempty" jsonschema:"what every model here can do or not, where that is not what the engine or the catalogue is taken to say"`
	MaxRisk       Risk               `json:"max_risk,omitempty" jsonschema:"highest risk label of what may go there: low, normal or high; all if left out"`
	Metrics       *Duration          `json:"metrics,omitempty" jsonschema:"how often an engine is asked for its load, at /metrics beside the version of its address; 1s for vllm and sglang if left out, 0s asks nothing"`
	LostCharge    LostCharge         `json:"lost_charge,omitempty" jsonschema:"what an attempt is charged whose usage never became known: estimate, or bound (all that it could have cost)"`
	Charge        Charge             `json:"charge,omitempty" jsonschema:"what a whole answer is charged: prices, or reported (what the provider says that it has cost, as OpenRouter does in usage.cost; prices still say what is held, and what an answer is charged that does not say)"`
	Price         *Price             `json:"price,omitempty" jsonschema:"price of every model here that has none of its own: RATES, or free"`
	UnknownPrice  *UnknownPrice      `json:"unknown_price,omitzero" jsonschema:"as at the top, for this provider"`
}

func (p *Provider) setDefaults() { p.LostCharge, p.Charge = LostEstimate, ChargePrices }

// Dialect is what a backend speaks.
type Dialect string

func (Dialect) words() []string { return []string{"openai", "anthropic", "gemini", "bedrock"} }

// Engine is a server that the operator runs.
type Engine string

func (Engine) words() []string {
	return []string{"vllm", "sglang", "tgi", "llamacpp", "ollama", "other"}
}

// LostCharge is what an attempt is charged whose usage never became known.
type LostCharge string

// The charges.
const (
	LostEstimate LostCharge = "estimate"
	LostBound    LostCharge = "bound"
)

func (LostCharge) words() []string { return []string{string(LostEstimate), string(LostBound)} }

// Timeouts bounds the stages of one attempt; what is left out takes the
// default of upstream.
type Timeouts struct {
	Connect    Duration `json:"connect,omitempty" jsonschema:"look-up and connect"`
	Headers    Duration `json:"headers,omitempty" jsonschema:"from sending to the headers of a stream; 1m if left out"`
	FirstToken Duration `json:"first_token,omitempty" jsonschema:"from sending to the first content of a stream; 10m if left out. An answer in one piece is bounded by total alone"`
	Idle       Duration `json:"idle,omitempty" jsonschema:"between two events of a stream; 1m if left out"`
	Total      Duration `json:"total,omitempty" jsonschema:"from sending to the end, streamed or not; 30m if left out"`
	MinRate    Count    `json:"min_rate,omitempty" jsonschema:"least tokens per second of a stream, over ten seconds; no bound if 0"`
}

// Pool is backends that share a queue.
type Pool struct {
	Backends  []Backend             `json:"backends" jsonschema:"its backends"`
	Queue     Queue                 `json:"queue,omitzero" jsonschema:"bounds of its queue; what is left out takes the default"`
	Classes   map[string]ClassShare `json:"classes,omitempty" jsonschema:"how interactive, standard and batch share the pool; 60%, 30% and 10%, and 10% headroom for interactive, if left out"`
	Contracts []Contract            `json:"contracts,omitempty" jsonschema:"capacity reserved for tenants, one contract each; what runs inside is first in line and counts to no share, what does not fit inside competes with the others"`
	Choice    PoolChoice            `json:"choice,omitempty" jsonschema:"how one of its backends is chosen: least_loaded (running requests by weight), two_choices (of two at random, the one where it would have its first token sooner), affinity (that, or where its prefix is cached), round_robin, or best_match (the longest prefix whatever runs there: to compare with). affinity if that is given, else least_loaded"`
	Locality  *Locality             `json:"locality,omitempty" jsonschema:"in which region requests are served, for the models whose first pool it is and that say nothing themselves"`
	Scale     Scale                 `json:"scale" zero:"meant" jsonschema:"how many replicas it should have, of engines that you run: see docs/operations/autoscaling.md"`
	Ladder    *Ladder               `json:"ladder,omitempty" jsonschema:"how its service is reduced, step by step, while it is short of capacity: on, shadow (says what it would do), off, or how it goes. shadow if left out"`
	Affinity  *Affinity             `json:"affinity,omitempty" jsonschema:"keep requests to the backends whose prefix caches hold their prompts; for engines that you run"`
	Work      Work                  `json:"work" zero:"meant" jsonschema:"what a token counts for in the work that classes, tenants and projects share by"`
}

// Queue bounds a pool's queue.
type Queue struct {
	Requests Count    `json:"requests,omitempty" jsonschema:"waiting requests; 4096 if left out"`
	Bytes    Bytes    `json:"bytes,omitempty" jsonschema:"bodies of waiting requests; 256MiB if left out"`
	Work     Count    `json:"work,omitempty" jsonschema:"input and held output tokens of waiting requests; 64M if left out"`
	MaxWait  Duration `json:"max_wait,omitempty" jsonschema:"longest wait where neither request nor plan says otherwise; 30s if left out"`

	PerTenant Percent `json:"per_tenant,omitempty" jsonschema:"part of each of these bounds that one tenant may fill; all of it if left out, and a full queue sheds the newest of who fills most of it by weight"`
}

// Backend is one upstream model at one provider account or engine replica.
type Backend struct {
	Name          string        `json:"name" jsonschema:"unique over all pools; it stands in sluice-backend, metrics and the ledger"`
	Provider      string        `json:"provider" jsonschema:"a name of providers"`
	BaseURL       string        `json:"base_url,omitempty" jsonschema:"its own address; the provider's if left out"`
	Location      string        `json:"location,omitempty" jsonschema:"where its service has it; the provider's if left out"`
	Login         *Login        `json:"login,omitempty" jsonschema:"its own login; the provider's if left out"`
	APIKey        *Secret       `json:"api_key,omitempty" jsonschema:"its own key; the provider's if left out"`
	APIKeys       []APIKey      `json:"api_keys,omitempty" jsonschema:"its own keys, likewise"`
	Probe         *Probe        `json:"probe,omitzero" jsonschema:"its own, as at the provider"`
	Model         string        `json:"model" jsonschema:"the provider's name of the model"`
	Catalog       string        `json:"catalog,omitempty" jsonschema:"the model's name in the built-in catalogue of prices, if that is not model: an Azure deployment has a name of your own, and an answer that names the model behind it decides no price"`
	Region        string        `json:"region,omitempty" jsonschema:"where it runs"`
	MaxRisk       Risk          `json:"max_risk,omitempty" jsonschema:"as at the provider, of this backend; it may be lower than that"`
	Domain        string        `json:"domain,omitempty" jsonschema:"failure domain: what fails together; the provider's name if left out. A further attempt leaves the domain of the one that failed if any other can serve"`
	Weight        int64         `json:"weight" zero:"meant" jsonschema:"share of the pool's requests; 0 takes no new ones"`
	Capacity      Capacity      `json:"capacity,omitzero" jsonschema:"what it holds at a time"`
	Context       Count         `json:"context,omitempty" jsonschema:"context length in tokens; the catalogue's if left out"`
	MaxOutput     Count         `json:"max_output,omitempty" jsonschema:"largest output in tokens; the catalogue's if left out"`
	StopsOnCancel *bool         `json:"stops_on_cancel,omitempty" jsonschema:"as at the provider"`
	Capabilities  *Capabilities `json:"capabilities,omitempty" jsonschema:"as at the provider, of this backend"`
	Price         *Price        `json:"price,omitempty" jsonschema:"its price: RATES, or free"`
	UnknownPrice  *UnknownPrice `json:"unknown_price,omitzero" jsonschema:"as at the top, for this backend"`
}

func (b *Backend) setDefaults() { b.Weight = 1 }

// Capacity is what a backend holds at a time.
type Capacity struct {
	Concurrency           Count    `json:"concurrency,omitempty" jsonschema:"requests; found out from how its answers come, starting at 16, if left out"`
	Adaptive              bool     `json:"adaptive,omitempty" jsonschema:"find out how many requests are good for it, concurrency being the most"`
	TokenTime             Duration `json:"token_time,omitempty" jsonschema:"longest time for an output token that an adaptive concurrency accepts; three times that of the idle backend if left out. Answers in one piece of less than 64 tokens say nothing of it"`
	QueueDelay            Duration `json:"queue_delay,omitempty" jsonschema:"longest wait inside the backend, beyond the request's own prefill, that an adaptive concurrency accepts; 500ms if left out"`
	RequestsPerMinute     Count    `json:"requests_per_minute,omitempty" jsonschema:"the provider's rate; what its answers say of it lowers what is left, and is all there is if left out"`
	InputTokensPerMinute  Count    `json:"input_tokens_per_minute,omitempty" jsonschema:"likewise"`
	OutputTokensPerMinute Count    `json:"output_tokens_per_minute,omitempty" jsonschema:"likewise"`
	TokensPerMinute       Count    `json:"tokens_per_minute,omitempty" jsonschema:"likewise, input and output together"`
	KVTokens              Count    `json:"kv_tokens,omitempty" jsonschema:"input and held output tokens of all requests; no bound if left out"`
	PrefillRate           Count    `json:"prefill_rate,omitempty" jsonschema:"input tokens per second, which choices by cost reckon with, 10k if left out, and of which what is asked for is a part, unknown if left out"`
	DecodeRate            Count    `json:"decode_rate,omitempty" jsonschema:"output tokens per second of a full batch, of which what is asked for is a part; unknown if left out"`
	PrefillTokens         Count    `json:"prefill_tokens,omitempty" jsonschema:"uncached input tokens of requests that have not answered yet; no bound if left out"`
}

// Model is a public name and the pools that serve it.
type Model struct {
	Pools    []ModelPool `json:"pools" jsonschema:"first choice, in order, or by weight, canary and conditions"`
	Sticky   Sticky      `json:"sticky,omitempty" jsonschema:"what decides by weight, canary and shadow: request; run, user or session, so that the requests of a run, an end user or a session go the same way, those without by themselves; session within pools too"`
	Prefer   Prefer      `json:"prefer,omitempty" jsonschema:"what comes first, of the pools and of the backends of each: latency, where an answer is expected to be whole soonest, waiting included; or price, where the request is expected to cost least. The order of pools, and each pool's choice, decide between what is alike, and alone if left out"`
	Fallback []Fallback  `json:"fallback,omitempty" jsonschema:"pools tried in order when an attempt failed before its first content"`
	Hedge    *Hedge      `json:"hedge,omitempty" jsonschema:"a second attempt beside one whose first content is late; none if left out"`
	Locality *Locality   `json:"locality,omitempty" jsonschema:"in which region its requests are served, and when they leave it; wherever the pools' order leads if left out"`
	Shadow   []Shadow    `json:"shadow,omitempty" jsonschema:"pools that get copies of a part of the requests, whose answers nobody sees"`
	Hooks    []string    `json:"hooks,omitempty" jsonschema:"names of hooks, after those of plan, tenant and project"`
	MaxSpend Money       `json:"max_spend,omitempty" jsonschema:"most that one attempt may hold of a budget: a backend where it would hold more is left out, fallbacks too; no bound if left out"`
	Limits   Limits      `json:"limits,omitempty" jsonschema:"limits of the model over all tenants"`
}

// Plan is what tenants have in common; each has its own counters.
type Plan struct {
	Class        sluice.Class      `json:"class" zero:"meant" jsonschema:"class of a request that asks for none: interactive, standard or batch"`
	Classes      []sluice.Class    `json:"classes,omitempty" jsonschema:"higher classes that a request may ask for; lower ones it always may"`
	Weight       int64             `json:"weight" zero:"meant" jsonschema:"share of a tenant of a pool, within its class, against those of other tenants: from 1 to 1000000. Projects of a tenant share equally"`
	Models       []string          `json:"models,omitempty" jsonschema:"models that may be asked for; all if left out"`
	MaxWait      Duration          `json:"max_wait,omitempty" jsonschema:"longest time in a queue; the pool's if left out"`
	MaxOutput    Count             `json:"max_output,omitempty" jsonschema:"output bound of a request that names none; the model's if left out"`
	Spend        Spend             `json:"spend,omitempty" jsonschema:"hard: a budget holds upper bounds and is never exceeded; soft: it holds what is likely and debt shows"`
	BudgetStatus int64             `json:"budget_status,omitempty" jsonschema:"status of a spent budget in the OpenAI dialect: 429 or 402"`
	JournalSync  Sync              `json:"journal_sync,omitempty" jsonschema:"always: a request waits until its record is on disk; group: it does not; always if left out where a hard spend limit applies"`
	Limits       Limits            `json:"limits,omitempty" jsonschema:"limits of the whole tenant"`
	PerProject   Limits            `json:"per_project,omitempty" jsonschema:"limits of each project, unless it says otherwise"`
	PerKey       Limits            `json:"per_key,omitempty" jsonschema:"limits of each key, unless it says otherwise"`
	PerModel     map[string]Limits `json:"per_model,omitempty" jsonschema:"limits of the tenant on one model; * is each model by itself"`
	PerUser      Limits            `json:"per_user,omitempty" jsonschema:"limits of each end user of the tenant, by the request's safety_identifier, user or metadata.user_id"`
	PerRun       RunLimits         `json:"per_run,omitempty" jsonschema:"bounds of each run of the tenant, by sluice-run: steps, input_tokens, output_tokens, tokens, spend, time"`

	InputCeiling  Count `json:"input_ceiling,omitempty" jsonschema:"most input tokens of one request, as estimated; more is refused"`
	OutputCeiling Count `json:"output_ceiling,omitempty" jsonschema:"most output tokens of one request, over all its answers; a larger bound is lowered to it"`
	Residency
	Hooks       []string    `json:"hooks,omitempty" jsonschema:"names of hooks, in order"`
	Degrade     *Degrade    `json:"degrade,omitempty" jsonschema:"consent to a smaller model while a pool is short of capacity: {model: NAME}, or off. off if left out"`
	LimitsMode  LimitMode   `json:"limits_mode,omitempty" jsonschema:"enforce; shadow counts and tells what it would have refused but refuses nothing; off counts nothing. Limits of models and the fleet are always in force"`
	Translation Translation `json:"translation,omitempty" jsonschema:"of requests to backends of another dialect. strict: what that cannot carry refuses the request; warn: hints are left out and named in sluice-dropped, and only what changes cost, safety, determinism or structure refuses it"`
	ForeignIDs  ForeignIDs  `json:"foreign_ids,omitempty" jsonschema:"of requests that refer to what a provider keeps, by an id that no answer here has given, or that is forgotten. refuse: as if it did not exist; allow: the provider decides, for a tenant that has its account to itself"`
	FetchMedia  FetchMedia  `json:"fetch_media,omitempty" jsonschema:"of requests with an image or a document by its URL, where a backend takes bytes alone. refuse: such backends are left out; allow: the gateway fetches it, from public addresses, bounded, and sends its bytes"`

	OutputCache *OutputCache `json:"output_cache,omitempty" jsonschema:"keep answers, and give them again to the same request; none are kept if left out"`

	EngineFields []EngineField `json:"engine_fields,omitempty" jsonschema:"members of a body that steer an engine that you run, and that requests may have: priority, request_id, rid, chat_template, chat_template_kwargs, logits_processors, kv_transfer_params, cache_salt (unless the pool sets one), truncate_prompt_tokens, mm_processor_kwargs, vllm_xargs; none if left out"`
}

// EngineField is a member of a body that steers an engine.
type EngineField string

func (EngineField) words() []string { return wire.EngineFields }

func (p *Plan) setDefaults() {
	p.Class, p.Weight, p.Spend, p.BudgetStatus, p.LimitsMode, p.Translation, p.ForeignIDs, p.FetchMedia = sluice.Standard, 1, "hard", 429, "enforce", "strict", "refuse", "refuse"
}

// Translation is strict or warn.
type Translation string

func (Translation) words() []string { return []string{"strict", "warn"} }

// LimitMode is enforce, shadow or off.
type LimitMode string

func (LimitMode) words() []string { return []string{"enforce", "shadow", "off"} }

// mode is the mode in the vocabulary; the word has been checked.
func (m LimitMode) mode() (out sluice.LimitMode) {
	_ = out.UnmarshalText([]byte(m))
	return out
}

// Spend is hard or soft.
type Spend string

func (Spend) words() []string { return []string{"hard", "soft"} }

// Sync is always or group.
type Sync string

func (Sync) words() []string { return []string{"always", "group"} }

// Tenant holds projects and keys.
type Tenant struct {
	Name       string    `json:"name,omitempty" jsonschema:"for humans"`
	Plan       string    `json:"plan,omitempty" jsonschema:"a name of plans; class standard and no limits if left out"`
	Suspended  bool      `json:"suspended,omitempty" jsonschema:"admit none of its keys"`
	Models     []string  `json:"models,omitempty" jsonschema:"narrows the plan's models"`
	Limits     Limits    `json:"limits,omitempty" jsonschema:"each replaces the plan's of the same name"`
	LimitsMode LimitMode `json:"limits_mode,omitempty" jsonschema:"in place of the plan's"`

	Translation Translation `json:"translation,omitempty" jsonschema:"in place of the plan's"`
	ForeignIDs  ForeignIDs  `json:"foreign_ids,omitempty" jsonschema:"in place of the plan's"`
	FetchMedia  FetchMedia  `json:"fetch_media,omitempty" jsonschema:"in place of the plan's"`
	Hooks       []string    `json:"hooks,omitempty" jsonschema:"names of hooks, after the plan's"`
	Degrade     *Degrade    `json:"degrade,omitempty" jsonschema:"in place of the plan's: {model: NAME}, or off"`

	OutputCache *OutputCache `json:"output_cache,omitempty" jsonschema:"in place of the plan's"`
	Residency
	Projects map[string]*Project `json:"projects,omitempty" jsonschema:"its projects; default exists without being declared"`
	Keys     map[string]*Key     `json:"keys,omitzero" jsonschema:"its keys, by a name for humans"`
}

// Project holds keys.
type Project struct {
	Name   string   `json:"name,omitempty" jsonschema:"for humans"`
	Models []string `json:"models,omitempty" jsonschema:"narrows the tenant's models"`
	Limits Limits   `json:"limits,omitempty" jsonschema:"each replaces the plan's per_project of the same name"`

	Translation Translation `json:"translation,omitempty" jsonschema:"in place of the tenant's"`
	Hooks       []string    `json:"hooks,omitempty" jsonschema:"names of hooks, after the tenant's"`
	Residency
}

// Key is a credential.
type Key struct {
	Secret   *Secret    `json:"secret" jsonschema:"the whole key, slk_…, as ${NAME} or file:/path; sluice key mint makes one"`
	Previous []Previous `json:"previous,omitempty" jsonschema:"earlier secrets of the same key, while they are being exchanged"`
	Project  string     `json:"project,omitempty" jsonschema:"its project; default if left out"`
	Models   []string   `json:"models,omitempty" jsonschema:"narrows the project's models"`
	Limits   Limits     `json:"limits,omitempty" jsonschema:"each replaces the plan's per_key of the same name"`
	PerRun   RunLimits  `json:"per_run,omitempty" jsonschema:"each replaces the plan's per_run of the same name"`

	InputCeiling  Count `json:"input_ceiling,omitempty" jsonschema:"lowers the plan's"`
	OutputCeiling Count `json:"output_ceiling,omitempty" jsonschema:"lowers the plan's"`
	Residency

	NotAfter *Time `json:"not_after,omitempty" jsonschema:"when it expires; never if left out, and a moment that has passed is warned of"`
	Disabled bool  `json:"disabled,omitempty" jsonschema:"do not admit it"`
}

// Previous is an earlier secret of a key.
type Previous struct {
	Secret   *Secret `json:"secret" jsonschema:"the whole key, with the same id"`
	NotAfter *Time   `json:"not_after" jsonschema:"when it ends"`
}

// JSON is the effective configuration, defaults filled in and secrets hidden.
func (c *Config) JSON() ([]byte, error) { return json.MarshalIndent(c, "", "  ") }

func marshal(v any) ([]byte, error) { return json.Marshal(v) }
