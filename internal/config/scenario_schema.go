package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice/internal/replay"
)

// ScenarioSchema makes the JSON Schema of the scenario file from the struct tags;
// scenario.json is a copy for editors.
func ScenarioSchema() ([]byte, error) {
	types := typeSchemas()
	open := &jsonschema.Schema{Type: "object", Description: "sections of the configuration file"}
	maps.Copy(types, map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Rate]():       text(`[0-9][0-9_]*(\.[0-9]+)?/(s|min|m|h|d)`, "5/s"),
		reflect.TypeFor[Share]():      text(`(100|[0-9]{1,2})(\.[0-9])?%`, "25%"),
		reflect.TypeFor[Fine]():       text(`[0-9]+(\.[0-9]+)?(ps|ns|us|µs|ms|s)`, "76.3ns"),
		reflect.TypeFor[TimeUnit]():   words(TimeUnit("").words()...),
		reflect.TypeFor[FailReason](): words(FailReason("").words()...),
		reflect.TypeFor[Gateway]():    open,
		reflect.TypeFor[Patch]():      open,
	})
	type lengths Lengths // without their methods
	type arrivals Arrivals
	for _, plain := range []struct {
		of, as reflect.Type
		text   *jsonschema.Schema
	}{
		{reflect.TypeFor[Lengths](), reflect.TypeFor[lengths](), types[reflect.TypeFor[Count]()]},
		{reflect.TypeFor[Arrivals](), reflect.TypeFor[arrivals](), types[reflect.TypeFor[Rate]()]},
	} {
		s, err := jsonschema.ForType(plain.as, &jsonschema.ForOptions{TypeSchemas: types})
		if err != nil {
			return nil, fmt.Errorf("make schema: %w", err)
		}
		relax(plain.as, s)
		types[plain.of] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{plain.text, s}}
	}
	return schemaOf[Scenario]("Sluice scenario", types)
}

// text is the pattern of a value that is no number without its unit.
func text(p, example string) *jsonschema.Schema {
	s := pattern(p, example)
	s.Type, s.Types = "string", nil
	return s
}

// ScenarioReference writes the reference of the scenario file, docs/scenario.md,
// from the struct tags.
func ScenarioReference() []byte {
	var b strings.Builder
	b.WriteString(scenarioHead)
	for _, s := range sectionsOf(reflect.New(reflect.TypeFor[Scenario]()).Elem()) {
		title := "`" + s.path + "`"
		switch s.t {
		case reflect.TypeFor[Scenario]():
			title = "The file"
		case reflect.TypeFor[Lengths]():
			title = "Lengths: `" + s.path + "`, and every `input` and `output`"
		case reflect.TypeFor[Event]():
			title = "`events[]`, and those of every act"
		}
		s.write(&b, title)
	}
	b.WriteString("\n## Shapes of traces\n\nRows that are made up in the shape of a published recording: " + "`" + strings.Join(replay.Shapes(), "`, `") + "`.\n")
	return []byte(b.String())
}

// scenarioTypes are the names that values of the scenario file have for readers.
var scenarioTypes = map[reflect.Type]string{
	reflect.TypeFor[Rate](): "rate", reflect.TypeFor[Share](): "share", reflect.TypeFor[Fine](): "fine time", reflect.TypeFor[Names](): "name or list of names",
	reflect.TypeFor[Gateway](): "sections of the configuration", reflect.TypeFor[Patch](): "sections of the configuration", reflect.TypeFor[Lengths](): "lengths", reflect.TypeFor[Arrivals](): "rate or process",
}

// scenarioLeaves are types of the scenario file that the reference describes as
// values.
func scenarioLeaves() []reflect.Type {
	leaves := slices.Collect(maps.Keys(scenarioTypes))
	return slices.DeleteFunc(leaves, func(t reflect.Type) bool {
		return t == reflect.TypeFor[Lengths]() || t == reflect.TypeFor[Arrivals]()
	})
}

const scenarioHead = `# Scenario reference

Generated from the code by ` + "`go generate ./internal/config`" + `; edit the struct tags there. What a scenario is for, and how its report is read: [tabletop](tabletop.md).

One YAML file. Unknown and repeated keys are mistakes. ` + "`sluice tabletop check FILE`" + ` tells every mistake with line, column, cause and fix, those of traces with their file and line too.

For editors, start the file with ` + "`# yaml-language-server: $schema=…/internal/config/scenario.json`" + `, or save ` + "`sluice tabletop schema`" + `.

## Values

Those of the [configuration](config.md#values), and:

| value | written as |
|---|---|
| rate | ` + "`5/s`, `20/min`, `1000/h`" + ` |
| share | ` + "`25%`, `2.5%`" + ` |
| fine time | ` + "`76.3ns`, `4.4us`, `7.86ms`" + ` |
| lengths | ` + "`1500`, `{p50: 1k, p99: 8k}`, `{uniform: [100, 2k]}`, `{quantiles: {50%: 1k, 100%: 14k}}`, `{mix: [{share: 90%, tokens: 1k}, {share: 10%, p50: 8k, p99: 60k}]}`" + ` |
| sections of the configuration | ` + "`{plans: {free: {limits: {concurrency: 4}}}}`" + `, in the words of the [configuration file](config.md) |

## How a patch changes the configuration

Variants, ` + "`apply`" + ` and what stands beside ` + "`gateway: {file: …}`" + ` name what differs. Mappings are joined, key by key; ` + "`null`" + ` takes a key away. Lists whose items all have a
` + "`name`" + ` (backends) or a ` + "`tenant`" + ` (contracts) are joined by it: an item of a new name is added. Anything else is replaced. Patches that events apply come on top of each other in
order of time; those of an act come on top of the scenario's, and after them.

Every policy of the scenario gets every patch: *sluice* is the file as it is, *naive* the same with ` + "`policy: naive`" + `, and each of ` + "`variants`" + ` the file with its patch.
`
