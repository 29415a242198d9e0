package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sluice/internal/auth"
)

// stage is what all measurements share.
type stage struct {
	o        options
	dir      string
	upstream *process
	address  string // of the upstream
	runs     int    // gateways started, for the names of their directories
}

// gateway is one gateway that runs.
type gateway struct {
	*process
	data    string // address of the data plane
	control string // URL of the admin plane, or of the plain gateway's profiles
	token   string // for control, empty if it needs none
	key     string // credential for the data plane
	journal bool   // it has one, to be waited for
	base    bool   // it is what the other is compared with
}

// pair is both gateways.
type pair struct{ plain, sluice *gateway }

func (p *pair) stop() {
	p.plain.stop()
	p.sluice.stop()
}

// build compiles the gateway of this tree, as a release is.
func build(ctx context.Context, dir string) (string, error) {
	fmt.Fprintln(os.Stderr, "building sluice")
	binary := filepath.Join(dir, "sluice")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "sluice/cmd/sluice")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}

func (s *stage) startUpstream(ctx context.Context) error {
	p, told, err := role(ctx, roleUpstream)
	if err != nil {
		return err
	}
	if len(told) != 1 {
		return fmt.Errorf("the upstream told %q", told)
	}
	s.upstream, s.address = p, told[0]
	return nil
}

func (s *stage) startPair(ctx context.Context) (*pair, error) {
	plain, err := s.startPlain(ctx)
	if err != nil {
		return nil, err
	}
	plain.base = true
	sluice, err := s.startSluice(ctx, s.o.binary)
	if err != nil {
		plain.stop()
		return nil, err
	}
	return &pair{plain, sluice}, nil
}

func (s *stage) startPlain(ctx context.Context) (*gateway, error) {
	if s.o.against != "" {
		return s.startSluice(ctx, s.o.against)
	}
	p, told, err := role(ctx, rolePlain, s.address)
	if err != nil {
		return nil, err
	}
	if len(told) != 2 {
		return nil, fmt.Errorf("the plain gateway told %q", told)
	}
	return &gateway{process: p, data: told[0], control: "http://" + told[1], key: "none"}, nil
}

// configuration has limits at every scope, none of which is ever met: they are
// counted, held and settled like any other. Spend is hard, so that upper bounds
// are held; a request does not wait for its record to be on disk. The upstream
// calls its models by names of its own, so that each body is edited.
const configuration = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
data: %[1]s
lame_duck: 0s
drain: 5s
limits: {requests_per_minute: 1000M, concurrency: 100k}
providers:
  scripted:
    dialect: openai
    base_url: http://%[2]s/v1
    api_key: not-checked
    stops_on_cancel: true
    price: {input: $0.15, output: $0.60}
pools:
  main:
    backends:
      - {name: one, provider: scripted, model: bench-whole, context: 200k, max_output: 16k, capacity: {concurrency: 20k}}
  burst:
    backends:
      - {name: two, provider: scripted, model: bench-burst, context: 200k, max_output: 16k, capacity: {concurrency: 20k}}
  paced:
    backends:
      - {name: three, provider: scripted, model: bench-paced, context: 200k, max_output: 16k, capacity: {concurrency: 20k}}
  open:
    backends:
      - {name: four, provider: scripted, model: bench-open, context: 200k, max_output: 16k, capacity: {concurrency: 20k}}
models:
  whole: {pools: [main], limits: &model {requests_per_minute: 1000M, output_tokens_per_minute: 1000000M, concurrency: 100k}}
  burst: {pools: [burst], limits: *model}
  paced: {pools: [paced], limits: *model}
  open: {pools: [open], limits: *model}
plans:
  bench:
    class: interactive
    spend: hard
    journal_sync: group
    limits:
      requests_per_minute: 1000M
      input_tokens_per_minute: 1000000M
      output_tokens_per_minute: 1000000M
      concurrency: 100k
      spend_per_month: $9000000
    per_project: {requests_per_minute: 1000M, spend_per_day: $9000000}
    per_key: {requests_per_minute: 1000M, concurrency: 100k}
    per_model: {"*": {input_tokens_per_minute: 1000000M, output_tokens_per_minute: 1000000M}}
tenants:
  bench:
    plan: bench
    keys: {client: {secret: "${BENCH_KEY}"}}
`

// startSluice starts the gateway on fresh data.
func (s *stage) startSluice(ctx context.Context, binary string) (*gateway, error) {
	s.runs++
	data := filepath.Join(s.dir, "data-"+strconv.Itoa(s.runs))
	minted, err := auth.Mint("bench")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(data, "sluice.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, data, s.address), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(data, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, "serve", "--config", file)
	cmd.Env = append(os.Environ(), "BENCH_KEY="+minted.Key.Reveal())
	cmd.Stderr = log
	p, err := start(ctx, "sluice", cmd, false)
	if err != nil {
		return nil, err
	}
	g := &gateway{process: p, key: minted.Key.Reveal(), journal: true}
	if err := g.greeted(data); err != nil {
		g.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("sluice did not start: %w\n%s", err, text)
	}
	return g, nil
}

// greeted reads the addresses from what the gateway tells a person, and the
// token from its data.
func (g *gateway) greeted(data string) error {
	line, err := g.out.ReadString('\n')
	if err != nil {
		return err
	}
	for word := range strings.FieldsSeq(line) {
		word = strings.TrimRight(word, ",")
		switch {
		case strings.HasPrefix(word, "http://") && g.data == "":
			g.data = strings.TrimPrefix(word, "http://")
		case strings.HasPrefix(word, "http://"):
			g.control = word
		}
	}
	token, err := os.ReadFile(filepath.Join(data, "admin-token"))
	if err != nil {
		return err
	}
	g.token = strings.TrimSpace(string(token))
	go func() { _, _ = io.Copy(io.Discard, g.out) }()
	return nil
}

// get reads from the control plane.
func (g *gateway) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.control+path, nil)
	if err != nil {
		return nil, err
	}
	if g.token != "" {
		req.Header.Set("Authorization", "Bearer "+g.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, resp.Status, body)
	}
	return body, err
}

// settled waits until everything that was asked of the gateway is over and
// accounted for in its store.
func (g *gateway) settled(ctx context.Context) error {
	if !g.journal {
		return nil
	}
	for deadline := time.Now().Add(time.Minute); ; {
		text, err := g.get(ctx, "/admin/v1/status?limit=1")
		if err != nil {
			return err
		}
		var status struct {
			Open    int `json:"open"`
			Journal struct {
				Lag  int `json:"lag_entries"`
				Open int `json:"open"`
			} `json:"journal"`
		}
		if err := json.Unmarshal(text, &status); err != nil {
			return err
		}
		if status.Open == 0 && status.Journal.Lag == 0 && status.Journal.Open == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the journal does not drain: %s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// heap is what the gateway's Go heap and stacks hold, after a collection.
func (g *gateway) heap(ctx context.Context) (int64, error) {
	text, err := g.get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	var sum int64
	found := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[0] == "#" && (f[1] == "HeapAlloc" || f[1] == "Stack") {
			n, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				return 0, err
			}
			sum += n
			found++
		}
	}
	if found != 2 {
		return 0, fmt.Errorf("the heap profile of %s tells no figures", g.name)
	}
	return sum, nil
}
