package config

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice"
)

// Degrade is the consent of a plan or tenant to a smaller model while a pool is short of
// capacity.
type Degrade struct {
	Model string `json:"model" jsonschema:"that may serve requests in place of the one that they ask for"`

	off bool
}

func (g *Degrade) decodeNode(dec *decoder, n node, path string) {
	if _, ok := dec.asMapping(n); ok {
		type plain Degrade // without this method
		dec.into(n, (*plain)(g), path)
		return
	}
	text, ok := dec.scalar(n, path)
	if ok && text != "off" {
		dec.report(nodePos(n), path, "write {model: NAME}, or off", "%q does not name a model", text)
	}
	*g = Degrade{off: true}
}

// MarshalJSON writes what is read.
func (g Degrade) MarshalJSON() ([]byte, error) {
	if g.off {
		return []byte(`"off"`), nil
	}
	type plain Degrade // without this method
	return marshal(plain(g))
}

// degradeSchema is of off, or of a mapping.
func degradeSchema() *jsonschema.Schema {
	off := words("off")
	type plain Degrade // without its method
	s, err := jsonschema.For[plain](nil)
	if err != nil {
		return off
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{off, s}}
}

// model is the one that may serve; empty if none may.
func (g *Degrade) model() sluice.ModelID {
	if g == nil || g.off {
		return ""
	}
	return sluice.ModelID(g.Model)
}

func (v *validator) degrade(path string, g *Degrade) {
	at := join(path, "degrade")
	if g == nil || g.off || v.brokenBelow(at) {
		return
	}
	if !slices.Contains(sorted(v.c.Models), g.Model) {
		v.fail(join(at, "model"), suggest(g.Model, sorted(v.c.Models)), "model %q is not declared", g.Model)
	}
}
