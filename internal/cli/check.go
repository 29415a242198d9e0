package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"sluice/internal/config"
	"sluice/internal/fakellm"
	"sluice/internal/versions"
)

type checkCmd struct {
	File   string `arg:"" help:"The configuration file." type:"path"`
	Strict bool   `help:"Exit 2 on warnings too."`
	output
}

// finding is one mistake or warning.
type finding struct {
	Severity string `json:"severity"` // "error" or "warning"
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Cause    string `json:"cause"`
	Fix      string `json:"fix,omitempty"`
}

// checked is the result of a check.
type checked struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Version  string    `json:"version,omitempty"`
	Findings []finding `json:"findings"`
}

// Run checks a file: its findings are the data.
func (c *checkCmd) Run(_ context.Context, env *Env) error {
	name := shown(c.File)
	result := checked{File: name, Findings: []finding{}}
	warnings, version, err := check(c.File, env)
	if ps, ok := errors.AsType[config.Problems](err); ok {
		result.add("error", name, ps)
	} else if err != nil {
		return err
	}
	result.add("warning", name, warnings)
	result.OK, result.Version = err == nil, version
	if err := c.print(env.Stdout, result.view()); err != nil {
		return err
	}
	wrong := len(result.Findings) - len(warnings)
	switch {
	case wrong > 0:
		return &codedError{code: exitUsage, msg: fmt.Sprintf("%s has %s", name, plural(wrong, "mistake"))}
	case len(warnings) > 0 && c.Strict:
		return &codedError{code: exitUsage, msg: fmt.Sprintf("%s has %s", name, plural(len(warnings), "warning"))}
	}
	fmt.Fprintf(env.Stderr, "%s is valid, version %s\n", name, version)
	return nil
}

// check loads and compiles a file as serve would, without starting anything.
func check(path string, env *Env) (warnings config.Problems, version string, err error) {
	cfg, err := config.Load(path, env.Getenv)
	if err != nil {
		return nil, "", err
	}
	lookup, err := priceLookup()
	if err != nil {
		return nil, "", err
	}
	snap, err := config.Compile(cfg, config.CompileOptions{Lookup: lookup, SimulatedURL: "http://" + fakellm.DefaultListen + "/v1"})
	if err != nil {
		return nil, "", err
	}
	return append(snap.Warnings, offFile(path, snap.Settings.Data)...), snap.Version, nil
}

// offFile warns of a file that the gateway with its data directory does not follow:
// something else is held against it. A directory that is not on this machine, or that
// may not be read, tells nothing.
func offFile(path, data string) config.Problems {
	held, err := versions.ReadHeld(data)
	if err != nil || held == nil {
		return nil
	}
	text, err := config.Read(path)
	if err != nil || versions.HashOf(text) != held.FileHash {
		return nil
	}
	v := &held.Version
	why := ""
	if v.Reason != "" {
		why = " (" + v.Reason + ")"
	}
	return config.Problems{{
		File: path, Cause: fmt.Sprintf("the file is not in force in the gateway of %s: version %s is, put there by %s%s", data, v.Hash, v.Author, why),
		Fix: "change the file and reload it, or put it in force as it is with sluice reload --follow",
	}}
}

func (c *checked) add(severity, name string, ps config.Problems) {
	for _, p := range ps {
		c.Findings = append(c.Findings, finding{severity, name, p.Line, p.Col, p.Path, p.Cause, p.Fix})
	}
}

func (c *checked) view() view {
	v := view{data: c, columns: []string{"severity", "file", "line", "column", "path", "cause", "fix"}}
	var text strings.Builder
	for _, f := range c.Findings {
		at, line, column := f.File, "", ""
		if f.Line > 0 {
			line, column = count(f.Line), count(f.Column)
			at = fmt.Sprintf("%s:%s:%s", f.File, line, column)
		}
		v.rows = append(v.rows, []string{f.Severity, f.File, line, column, f.Path, f.Cause, f.Fix})
		fmt.Fprintf(&text, "%s: %s: ", at, f.Severity)
		if f.Path != "" {
			text.WriteString(f.Path + ": ")
		}
		text.WriteString(f.Cause + "\n")
		if f.Fix != "" {
			text.WriteString("    fix: " + f.Fix + "\n")
		}
	}
	v.text = plain(text.String())
	if len(c.Findings) == 0 {
		v.text = "ok\n"
	}
	return v
}

// shown is a path as the user is likely to have written it.
func shown(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rest, ok := strings.CutPrefix(path, dir+string(os.PathSeparator)); ok {
			return rest
		}
	}
	return path
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type configCmd struct {
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of the configuration file, for editors."`
	Reload configReloadCmd `cmd:"" help:"Have the gateway read its configuration again; a failed reload changes nothing."`
}

type configSchemaCmd struct {
	Output string `short:"o" enum:"json,yaml" default:"json" help:"Form of the schema: ${enum} (${default})." placeholder:"FORM"`
}

// Run prints the schema.
func (c *configSchemaCmd) Run(env *Env) error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	return output{c.Output}.print(env.Stdout, view{data: json.RawMessage(schema)})
}
