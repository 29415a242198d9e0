package fakellm

import "encoding/json"

// format is what a request says of the structure of the answer, in either dialect.
type format struct {
	Response *struct {
		Schema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Text *struct {
		Format *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Output *struct {
		Format *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

// schema is the JSON schema that the answer is to have, nil if none is asked for.
func (f *format) schema() json.RawMessage {
	switch {
	case f.Response != nil && f.Response.Schema != nil:
		return f.Response.Schema.Schema
	case f.Text != nil && f.Text.Format != nil:
		return f.Text.Format.Schema
	case f.Output != nil && f.Output.Format != nil:
		return f.Output.Format.Schema
	}
	return nil
}

// planJSON lays out an answer that is JSON by a schema, a few bytes to an event.
func (t *turn) planJSON() []stretch {
	a := t.a
	n := max(int64(scale(t.s.count.text(a.json), a.model.Ratio)), 1)
	if t.total, t.cut = n, a.max > 0 && n > a.max; t.cut {
		t.total = a.max
	}
	a.b.Reasoning = 0
	var out []stretch
	const fragment = 7 // bytes; whole runes, for it is ASCII
	for from := 0; from < len(a.json); from += fragment {
		to := min(from+fragment, len(a.json))
		upTo := n * int64(to) / int64(len(a.json))
		if upTo > t.total {
			break
		}
		out = append(out, stretch{upTo: upTo, text: a.json[from:to], call: -1})
	}
	return out
}
