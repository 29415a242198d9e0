package cli

import (
	"strings"
	"testing"

	"sluice/internal/admin"
)

// TestBatchRows shows what providers' own batch APIs have of a batch.
func TestBatchRows(t *testing.T) {
	b := &admin.BatchDetail{HandedOver: []admin.BatchShare{
		{Provider: "openai", Batch: "batch_1", Lines: 1000, Back: 3},
		{Provider: "openai", Lines: 20},
	}}
	var got []string
	for _, row := range batchRows(b) {
		if row[0] == "handed over" {
			got = append(got, row[1])
		}
	}
	want := "1000 lines to openai as batch_1, 3 taken back\n20 lines to openai as ?, 0 taken back"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
