package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"sluice/internal/tabletop/report"
)

func TestJSONGolden(t *testing.T) {
	results := made(shape{policies: []string{"sluice"}, buckets: 2})
	results[0].Phases, results[0].Verdicts = results[0].Phases[:1], results[0].Verdicts[:2]
	results[0].Series.Groups, results[0].Series.Pools = results[0].Series.Groups[:1], results[0].Series.Pools[:1]
	var b bytes.Buffer
	if err := report.JSON(&b, results); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b.Bytes())
}

func TestJSONIsWholeNumbers(t *testing.T) {
	var b bytes.Buffer
	if err := report.JSON(&b, made(shape{policies: []string{"sluice", "naive"}, tenants: 2, buckets: 12})); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version int
		Kind    string
		Passed  bool
		Results []struct {
			Policy string
			Seed   uint64
			Phases []struct {
				All struct {
					TTFT struct {
						P99 int64 `json:"p99_ns"`
					} `json:"ttft"`
					PerGood int64 `json:"cost_per_good_nano"`
				} `json:"all"`
			} `json:"phases"`
		} `json:"results"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != report.JSONVersion || doc.Kind != "sluice.tabletop" || !doc.Passed || len(doc.Results) != 2 {
		t.Errorf("got version %d, kind %q, passed %t, %d results", doc.Version, doc.Kind, doc.Passed, len(doc.Results))
	}
	if got := doc.Results[1].Phases[1].All; got.TTFT.P99 != 36_400_000_000 || got.PerGood != 3_982_474 {
		t.Errorf("got p99 %d ns and %d nano-dollars by useful completion, want 36400000000 and 3982474", got.TTFT.P99, got.PerGood)
	}
}
