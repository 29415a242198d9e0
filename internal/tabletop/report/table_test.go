package report_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/tabletop/report"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", file, diff)
	}
}

func TestTableGolden(t *testing.T) {
	for _, tt := range []struct {
		file  string
		shape shape
		o     report.TableOptions
	}{
		{"pair-80.txt", shape{policies: []string{"sluice", "naive"}, tenants: 1, buckets: 10}, report.TableOptions{Width: 80}},
		{"pair-130.txt", shape{policies: []string{"sluice", "naive"}, tenants: 20, buckets: 10}, report.TableOptions{Width: 130, Unicode: true}},
		{"color-120.txt", shape{policies: []string{"sluice", "naive"}, tenants: 0, buckets: 10}, report.TableOptions{Width: 120, Unicode: true, Color: true}},
		{"alone-100.txt", shape{policies: []string{"sluice"}, buckets: 10, partial: true}, report.TableOptions{Unicode: true}},
		{"three-120.txt", shape{policies: []string{"sluice", "naive", "no-headroom"}, buckets: 10}, report.TableOptions{Width: 120, Unicode: true}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			var b bytes.Buffer
			if err := report.Table(&b, made(tt.shape), tt.o); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.file, b.Bytes())
		})
	}
}
