package config

import (
	"encoding"
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"sluice"
)

// Load reads a configuration file. The error is Problems: all that is wrong
// with it.
func Load(path string, env Env) (*Config, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, env)
}

// Read reads the bytes of a configuration file. The error is Problems.
func Read(path string) ([]byte, error) {
	data, err := readFile(path, MaxFile)
	if err != nil {
		return nil, Problems{{File: path, Cause: fmt.Sprintf("cannot read the configuration: %s", err), Fix: "give the path of a YAML file that the process can read"}}
	}
	return data, nil
}

// Parse reads a configuration; name stands in messages and origins. Secrets
// written as file:/path are read now. The error is Problems: all that is wrong
// with it.
func Parse(name string, data []byte, env Env) (*Config, error) {
	return ParseWith(name, data, ParseOptions{Env: env})
}

// ParseOptions is what a configuration is read with. The zero value knows no variable.
type ParseOptions struct {
	Env     Env
	Changes *Changes // made to what the text says, before it is checked; nil makes none
	Marks   Marks    // of secrets that were taken out of the text; see Config.Kept
	// Unmarked takes a mark whose secret is gone for a secret: for a configuration
	// that is compared and never put in force.
	Unmarked bool
}

// ParseWith is Parse of a text that was kept, and changed since.
func ParseWith(name string, data []byte, o ParseOptions) (*Config, error) {
	return parse(name, data, o, readFile)
}

func parse(name string, data []byte, o ParseOptions, read func(string, int64) ([]byte, error)) (*Config, error) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	body, problems := parseYAML(name, data)
	if problems != nil {
		return nil, problems
	}
	d := newDecoder(name, o.Env, body)
	d.readFile, d.changes, d.marks, d.anyMark = read, o.Changes, o.Marks, o.Unmarked
	return d.config(body)
}

// newDecoder makes one for a file whose document is body, nil if it is empty.
func newDecoder(name string, env Env, body node) *decoder {
	d := &decoder{
		file: name, env: env, readFile: readFile,
		anchors: make(map[string]node), pos: make(map[string]Pos), broken: make(map[string]bool), values: make(map[string]string),
	}
	if body != nil {
		ast.Walk(d, body)
	}
	return d
}

// config decodes a configuration and checks it. The error is Problems.
func (d *decoder) config(body node) (*Config, error) {
	c := &Config{}
	c.setDefaults()
	if body != nil {
		d.into(body, c, "")
	}
	c.file, c.pos, c.standing, c.values = d.file, d.pos, d.standing, d.expanded()
	if d.rehearsal {
		c.rehearse()
	}
	d.apply(c, d.changes)
	if v := (&validator{decoder: d, c: c}); !d.anyMark { // a mark is no address and no key
		v.validate()
	}
	if len(d.problems) > 0 {
		d.problems.sort()
		return nil, d.problems
	}
	return c, nil
}

// Visit collects anchors, for ast.Walk.
func (d *decoder) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		d.anchors[a.Name.GetToken().Value] = a.Value
	}
	return d
}

var classWords = []string{"interactive", "standard", "batch"}

// explain gives an error of a value its fix.
func explain(t encoding.TextUnmarshaler, text string, err error) error {
	switch t.(type) {
	case *sluice.Class:
		return wrong(suggest(text, classWords), "%q is not a class", text)
	default:
		return err
	}
}
