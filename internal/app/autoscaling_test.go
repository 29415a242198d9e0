package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const autoscaling = "../../examples/autoscaling/"

// objects reads the documents of a file of the cluster.
func objects(t *testing.T, file string) (out []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(autoscaling + file)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o map[string]any
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, field := range []string{"apiVersion", "kind", "metadata"} {
			if o[field] == nil {
				t.Errorf("%s: an object without %s", file, field)
			}
		}
		out = append(out, o)
	}
	return out
}

// at follows a path of keys and, for a list, its first.
func at(t *testing.T, v any, path string) any {
	t.Helper()
	for key := range strings.SplitSeq(path, ".") {
		if l, ok := v.([]any); ok && len(l) > 0 {
			v = l[0]
		}
		m, _ := v.(map[string]any)
		if v = m[key]; v == nil {
			t.Fatalf("no %s in %s", key, path)
		}
	}
	return v
}

// TestAutoscalingExamples runs a gateway with the configuration that ships, and holds
// what the objects beside it ask for to what it answers: the field, the metrics and the
// values of their labels.
func TestAutoscalingExamples(t *testing.T) {
	b := newBench(t)
	text, err := os.ReadFile(autoscaling + "sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:8081", "127.0.0.1:0", "${SLUICE_DATA}", "${DATA}", "${SLUICE_KEY}", "${KEY}", "every: 5s", "every: 1h").Replace(string(text))
	b.write(file)
	b.start()
	defer b.stop()
	pools := objects(t, "keda-metrics-api.yaml")
	trigger := at(t, pools[1], "spec.triggers").([]any)[0]
	path := strings.TrimPrefix(at(t, trigger, "metadata.url").(string), "http://sluice.llm.svc:8081")
	field := at(t, trigger, "metadata.valueLocation").(string)
	status, answer := b.admin("GET", path)
	if n, ok := answer[field].(float64); status != 200 || !ok || n < 2 {
		t.Errorf("GET %s answers %d with %s %v, want 200 and at least min: %v", path, status, field, answer[field], answer)
	}
	_, _, metrics := b.do("GET", "http://"+b.app.AdminAddr()+"/metrics", "", "")
	asks := []string{
		at(t, objects(t, "keda-prometheus.yaml")[0], "spec.triggers.metadata.query").(string),
		at(t, objects(t, "hpa.yaml")[1], "spec.metrics.external.metric.name").(string) + `{pool="chat"}`,
		at(t, objects(t, "hpa.yaml")[0], "data").(map[string]any)["config.yaml"].(string),
	}
	metric := regexp.MustCompile(`sluice_[a-z_]+(\{[^}]*\})?`)
	label := regexp.MustCompile(`([a-z_]+)=~?"([^"]*)"`)
	for _, ask := range asks {
		found := metric.FindAllString(ask, -1)
		if len(found) == 0 {
			t.Errorf("no metric in %q", ask)
		}
		for _, m := range found {
			name, selector, _ := strings.Cut(m, "{")
			for _, l := range slices.Concat(label.FindAllStringSubmatch(selector, -1), [][]string{{"", "pool", "chat"}}) {
				for value := range strings.SplitSeq(l[2], "|") {
					series := regexp.MustCompile(`(?m)^` + name + `\{[^}]*` + l[1] + `="` + value + `"`)
					if !series.MatchString(metrics) {
						t.Errorf("the scrape has no %s with %s=%q", name, l[1], value)
					}
				}
			}
		}
	}
	shipped, _ := filepath.Glob(autoscaling + "*.yaml")
	if len(shipped) != 4 {
		t.Errorf("%d files in %s: which of them is not tested here?", len(shipped), autoscaling)
	}
}
