package config

import (
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"sluice/internal/upstream"
)

// Drain bounds how answers are read to their end whose clients have left.
type Drain struct {
	For    Duration `json:"for,omitempty" jsonschema:"longest for one answer, up to 10m"`
	Bytes  Bytes    `json:"bytes,omitempty" jsonschema:"most of one stream"`
	AtOnce Count    `json:"at_once,omitempty" jsonschema:"answers of the provider that are read at a time; beyond them the usage is estimated. Over all providers there are 256"`

	off bool
}

const (
	drainFix = "write off, or {for: 30s, bytes: 4MiB, at_once: 16}"
	maxDrain = Duration(10 * time.Minute)
)

func (d *Drain) setDefaults() {
	*d = Drain{For: Duration(30 * time.Second), Bytes: 4 << 20, AtOnce: 16}
}

func (d *Drain) decodeNode(dec *decoder, n node, path string) {
	d.setDefaults()
	if _, ok := dec.asMapping(n); ok {
		type plain Drain // without this method
		dec.into(n, (*plain)(d), path)
		return
	}
	text, ok := dec.scalar(n, path)
	if ok && text != "off" {
		dec.report(nodePos(n), path, drainFix, "%q does not bound it", text)
	}
	*d = Drain{off: true}
}

// MarshalJSON writes what is read.
func (d Drain) MarshalJSON() ([]byte, error) {
	if d.off {
		return []byte(`"off"`), nil
	}
	type plain Drain // without this method
	return marshal(plain(d))
}

// drainSchema is of off, or of a mapping.
func drainSchema() *jsonschema.Schema {
	type plain Drain // without its method
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration](): pattern(span+"|0", "30s"), reflect.TypeFor[Count](): pattern(`[0-9][0-9_]*(\.[0-9]{1,3})?[kKMG]?`, "16"),
		reflect.TypeFor[Bytes](): pattern(`[0-9][0-9_]*(\.[0-9]{1,3})? ?([KMG]i?B|B)?`, "4MiB"),
	}
	off := words("off")
	s, err := jsonschema.For[plain](&jsonschema.ForOptions{TypeSchemas: types})
	if err != nil {
		return off
	}
	relax(reflect.TypeFor[plain](), s)
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{off, s}}
}

// goesOn is the providers, by their names in the catalogue, that are known to generate
// and bill an answer to its end though its client has left. Of others stops_on_cancel
// and drain say so.
var goesOn = map[string]bool{"gemini": true, "vertex": true, "bedrock": true, "groq": true, "mistral": true, "perplexity": true}

// drain is how the answers of a backend are read on.
func (x *Backend) drain(p *Provider) (out upstream.Drain) {
	d := Drain{off: true}
	switch {
	case p.Drain != nil:
		d = *p.Drain
	case goesOn[x.known(p)]:
		d.setDefaults()
	}
	if d.off || first(x.StopsOnCancel, p.StopsOnCancel, p.Engine != "" || p.Simulated) {
		return out
	}
	return upstream.Drain{For: time.Duration(d.For), Bytes: int64(d.Bytes), AtOnce: int(d.AtOnce)}
}

func (v *validator) drain(path string, p *Provider) {
	d, at := p.Drain, join(path, "drain")
	if d == nil || d.off {
		return
	}
	if first(nil, p.StopsOnCancel, p.Engine != "" || p.Simulated) {
		v.fail(at, "remove it, or write stops_on_cancel: false", "the provider stops when the connection closes: there is nothing to read on")
	}
	if d.For <= 0 || d.For > maxDrain {
		v.fail(join(at, "for"), "write a time up to 10m, such as 30s; off reads nothing on", "%s is out of range", d.For)
	}
	if d.Bytes <= 0 {
		v.fail(join(at, "bytes"), "write an amount such as 4MiB; off reads nothing on", "would read nothing")
	}
	if d.AtOnce <= 0 || d.AtOnce > 256 {
		v.fail(join(at, "at_once"), "write a number from 1 to 256, such as 16; off reads nothing on", "%s is out of range", d.AtOnce)
	}
}
