package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// generated compares a committed file with what the code makes, or rewrites it.
func generated(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale, rewrite with -update:\n%s", path, diff)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "schema.json", got)
	if again, _ := Schema(); !bytes.Equal(got, again) {
		t.Error("two runs differ")
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	generated(t, "../../docs/config.md", Reference())
}

func TestScenarioSchemaIsCurrent(t *testing.T) {
	got, err := ScenarioSchema()
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "scenario.json", got)
	if again, _ := ScenarioSchema(); !bytes.Equal(got, again) {
		t.Error("two runs differ")
	}
}

func TestScenarioReferenceIsCurrent(t *testing.T) {
	generated(t, "../../docs/scenario.md", ScenarioReference())
}

// sampleFiles are the files that must load, warn of nothing but what is listed,
// and satisfy the schema.
func sampleFiles(t *testing.T) []string {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("examples: %v %v", files, err)
	}
	return append(files, "testdata/design.yaml")
}

// validates makes a check of files against a schema.
func validates(t *testing.T, text []byte) func(data []byte) error {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	rs, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) error {
		// References are quoted as the parser sees them; editors see the file.
		data = reference.ReplaceAll(data, []byte("REF_$1"))
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			return err
		}
		j, err := json.Marshal(v)
		if err != nil {
			return err
		}
		v = nil
		if err := json.Unmarshal(j, &v); err != nil {
			return err
		}
		return rs.Validate(v)
	}
}

func TestSamplesSatisfyTheSchema(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	validate := validates(t, text)
	for _, file := range sampleFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, bad := range []string{"listn: x", "drain: soon", "models: {m: {}}", "plans: {p: {class: fast}}", "limits: {requests: 5}", "providers: {p: {dialect: x}}"} {
		if err := validate([]byte(bad)); err == nil {
			t.Errorf("the schema accepts %q", bad)
		}
	}
}

func TestScenariosSatisfyTheSchema(t *testing.T) {
	text, err := ScenarioSchema()
	if err != nil {
		t.Fatal(err)
	}
	validate := validates(t, text)
	files, err := filepath.Glob("../tabletop/scenarios/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("scenarios: %v %v", files, err)
	}
	for _, file := range append(files, "../../examples/harbor/scenario.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	whole := serves + "traffic: [{tenant: a, arrivals: 1/s, input: 1k, output: 10}]\n"
	if err := validate([]byte(whole)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		"lenght: 5m\n" + whole, strings.Replace(whole, "length: 1m", "", 1), strings.Replace(whole, "1/s", "many", 1),
		strings.Replace(whole, "input: 1k", "input: {p50: x}", 1), whole + "events: [{at: 1s, fail: {backends: a, share: 5}}]", whole + "expect: {}",
	} {
		if err := validate([]byte(bad)); err == nil {
			t.Errorf("the schema accepts %q", bad)
		}
	}
}
