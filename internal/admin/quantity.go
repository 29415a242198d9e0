package admin

import (
	"encoding"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
)

// Quantity is a figure of a plan as it was sent: a number, or the text that the
// command line takes, such as 20/min, 25% or 1500,2%:100k. Both are read exactly.
// Empty is not given.
type Quantity string

// UnmarshalJSON takes a number or a string.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*q = Quantity(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("a figure is a number or a text")
	}
	*q = Quantity(n)
	return nil
}

// Schema implements huma.SchemaProvider.
func (Quantity) Schema(huma.Registry) *huma.Schema {
	most := 200
	return &huma.Schema{OneOf: []*huma.Schema{{Type: "number"}, {Type: "string", MaxLength: &most}}}
}

// figure is a quantity, the field that it came in and where it goes to.
type figure struct {
	param string
	text  Quantity
	to    encoding.TextUnmarshaler
}

// readFigures reads those that were given.
func readFigures(figures ...figure) error {
	for _, f := range figures {
		if f.text == "" {
			continue
		}
		if err := f.to.UnmarshalText([]byte(f.text)); err != nil {
			e := *sluice.AsError(err)
			e.Param = f.param
			return &e
		}
	}
	return nil
}
