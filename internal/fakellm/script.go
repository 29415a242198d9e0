package fakellm

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"
)

// Rule is one line of a script. A rule lets After requests pass, then applies to
// the next Count ones, each with Probability. The first rule of a model that
// applies is taken; the rest count on only when they are reached.
type Rule struct {
	Fault       string  `yaml:"fault"`       // as after a model's '!'; "ok" for none
	After       int     `yaml:"after"`       // requests that pass first
	Count       int     `yaml:"count"`       // requests that it is for; 0 means all that follow
	Probability float64 `yaml:"probability"` // 0 means 1
}

// Script is a provider's scripted behaviour by model; "*" is for models that
// have no rules of their own.
type Script struct {
	Seed   uint64            `yaml:"seed"`
	Models map[string][]Rule `yaml:"models"`
}

// LoadScript reads a script file in YAML, of which JSON is a part.
func LoadScript(path string) (*Script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	s, err := ParseScript(b)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

// ParseScript reads a script. Unknown fields, faults and probabilities out of
// range are errors that name the model and the rule.
func ParseScript(b []byte) (*Script, error) {
	var s Script
	if err := yaml.UnmarshalWithOptions(b, &s, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return &s, s.validate()
}

func (s *Script) validate() error {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		for i, r := range s.Models[name] {
			if _, err := ParseBehaviour(r.Fault); err != nil {
				return fmt.Errorf("models.%s[%d]: %w", name, i, err)
			}
			if r.Probability < 0 || r.Probability > 1 || r.After < 0 || r.Count < 0 {
				return fmt.Errorf("models.%s[%d]: probability is from 0 to 1, after and count are not negative", name, i)
			}
		}
	}
	return nil
}

// director plays scripts.
type director struct {
	mu    sync.Mutex
	seed  uint64
	drawn uint64
	rules map[string][]*played
}

type played struct {
	Rule
	seen, used int
}

func newDirector(seed uint64) *director { return &director{seed: seed, rules: map[string][]*played{}} }

// set replaces a model's rules.
func (d *director) set(model string, rules []Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*played
	for _, r := range rules {
		out = append(out, &played{Rule: r})
	}
	d.rules[model] = out
}

// next is the fault for the model's next request.
func (d *director) next(model string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	rules, ok := d.rules[model]
	if !ok {
		rules = d.rules["*"]
	}
	for _, r := range rules {
		if r.Count > 0 && r.used >= r.Count {
			continue
		}
		if r.seen++; r.seen <= r.After {
			continue
		}
		if r.Probability > 0 && r.Probability < 1 {
			d.drawn++
			if float64(mix(d.seed+d.drawn)>>11)/(1<<53) >= r.Probability {
				continue
			}
		}
		r.used++
		return r.Fault
	}
	return ""
}
