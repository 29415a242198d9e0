package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice"
)

// Difference is one value in which two configurations differ.
type Difference struct {
	Area string `json:"area" enum:"routing,callers,process" doc:"What it is about: where requests go, who may ask and how much, or the process itself, most of which takes a restart"`
	Path string `json:"path" doc:"Of the value; items of a list by their name where they have one"`
	Was  string `json:"was,omitempty" doc:"Left out where there was none"`
	Now  string `json:"now,omitempty" doc:"Left out where there is none any more"`
}

// Diff is in what two configurations differ, by what they mean: defaults are filled
// in, order counts only in lists whose order means something, and comments and layout
// do not. Secrets are hidden and not compared. It is ordered by area and path.
func Diff(was, now *Config) ([]Difference, error) {
	a, err := was.tree()
	if err != nil {
		return nil, err
	}
	b, err := now.tree()
	if err != nil {
		return nil, err
	}
	f := &differ{conceal: func(s string) string { return concealed(concealed(s, was.values), now.values) }}
	f.walk("", a, b)
	slices.SortStableFunc(f.found, func(x, y Difference) int {
		return slices.Index(areas, x.Area) - slices.Index(areas, y.Area)
	})
	return f.found, nil
}

// tree is the effective configuration as nested maps and lists.
func (c *Config) tree() (out any, err error) {
	text, err := c.JSON()
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return out, d.Decode(&out)
}

// areas are what parts of a configuration are about, in order.
var areas = []string{"routing", "callers", "process"}

func areaOf(path string) string {
	top := path
	if i := strings.IndexAny(path, ".["); i >= 0 {
		top = path[:i]
	}
	switch top {
	case "models", "pools", "providers", "prices", "unknown_price", "policy", "retries", "breaker":
		return areas[0]
	case "plans", "tenants", "limits", "hooks":
		return areas[1]
	}
	return areas[2]
}

type differ struct {
	found   []Difference
	conceal func(string) string
}

func (f *differ) tell(path string, was, now any) {
	w, n := f.conceal(short(was)), f.conceal(short(now))
	f.found = append(f.found, Difference{Area: areaOf(path), Path: f.conceal(path), Was: w, Now: n})
}

// maxShort bounds how much of a value is told, in bytes.
const maxShort = 240

// short is a value in one line; empty for none.
func short(v any) string {
	if v == nil {
		return ""
	}
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > maxShort {
		return strings.ToValidUTF8(string(b[:maxShort]), "") + "…"
	}
	return string(b)
}

func (f *differ) walk(path string, was, now any) {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := now.(map[string]any); ok {
			f.maps(path, a, b)
			return
		}
	case []any:
		if b, ok := now.([]any); ok {
			f.lists(path, a, b)
			return
		}
	}
	if short(was) != short(now) {
		f.tell(path, was, now)
	}
}

func (f *differ) maps(path string, a, b map[string]any) {
	keys := make(map[string]bool, len(a))
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range sorted(keys) {
		f.walk(join(path, k), a[k], b[k])
	}
}

// diffNames are the keys by which items of lists are told apart.
var diffNames = []string{"name", "pool", "tenant"}

// lists compares two lists: item by item where they have names, else as a whole.
func (f *differ) lists(path string, a, b []any) {
	for _, key := range diffNames {
		x, namedA := byName(a, key)
		y, namedB := byName(b, key)
		if !namedA || !namedB || len(a)+len(b) == 0 {
			continue
		}
		for _, item := range append(slices.Clone(a), b...) {
			name := item.(map[string]any)[key].(string)
			p, was := x[name]
			q, is := y[name]
			delete(x, name)
			delete(y, name)
			if was || is {
				f.walk(path+"["+name+"]", p, q)
			}
		}
		if wa, wb := inBoth(a, b, key), inBoth(b, a, key); ordered(path) && !slices.Equal(wa, wb) {
			f.tell(path+" in order", strings.Join(wa, ", "), strings.Join(wb, ", "))
		}
		return
	}
	if short(a) != short(b) || len(a) != len(b) {
		f.tell(path, a, b)
	}
}

// ordered reports whether the order of a list means something: pools of a model are
// tried in it.
func ordered(path string) bool {
	return strings.HasPrefix(path, "models.") || strings.HasPrefix(path, "models[")
}

// byName is a list's items by a key that each of them has and no two share; nil is
// kept out of the map, so that what is not there is nil.
func byName(list []any, key string) (map[string]any, bool) {
	out := make(map[string]any, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		name, ok := m[key].(string)
		if !ok || name == "" || out[name] != nil {
			return nil, false
		}
		out[name] = m
	}
	return out, true
}

// inBoth is the names of a list's items that another list has too, in its order.
func inBoth(list, other []any, key string) (out []string) {
	names, _ := byName(other, key)
	for _, item := range list {
		if name := item.(map[string]any)[key].(string); names[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// expanded is what a reference stands for.
type expanded struct {
	value *sluice.Secret
	ref   string // ${NAME}
}

// expanded is what the references of the file stand for, the longest first.
func (d *decoder) expanded() (out []expanded) {
	byLength := slices.SortedFunc(maps.Keys(d.values), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, v := range byLength {
		s := sluice.NewSecret(v)
		out = append(out, expanded{&s, d.values[v]})
	}
	return out
}

// Conceal puts references to variables back where their values would show.
func (c *Config) Conceal(s string) string { return concealed(s, c.values) }

// concealed puts references back where their values would show.
func concealed(s string, values []expanded) string {
	for _, v := range values {
		s = strings.ReplaceAll(s, v.value.Reveal(), v.ref)
	}
	return s
}
