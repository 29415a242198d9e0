package catalog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// shelf is the models of one provider. Keys are in lower case.
type shelf struct {
	exact    map[string]*listing // by the catalogue's name
	aliases  map[string]*listing
	dated    map[string]*listing // names that a date may follow
	patterns []pattern
}

// pattern is a rule that is less than a whole name.
type pattern struct {
	sign    byte // ^ $ * #
	text    string
	except  string
	listing *listing
}

func newShelf() *shelf {
	return &shelf{exact: map[string]*listing{}, aliases: map[string]*listing{}, dated: map[string]*listing{}}
}

// add places a listing. A name that two rows claim is an error: the file decides
// nothing by its order.
func (s *shelf) add(l *listing, r *Record) error {
	name := strings.ToLower(r.Model)
	if s.exact[name] != nil {
		return fmt.Errorf("%s/%s is there twice", r.Provider, r.Model)
	}
	s.exact[name] = l
	if len(r.Match) == 0 {
		s.dated[name] = l
	}
	for _, m := range r.Match {
		if len(m) < 2 {
			return fmt.Errorf("%s/%s: match %q is too short", r.Provider, r.Model, m)
		}
		text := strings.ToLower(m[1:])
		switch m[0] {
		case '=':
			if other := s.aliases[text]; other != nil && other != l {
				return fmt.Errorf("%s/%s: alias %q is %s's too", r.Provider, r.Model, text, other.entry.Model)
			}
			s.aliases[text] = l
		case '@':
			s.dated[text] = l
		case '^', '$', '*', '#':
			s.patterns = append(s.patterns, pattern{m[0], text, r.Except, l})
		default:
			return fmt.Errorf("%s/%s: match %q has no known sign", r.Provider, r.Model, m)
		}
	}
	return nil
}

// named finds a model by its whole name, or by its name before a date.
func (s *shelf) named(model string) *listing {
	if l := s.exact[model]; l != nil {
		return l
	}
	if l := s.aliases[model]; l != nil {
		return l
	}
	if base, ok := undated(model); ok {
		return s.dated[base]
	}
	return nil
}

// find finds a model by its name or else by the longest pattern that fits. Two
// patterns of one length for different rows are no answer.
func (s *shelf) find(model string) *listing {
	if l := s.named(model); l != nil {
		return l
	}
	var best *listing
	length, tied := 0, false
	for i := range s.patterns {
		p := &s.patterns[i]
		if len(p.text) < length || !p.fits(model) {
			continue
		}
		tied = len(p.text) == length && best != p.listing
		best, length = p.listing, len(p.text)
	}
	if tied {
		return nil
	}
	return best
}

func (p *pattern) fits(model string) bool {
	if p.except != "" && strings.Contains(model, p.except) {
		return false
	}
	switch p.sign {
	case '^':
		return strings.HasPrefix(model, p.text)
	case '$':
		return strings.HasSuffix(model, p.text)
	case '*':
		return strings.Contains(model, p.text)
	}
	rest, ok := strings.CutPrefix(model, p.text)
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// undated cuts "-20251001", "@20251001" or "-2025-10-01" off.
func undated(model string) (string, bool) {
	for _, form := range []string{"-dddddddd", "@dddddddd", "-dddd-dd-dd"} {
		n := len(model) - len(form)
		if n > 0 && shaped(model[n:], form) {
			return model[:n], true
		}
	}
	return "", false
}

func shaped(s, form string) bool {
	for i := range len(form) {
		isDigit := s[i] >= '0' && s[i] <= '9'
		if form[i] == 'd' && !isDigit || form[i] != 'd' && s[i] != form[i] {
			return false
		}
	}
	return true
}

// spellings are other names of providers that people give to their accounts.
var spellings = map[string]string{
	"google": "gemini", "google-ai": "gemini", "google-ai-studio": "gemini", "vertex-ai": "vertex", "google-vertex": "vertex",
	"azure-openai": "azure", "aws": "bedrock", "aws-bedrock": "bedrock", "amazon-bedrock": "bedrock", "x-ai": "xai", "grok": "xai",
	"together-ai": "together", "togetherai": "together", "fireworks-ai": "fireworks", "mistralai": "mistral", "moonshotai": "moonshot",
	"z-ai": "zai", "zhipu": "zai", "claude": "anthropic",
}

// shelf finds a provider by name, in lower case; nil if it is none that the catalogue knows.
func (c *Catalog) shelf(provider string) *shelf {
	if s := c.providers[provider]; s != nil {
		return s
	}
	return c.providers[spellings[provider]]
}

// anywhere finds a model at any provider by its whole name, if all the providers
// that list it agree on its price.
func (c *Catalog) anywhere(model string) *listing {
	var found *listing
	for _, provider := range slices.Sorted(maps.Keys(c.providers)) {
		l := c.providers[provider].named(model)
		if l == nil {
			continue
		}
		if found != nil && !samePrices(found, l) {
			return nil
		}
		if found == nil {
			found = l
		}
	}
	return found
}

// samePrices reports whether two listings charge the same at all times.
func samePrices(a, b *listing) bool {
	if len(a.prices) != len(b.prices) {
		return false
	}
	for i, p := range a.prices {
		x, y := *p, *b.prices[i]
		x.Provider, x.Model, y.Provider, y.Model = "", "", "", ""
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
