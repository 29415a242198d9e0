package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// TestOpenAPIDocument holds docs/openapi.json to the API; -update rewrites it.
func TestOpenAPIDocument(t *testing.T) {
	const file = "../../docs/openapi.json"
	var routing fakeRouting
	var cancelled []string
	b := newBench(t, func(o *Options) { o.Routing, o.Batches = routing.routing(), fakeBatches(&cancelled) })
	var want bytes.Buffer
	if err := json.Indent(&want, b.api.OpenAPI(), "", " "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/openapi.json differs from the API: run go test ./internal/admin -run TestOpenAPIDocument -update")
	}
}
