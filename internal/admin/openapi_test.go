package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"

	"sluice"
	"sluice/internal/engine"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// TestOpenAPIDocument holds docs/openapi.json to the API with every part that an option
// brings; -update rewrites it.
func TestOpenAPIDocument(t *testing.T) {
	const file = "../../docs/openapi.json"
	var routing fakeRouting
	var cancelled []string
	b := newBench(t, func(o *Options) {
		o.Routing, o.Batches, o.Cache = routing.routing(), fakeBatches(&cancelled), keptAnswers()
		o.View = func(int) engine.View { return engine.View{} }
		o.Look = func(engine.Zoom, int) engine.View { return engine.View{} }
		o.Operate = func(engine.Order) (bool, error) { return false, nil }
		o.Pin = func(context.Context, engine.Order) (bool, bool, error) { return false, false, nil }
		o.Preview = func(context.Context, sluice.PoolID, int, time.Duration) (LadderPreview, error) {
			return LadderPreview{}, nil
		}
		o.Runtime = func() Runtime { return Runtime{} }
		o.Reload = func(context.Context, Reload) (Reloaded, error) { return Reloaded{}, nil }
		o.Flush = func(context.Context) error { return nil }
		o.HasModel, o.HasHook = func(string) bool { return true }, func(string) bool { return true }
		o.Metrics = http.NotFoundHandler()
		for _, part := range reflect.ValueOf(*o).Fields() {
			switch part.Kind() {
			case reflect.Func, reflect.Interface, reflect.Pointer, reflect.Map:
				if part.IsNil() {
					t.Errorf("a part of the API is left out of the document: a %v", part.Type())
				}
			}
		}
	})
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
