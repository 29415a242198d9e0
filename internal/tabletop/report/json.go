package report

import (
	"io"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/tabletop"
)

// JSONVersion is the version of the document that [JSON] writes. Fields may be
// added under one version; what a field means does not change.
const JSONVersion = 1

// document is the outermost object.
type document struct {
	Version int                `json:"version"`
	Kind    string             `json:"kind"`
	Passed  bool               `json:"passed"`
	Results []*tabletop.Result `json:"results"`
}

// JSON writes the machine-readable report: {"version", "kind", "passed",
// "results"}, indented, in the order of the results. Each key names its unit:
// _ns is nanoseconds, _nano nano-dollars, _permille thousandths, all of them
// whole numbers; _per_second is a decimal. A time of −1 in a series means that
// the bucket had no sample; percentiles with "count" 0 mean nothing. "passed"
// is true if the first result is whole and meets every expectation: the others are
// there to be compared with, and are free to fail.
func JSON(w io.Writer, results []*tabletop.Result) error {
	if _, err := compare(results); err != nil {
		return err
	}
	numbers := json.JoinMarshalers(
		json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error { return whole(e, int64(d)) }),
		json.JoinMarshalers(
			json.MarshalToFunc(func(e *jsontext.Encoder, n sluice.Nano) error { return whole(e, int64(n)) }),
			json.MarshalToFunc(func(e *jsontext.Encoder, x float64) error {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					return e.WriteToken(jsontext.Null)
				}
				return e.WriteToken(jsontext.Float(x))
			}),
		),
	)
	out := document{JSONVersion, "sluice.tabletop", stateOf(results[0]) == passed, results}
	if err := json.MarshalWrite(w, out, json.WithMarshalers(numbers), json.Deterministic(true), jsontext.WithIndent("  "), jsontext.EscapeForHTML(true)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// whole writes an integer exactly.
func whole(e *jsontext.Encoder, n int64) error {
	return e.WriteValue(strconv.AppendInt(nil, n, 10))
}
