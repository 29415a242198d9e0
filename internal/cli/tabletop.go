package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice/internal/config"
	"sluice/internal/tabletop"
	"sluice/internal/tabletop/scenarios"
)

type tabletopCmd struct {
	Run     tabletopRunCmd     `cmd:"" help:"Play a scenario under virtual time, under the shipped policy and beside the naive one. Exits 1 when an expectation of the first policy is not met."`
	List    tabletopListCmd    `cmd:"" help:"The scenarios that ship."`
	Show    tabletopShowCmd    `cmd:"" help:"Print a scenario that ships, to be saved and changed."`
	Check   tabletopCheckCmd   `cmd:"" help:"Check a scenario file: what is wrong, where, and how to mend it."`
	Explain tabletopExplainCmd `cmd:"" help:"Follow one request of a run, by running it again."`
	Schema  tabletopSchemaCmd  `cmd:"" help:"Print the JSON Schema of the scenario file, for editors."`
}

// scenarioArg is the scenario that a command works on.
type scenarioArg struct {
	Scenario string            `arg:"" help:"A scenario file, or the name of one that ships."`
	Trace    map[string]string `help:"Give a source the arrivals and lengths of a trace file, by the source's name; may be repeated." placeholder:"SOURCE=FILE"`
}

// read compiles the scenario. A file that is there comes before a name.
func (a scenarioArg) read(env *Env) (*tabletop.Scenario, error) {
	lookup, err := priceLookup()
	if err != nil {
		return nil, err
	}
	o := config.ScenarioOptions{Env: env.Getenv, Traces: a.Trace, Lookup: lookup}
	if file, data, ok := a.shipped(); ok {
		o.Open = scenarios.Open
		return config.ReadScenario(file, data, o)
	}
	if _, err := os.Stat(a.Scenario); errors.Is(err, fs.ErrNotExist) && filepath.Ext(a.Scenario) == "" {
		return nil, &codedError{
			code: exitUsage, msg: fmt.Sprintf("there is no scenario %q, neither as a file nor among those that ship", a.Scenario),
			hint: "those that ship are " + strings.Join(scenarios.Names(), ", "),
		}
	}
	return config.LoadScenario(shown(a.Scenario), o)
}

// shipped finds the scenario among those that ship.
func (a scenarioArg) shipped() (file string, data []byte, ok bool) {
	if _, err := os.Stat(a.Scenario); err == nil || !errors.Is(err, fs.ErrNotExist) || a.Scenario != filepath.Base(a.Scenario) {
		return "", nil, false
	}
	file, data, err := scenarios.Read(a.Scenario)
	return file, data, err == nil
}

// text is the scenario's file, for readers of a report.
func (a scenarioArg) text() string {
	if _, data, ok := a.shipped(); ok {
		return string(data)
	}
	data, err := os.ReadFile(a.Scenario)
	if err != nil {
		return "" // it has just been read: gone since
	}
	return string(data)
}

type tabletopListCmd struct{ output }

// shippedScenario is a row of the list.
type shippedScenario struct {
	Name         string   `json:"name"`
	About        string   `json:"about"`
	Length       string   `json:"length"`
	Sources      int      `json:"sources"`
	Expectations int      `json:"expectations"`
	Policies     []string `json:"policies"`
	Acts         []string `json:"acts"`
}

// Run lists the scenarios.
func (c *tabletopListCmd) Run(env *Env) error {
	v := view{columns: []string{"scenario", "length", "sources", "expectations", "acts", "about"}}
	var all []shippedScenario
	for _, name := range scenarios.Names() {
		s, err := scenarioArg{Scenario: name}.read(env)
		if err != nil {
			return err
		}
		row := shippedScenario{
			Name: name, About: s.About, Length: s.Length.String(), Sources: len(s.Sources), Expectations: len(s.Expect), Policies: policyNames(s), Acts: actNames(s),
		}
		all = append(all, row)
		v.rows = append(v.rows, []string{name, row.Length, count(row.Sources), count(row.Expectations), strings.Join(row.Acts, " "), row.About})
	}
	v.data = all
	return c.print(env.Stdout, v)
}

func policyNames(s *tabletop.Scenario) []string {
	out := []string{}
	for _, p := range s.Policies {
		out = append(out, p.Name)
	}
	return out
}

func actNames(s *tabletop.Scenario) []string {
	out := []string{}
	for _, a := range s.Acts {
		out = append(out, a.Name)
	}
	return out
}

type tabletopShowCmd struct {
	Name string `arg:"" help:"Its name."`
	output
}

// Run prints the file.
func (c *tabletopShowCmd) Run(env *Env) error {
	_, data, err := scenarios.Read(c.Name)
	if err != nil {
		return &codedError{code: exitNotFound, msg: fmt.Sprintf("no scenario %q ships", c.Name), hint: "see sluice tabletop list: " + strings.Join(scenarios.Names(), ", ")}
	}
	return c.print(env.Stdout, view{
		data:    map[string]string{"name": c.Name, "file": string(data)},
		columns: []string{"name", "file"}, rows: [][]string{{c.Name, string(data)}}, text: string(data),
	})
}

type tabletopCheckCmd struct {
	scenarioArg
	output
}

// Run checks a scenario: its findings are the data.
func (c *tabletopCheckCmd) Run(env *Env) error {
	name := shown(c.Scenario)
	result := checked{File: name, Findings: []finding{}}
	s, err := c.read(env)
	if ps, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range ps {
			result.add("error", p.File, config.Problems{p})
		}
	} else if err != nil {
		return err
	}
	result.OK = err == nil
	if err := c.print(env.Stdout, result.view()); err != nil {
		return err
	}
	if n := len(result.Findings); n > 0 {
		return &codedError{code: exitUsage, msg: fmt.Sprintf("%s has %s", name, plural(n, "mistake"))}
	}
	fmt.Fprintf(env.Stderr, "%s is valid: %s, %s, %s, policies %s\n", name,
		plural(len(s.Sources), "source"), plural(len(s.Events), "event"), plural(len(s.Expect), "expectation"), strings.Join(policyNames(s), ", "))
	return nil
}

type tabletopSchemaCmd struct {
	Output string `short:"o" enum:"json,yaml" default:"json" help:"Form of the schema: ${enum} (${default})." placeholder:"FORM"`
}

// Run prints the schema.
func (c *tabletopSchemaCmd) Run(env *Env) error {
	schema, err := config.ScenarioSchema()
	if err != nil {
		return err
	}
	return output{c.Output}.print(env.Stdout, view{data: json.RawMessage(schema)})
}
