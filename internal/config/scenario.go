package config

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"sluice"
	"sluice/internal/tabletop"
)

// Scenario is one scenario file: what the tabletop plays. [ReadScenario] compiles
// it.
type Scenario struct {
	About      string   `json:"about,omitempty" jsonschema:"one sentence for readers"`
	Length     Duration `json:"length" jsonschema:"how long requests come"`
	Warmup     Duration `json:"warmup,omitempty" jsonschema:"what comes before is served and not judged"`
	Drain      Duration `json:"drain,omitempty" jsonschema:"how long after length what is open may take; what is open then counts as unfinished"`
	Seed       Count    `json:"seed,omitempty" jsonschema:"of all that is drawn, where the run names none"`
	InputError Share    `json:"input_error,omitempty" jsonschema:"how far the gateway's count of a request's input is off at most"`

	Gateway  Gateway             `json:"gateway" jsonschema:"what serves: sections of the configuration file (providers, pools, models, plans, tenants, limits), or {file: sluice.yaml}, relative to the scenario, and what to change of it. Secrets, keys and addresses are not needed"`
	Fleet    map[string]*Machine `json:"fleet" jsonschema:"what plays each backend, by the name of the backend or of its pool: {profile: NAME} with what differs, or {hosted: {…}}"`
	Traffic  []Traffic           `json:"traffic" jsonschema:"who asks for what; the order is part of the seed"`
	Events   []Event             `json:"events,omitempty" jsonschema:"what happens"`
	Acts     map[string]*Act     `json:"acts,omitempty" jsonschema:"what an operator may do about it, by name: a run that names one plays it"`
	Variants map[string]*Patch   `json:"variants,omitempty" jsonschema:"further policies to compare with, by name: what each changes of the gateway"`
	Expect   []string            `json:"expect,omitempty" jsonschema:"what is expected, such as interactive.ttft.p99 < 800ms, or after: tenant.quiet.slo >= 99%"`
}

func (s *Scenario) setDefaults() {
	*s = Scenario{Drain: Duration(2 * time.Minute), Seed: 1}
}

// Act is a play of an operator.
type Act struct {
	About  string  `json:"about,omitempty" jsonschema:"what it does, and when it is the thing to do"`
	Events []Event `json:"events" jsonschema:"what happens in a run that names it"`
}

// Bounds of a scenario.
const (
	MaxSources   = 500
	MaxEvents    = 200 // of the scenario, and of each act
	MaxActs      = 50
	MaxVariants  = 20
	MaxExpect    = 200
	MaxTraceRows = 1_000_000 // of one trace
	maxScenario  = 1 << 20   // bytes of the file
	maxLength    = 31 * 24 * time.Hour
	maxTrace     = 256 << 20 // bytes
)

// Names of the policies that every scenario has.
const (
	PolicySluice = "sluice"
	PolicyNaive  = "naive"
)

// ScenarioOptions is what a scenario is read with.
type ScenarioOptions struct {
	Env Env // of ${NAME}; what is not set does not matter
	// Open opens the files that the scenario names, relative to it; nil is the
	// file system.
	Open func(name string) (io.ReadCloser, error)
	// Traces puts files in place of sources' arrivals, by the source's name.
	Traces map[string]string
	// Lookup finds a provider's model in the catalogue; nil knows nothing.
	Lookup func(provider, model string) (Known, bool)
}

// LoadScenario reads a scenario file. The error is Problems.
func LoadScenario(name string, o ScenarioOptions) (*tabletop.Scenario, error) {
	data, err := readFile(name, maxScenario)
	if err != nil {
		return nil, Problems{{File: name, Cause: fmt.Sprintf("cannot read the scenario: %s", err), Fix: "give the path of a YAML file that the process can read, or a name of sluice tabletop list"}}
	}
	return ReadScenario(name, data, o)
}

// ReadScenario compiles a scenario; name stands in messages, and files that it
// names are looked for beside it. The error is Problems: all that is wrong with
// it.
func ReadScenario(name string, data []byte, o ScenarioOptions) (*tabletop.Scenario, error) {
	body, problems := parseYAML(name, data)
	if problems != nil {
		return nil, problems
	}
	if body == nil {
		return nil, Problems{{File: name, Pos: Pos{1, 1}, Cause: "the scenario is empty", Fix: "see sluice tabletop show noisy-tenant for one that is whole"}}
	}
	r := &reader{o: o, d: newDecoder(name, o.rehearsed(), body)}
	r.d.rehearsal = true
	r.in.setDefaults()
	r.d.into(body, &r.in, "")
	r.out = &tabletop.Scenario{Name: scenarioName(name), About: r.in.About}
	r.compile()
	if len(r.d.problems)+len(r.elsewhere) > 0 {
		r.d.problems.sort()
		return nil, append(r.d.problems, r.elsewhere...)
	}
	return r.out, nil
}

// scenarioName is the file's name without folder and ending, or its folder's where
// the file is named for what it is.
func scenarioName(file string) string {
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, path.Ext(base))
	if folder := filepath.Base(filepath.Dir(file)); name == "scenario" && sluice.ValidName(folder) == nil && folder != "." {
		return folder
	}
	return name
}

// rehearsed looks variables up and has a word for those that are not set.
func (o ScenarioOptions) rehearsed() Env {
	return func(name string) (string, bool) {
		if o.Env != nil {
			if v, ok := o.Env(name); ok {
				return v, true
			}
		}
		return "rehearsal", true
	}
}

