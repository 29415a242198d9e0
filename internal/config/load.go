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
	data, err := readFile(path, MaxFile)
	if err != nil {
		return nil, Problems{{File: path, Cause: fmt.Sprintf("cannot read the configuration: %s", err), Fix: "give the path of a YAML file that the process can read"}}
	}
	return Parse(path, data, env)
}

// Parse reads a configuration; name stands in messages and origins. Secrets
// written as file:/path are read now. The error is Problems: all that is wrong
// with it.
func Parse(name string, data []byte, env Env) (*Config, error) {
	return parse(name, data, env, readFile)
}

func parse(name string, data []byte, env Env, read func(string, int64) ([]byte, error)) (*Config, error) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	body, problems := parseYAML(name, data)
	if problems != nil {
		return nil, problems
	}
	d := newDecoder(name, env, body)
	d.readFile = read
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
	c.file, c.pos = d.file, d.pos
	if d.rehearsal {
		c.rehearse()
	}
	v := &validator{decoder: d, c: c}
	v.validate()
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
