package replay

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/goccy/go-yaml"

	"sluice"
)

// Config is what `sluice replay` is started with. Options turns it into a run.
type Config struct {
	Trace  string // file, or "synthetic:SHAPE"
	Target string
	Keys   []string // round robin by client
	Map    string   // file of client: key; "*" for the rest

	Speed       float64
	Until       time.Duration // of trace time
	Limit       int
	Rate        float64 // of traces without times
	Model       string
	Dialect     string
	Whole       bool
	Abort       float64
	Seed        uint64
	MaxInput    int64
	MaxOutput   int64
	MaxInFlight int
	Timeout     time.Duration
	Interval    time.Duration
	FakeLLM     []string // base URLs of scripted providers whose books are compared
}

// Options reads the trace and the keys. The transport dials for the run and for
// the providers' books; progress may be nil. The caller adds Ledger.
func (c Config) Options(transport http.RoundTripper, progress io.Writer) (Options, error) {
	rows, err := Open(c.Trace, ReadOptions{Seed: c.Seed, Rate: c.Rate, Until: c.Until, Limit: c.Limit})
	if err != nil {
		return Options{}, err
	}
	o := Options{
		Rows: rows, Target: c.Target, Speed: c.Speed, Model: c.Model, Dialect: Dialect(c.Dialect), Whole: c.Whole,
		Abort: c.Abort, Seed: c.Seed, MaxInput: c.MaxInput, MaxOutput: c.MaxOutput, MaxInFlight: c.MaxInFlight,
		Timeout: c.Timeout, Interval: c.Interval, Transport: transport, Progress: progress,
	}
	for _, k := range c.Keys {
		o.Pool = append(o.Pool, sluice.NewSecret(k))
	}
	if c.Map != "" {
		if o.Keys, err = readKeys(c.Map); err != nil {
			return Options{}, err
		}
	}
	for _, base := range c.FakeLLM {
		o.Backends = append(o.Backends, FakeLLM(base, transport))
	}
	return o, nil
}

// readKeys reads a YAML file of client: key.
func readKeys(path string) (map[string]sluice.Secret, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	var texts map[string]string
	if err := yaml.Unmarshal(b, &texts); err != nil {
		return nil, fmt.Errorf("keys %s: write one \"client: key\" per line: %w", path, err)
	}
	out := make(map[string]sluice.Secret, len(texts))
	for client, key := range texts {
		out[client] = sluice.NewSecret(key)
	}
	return out, nil
}