// reader makes a tabletop.Scenario of a file, and goes on after a mistake.
type reader struct {
	o   ScenarioOptions
	d   *decoder
	in  Scenario
	out *tabletop.Scenario

	base      node                          // the gateway's configuration, flat
	policies  []policy                      // by the order of out.Policies
	versions  map[string]int                // of the policies, by the path of the event that applies it
	known     map[string][]sluice.BackendID // by the names of backends and pools
	sources   map[string]int
	elsewhere Problems // of other files
}

func (r *reader) compile() {
	r.times()
	r.names()
	r.gateway()
	if len(r.policies) == 0 || len(r.policies[0].tables) == 0 {
		return // nothing to hold the rest against
	}
	r.applies()
	r.machines()
	r.traffic()
	r.principals()
	r.out.Events = r.events("events", r.in.Events)
	for _, name := range sorted(r.in.Acts) {
		r.act(name, r.in.Acts[name])
	}
	r.expectations()
}

func (r *reader) fail(at, fix, cause string, args ...any) {
	if !r.d.broken[at] {
		r.d.report(r.d.near(at), at, fix, cause, args...)
	}
}

func (r *reader) times() {
	in := &r.in
	if _, given := r.d.pos["length"]; given && in.Length == 0 {
		r.fail("length", "write a time such as 5m", "no time passes")
	}
	for at, t := range map[string]Duration{"length": in.Length, "drain": in.Drain} {
		if time.Duration(t) > maxLength {
			r.fail(at, "write at most 744h", "%s is longer than 31 days", t)
		}
	}
	if in.Warmup >= in.Length && in.Length > 0 {
		r.fail("warmup", "write less than length, "+in.Length.String(), "%s leaves nothing to judge", in.Warmup)
	}
	r.out.InputError = int64(in.InputError)
	r.out.Length, r.out.Warmup, r.out.Drain, r.out.Seed = time.Duration(in.Length), time.Duration(in.Warmup), time.Duration(in.Drain), uint64(in.Seed)
	if in.Seed == 0 {
		r.fail("seed", "write 1 or more", "0 is no seed")
	}
}

// names checks how many there are of everything that has a name, and the names.
func (r *reader) names() {
	in := &r.in
	for at, n := range map[string]struct{ got, most int }{
		"traffic": {len(in.Traffic), MaxSources}, "events": {len(in.Events), MaxEvents}, "acts": {len(in.Acts), MaxActs},
		"variants": {len(in.Variants), MaxVariants}, "expect": {len(in.Expect), MaxExpect},
	} {
		if n.got > n.most {
			r.fail(at, "split the scenario", "there are %d, the bound is %d", n.got, n.most)
		}
	}
	for _, section := range []struct {
		path  string
		names []string
	}{{"acts", sorted(in.Acts)}, {"variants", sorted(in.Variants)}} {
		for _, name := range section.names {
			at := join(section.path, name)
			if err := sluice.ValidName(name); err != nil {
				r.fail(at, "rename it", "%s", err)
			} else if name == PolicySluice || name == PolicyNaive || name == "all" {
				r.fail(at, "name it otherwise", "%q means something to every run", name)
			}
		}
	}
}

func (r *reader) act(name string, in *Act) {
	at := join("acts", name)
	if in == nil {
		return
	}
	if len(in.Events) > MaxEvents {
		r.fail(join(at, "events"), "split it", "there are %d, the bound is %d", len(in.Events), MaxEvents)
		return
	}
	r.out.Acts = append(r.out.Acts, tabletop.Act{Name: name, About: in.About, Events: r.events(join(at, "events"), in.Events)})
}

func (r *reader) expectations() {
	names := r.out.Names()
	for i, text := range r.in.Expect {
		at := index("expect", i)
		if r.d.broken[at] {
			continue
		}
		e, err := tabletop.ParseExpectation(text, names)
		if x, ok := errors.AsType[*tabletop.ExpectationError](err); ok {
			pos := r.d.pos[at]
			pos.Col += x.Column - 1 // exact where it is written on one line without quotes
			r.d.report(pos, at, x.Fix, "%s", x.What)
			continue
		} else if err != nil {
			r.fail(at, "", "%s", err)
			continue
		}
		e.Line = r.d.pos[at].Line
		r.out.Expect = append(r.out.Expect, e)
	}
}

// Patch is changes of the gateway's configuration: what it names takes the place
// of what stands there.
type Patch struct{ n node }

func (p *Patch) decodeNode(d *decoder, n node, path string) {
	if _, ok := d.asMapping(n); !ok {
		d.report(nodePos(n), path, "write sections of the configuration file, such as plans: {free: {limits: {concurrency: 4}}}", "a mapping is needed here")
		return
	}
	p.n = d.flatten(n, path)
}

// Gateway is the configuration that serves.
type Gateway struct {
	file string
	n    node
}

func (g *Gateway) decodeNode(d *decoder, n node, path string) {
	var p Patch
	p.decodeNode(d, n, path)
	m, ok := p.n.(*ast.MappingNode)
	if !ok {
		return
	}
	kept := *m
	kept.Values = nil
	for _, v := range m.Values {
		if rawText(v.Key) != "file" {
			kept.Values = append(kept.Values, v)
			continue
		}
		at := join(path, "file")
		d.pos[at] = nodePos(v.Value)
		g.file, _ = d.scalar(v.Value, at)
	}
	g.n = &kept
}
