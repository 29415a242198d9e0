package rehearsal

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"sluice/internal/config"
	"sluice/internal/tabletop/scenarios"
)

// The sample of docs/tabletop.md is a scenario, on the configuration that
// docs/config.md and the examples begin with, and its table lists what ships.
func TestTabletopDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/tabletop.md")
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindSubmatch(text)
	if sample == nil {
		t.Fatal("there is no sample")
	}
	file, err := os.ReadFile("../../examples/sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) (io.ReadCloser, error) {
		if name != "sluice.yaml" {
			return nil, fs.ErrNotExist
		}
		return io.NopCloser(bytes.NewReader(file)), nil
	}
	lookup := func(string, string) (config.Known, bool) { return config.Known{}, false }
	patched := bytes.Replace(sample[1], []byte("gateway: {file: sluice.yaml}"), []byte("gateway: {file: sluice.yaml, unknown_price: {ceiling: {input: $1, output: $2}}}"), 1)
	s, err := config.ReadScenario("sample.yaml", patched, config.ScenarioOptions{Open: open, Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Policies) != 3 || len(s.Expect) != 4 || len(s.Machines) != 3 {
		t.Errorf("%d policies, %d expectations, %d machines", len(s.Policies), len(s.Expect), len(s.Machines))
	}
	for _, name := range scenarios.Names() {
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("%s is not in the table", name)
		}
	}
}
