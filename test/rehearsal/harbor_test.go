package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/internal/app"
	"sluice/internal/auth"
	"sluice/internal/config"
	"sluice/internal/fakellm"
	"sluice/internal/tabletop"
)

const harbor = "../../examples/harbor/"

func harborScenario(t *testing.T) *tabletop.Scenario {
	t.Helper()
	s, err := config.LoadScenario(harbor+"scenario.yaml", config.ScenarioOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Harbor's own configuration holds its targets on the day of the case files; without
// it, or without its headroom, it would not.
func TestHarborScenario(t *testing.T) {
	long(t)
	t.Parallel()
	s := harborScenario(t)
	s.Name = "examples/harbor" // apart from the one that ships
	for seed := 1; seed <= seeds(t); seed++ {
		judged(t, run(t, s, config.PolicySluice, seed))
		compared(t, run(t, s, config.PolicyNaive, seed))
		compared(t, run(t, s, "no-headroom", seed))
	}
}

// Both plays of Harbor's playbook do what they say, for every seed.
func TestHarborPlays(t *testing.T) {
	long(t)
	t.Parallel()
	text, err := os.ReadFile(harbor + "playbook.md")
	if err != nil {
		t.Fatal(err)
	}
	s := harborScenario(t)
	s.Name = "examples/harbor"
	plays := map[string]string{"more-replicas": "source cases", "bound-cases": "source chat"} // whose first token comes earlier
	for _, m := range regexp.MustCompile(`scenario\.yaml --act ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
		whose, ok := plays[m[1]]
		if !ok {
			t.Errorf("the play %s is not measured", m[1])
			continue
		}
		delete(plays, m[1])
		var gains []float64
		for seed := 1; seed <= seeds(t); seed++ {
			with := figuresOf(t, phaseOf(t, run(t, s, config.PolicySluice, seed, m[1]), "after"), whose)
			without := figuresOf(t, phaseOf(t, run(t, s, config.PolicySluice, seed), "after"), whose)
			gains = append(gains, (without.TTFT.P50 - with.TTFT.P50).Seconds())
		}
		if mean, e := spread(gains); slices.Min(gains) <= 0 || len(gains) > 1 && mean <= 2*e {
			t.Errorf("%s: the first token of %s comes earlier by %v", m[1], whose, gains)
		}
	}
	if len(plays) > 0 || len(s.Acts) != 2 {
		t.Errorf("not in the playbook: %v; the scenario has %d acts", plays, len(s.Acts))
	}
}

// A gateway with Harbor's configuration serves each of its requests, as the README
// sends them. Its replicas are played by the scripted provider, under their own
// addresses.
func TestHarborServes(t *testing.T) {
	t.Parallel()
	provider, err := fakellm.New(fakellm.Options{Instant: true})
	if err != nil {
		t.Fatal(err)
	}
	replicas := httptest.NewServer(provider)
	defer func() {
		replicas.Close()
		provider.Close()
	}()
	keys := map[string]string{}
	for _, name := range []string{"HARBOR_CHAT_KEY", "HARBOR_CASES_KEY"} {
		minted, err := auth.Mint("test")
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = minted.Key.Reveal()
	}
	a, err := app.New(t.Context(), app.Options{
		ConfigPath: harbor + "sluice.yaml", Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Data: t.TempDir(),
		Getenv: func(name string) (string, bool) { v, ok := keys[name]; return v, ok },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, replicas.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	sent := curls(t)
	files, err := filepath.Glob(harbor + "requests/*.json")
	if err != nil || len(files) < 4 || len(sent) != len(files) {
		t.Fatalf("%d requests, of which the README sends %d: %v", len(files), len(sent), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		served(t, "http://"+a.Addr(), name, sent[name], keys)
	}
}

// curls are the README's requests, by the file that they send: its key's variable and
// headers.
func curls(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(harbor + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	line := regexp.MustCompile(`(?m)^curl .*Bearer \$([A-Z_]+)"(.*) -d @examples/harbor/requests/(\S+)$`)
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		out[m[3]] = []string{m[1]}
		for _, h := range regexp.MustCompile(`-H '([^']*)'`).FindAllStringSubmatch(m[2], -1) {
			out[m[3]] = append(out[m[3]], h[1])
		}
	}
	return out
}

func served(t *testing.T, base, name string, how []string, keys map[string]string) {
	t.Helper()
	if len(how) == 0 {
		t.Errorf("the README does not send %s", name)
		return
	}
	body, err := os.ReadFile(harbor + "requests/" + name)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+keys[how[0]])
	for _, h := range how[1:] {
		key, value, _ := strings.Cut(h, ": ")
		req.Header.Set(key, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("sluice-backend"), "gpu-") {
		t.Errorf("%s: status %d from %q: %s", name, res.StatusCode, res.Header.Get("sluice-backend"), answer)
		return
	}
	var asked struct {
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		t.Fatal(err)
	}
	whole := json.Valid(answer)
	if asked.Stream {
		whole = bytes.Contains(answer, []byte("data: [DONE]"))
	}
	if !whole || !bytes.Contains(answer, []byte(`"usage"`)) {
		t.Errorf("%s: not a whole answer: %s", name, answer)
	}
}
