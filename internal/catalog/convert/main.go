// Command convert makes the catalogue's file of a merged catalogue in the
// schema "llm-catalog/1".
//
//	go run ./internal/catalog/convert -corrections internal/catalog/convert/corrections.json -out internal/catalog/catalog.jsonl SOURCE.json
//
// It applies the rules that package catalog documents, prints what it left out
// and why, and fails on anything that it does not understand.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"sluice/internal/catalog"
)

// source is the merged catalogue.
type source struct {
	Schema  string            `json:"schema"`
	Sources map[string]string `json:"sources"`
	Models  []model           `json:"models"`
}

// model is one of its rows; corrections have the same form.
type model struct {
	Provider string `json:"provider"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	Context  int64  `json:"context"`
	// MaxOutput of the source is a client's default, of a correction the bound.
	MaxOutput int64                  `json:"max_output"`
	CacheMin  int64                  `json:"cache_min_tokens"`
	Lacks     *[]string              `json:"lacks"` // of a correction: all that it is known to lack
	Caps      caps                   `json:"caps"`
	Efforts   []string               `json:"reasoning_levels"`
	Match     *rule                  `json:"match"`
	Prices    map[string]json.Number `json:"prices"`
	Tiers     []prices               `json:"tiers"`
	Variants  map[string]prices      `json:"variants"`
	Fees      map[string]json.Number `json:"fees"`
	AsOf      string                 `json:"asof"`
}

type caps struct {
	Reasoning  *bool `json:"reasoning"`
	Attachment *bool `json:"attachment"`
}

func main() {
	corrections := flag.String("corrections", "", "file of corrections, in the source's form")
	out := flag.String("out", "catalog.jsonl", "file to write")
	flag.Parse()
	if err := run(flag.Arg(0), *corrections, *out); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func run(in, corrections, out string) error {
	var src source
	if err := read(in, &src); err != nil {
		return err
	}
	if src.Schema != "llm-catalog/1" {
		return fmt.Errorf("schema %q is not llm-catalog/1", src.Schema)
	}
	var fixes []model
	if corrections != "" {
		if err := read(corrections, &fixes); err != nil {
			return err
		}
	}
	records, err := convert(src.Models, fixes)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(header(src)); err != nil {
		return err
	}
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}

func read(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func header(src source) catalog.Header {
	h := catalog.Header{Sources: src.Sources}
	for _, day := range src.Sources {
		h.Version = max(h.Version, day)
	}
	return h
}

// convert makes the records, in the order of provider and model.
func convert(models, fixes []model) ([]catalog.Record, error) {
	var records []catalog.Record
	for _, m := range models {
		r, err := record(&m)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", m.Provider, m.ID, err)
		}
		i := slices.IndexFunc(fixes, func(f model) bool { return f.Provider == m.Provider && f.ID == m.ID })
		if i >= 0 {
			if err := correct(r, &fixes[i]); err != nil {
				return nil, fmt.Errorf("correct %s/%s: %w", m.Provider, m.ID, err)
			}
		}
		longWrites(r)
		if r.Unpriced != "" {
			fmt.Printf("unpriced: %s/%s: %s\n", r.Provider, r.Model, r.Unpriced)
		}
		if _, err := r.PriceRow(""); err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	slices.SortFunc(records, func(a, b catalog.Record) int {
		if c := strings.Compare(a.Provider, b.Provider); c != 0 {
			return c
		}
		return strings.Compare(strings.ToLower(a.Model), strings.ToLower(b.Model))
	})
	return unite(records), nil
}

// unite makes one of records whose names differ in case alone: the newer, with
// the older's price if it has none that can be trusted. Records are sorted.
func unite(records []catalog.Record) []catalog.Record {
	out := records[:0]
	for _, r := range records {
		last := len(out) - 1
		if last < 0 || out[last].Provider != r.Provider || !strings.EqualFold(out[last].Model, r.Model) {
			out = append(out, r)
			continue
		}
		newer, older := r, out[last]
		if older.AsOf > newer.AsOf {
			newer, older = older, newer
		}
		fmt.Printf("one of two: %s/%s (%s) and %s (%s)\n", newer.Provider, newer.Model, newer.AsOf, older.Model, older.AsOf)
		if newer.Unpriced != "" {
			newer.Unpriced, newer.Rates, newer.Tiers, newer.Variants = older.Unpriced, older.Rates, older.Tiers, older.Variants
		} else if newer.Rates.Input == older.Rates.Input && newer.Rates.Output == older.Rates.Output {
			newer.Rates, newer.Tiers = older.Rates, older.Tiers
		}
		newer.Match = append(newer.Match, older.Match...)
		out[last] = newer
	}
	return out
}

func record(m *model) (*catalog.Record, error) {
	r := &catalog.Record{
		Provider: m.Provider, Model: m.ID, Name: m.Name, Context: m.Context, Efforts: m.Efforts,
		Reasoning: m.Caps.Reasoning, Attachments: m.Caps.Attachment, AsOf: m.AsOf,
	}
	if r.Name == r.Model {
		r.Name = ""
	}
	r.Lacks = lacks(m.Caps)
	if err := m.Match.flatten(r); err != nil {
		return nil, err
	}
	r.Unpriced = unpriced(m)
	if r.Unpriced != "" {
		return r, nil
	}
	var err error
	if r.Rates, err = rates(m.Prices); err != nil {
		return nil, err
	}
	if r.Rates.Output == "" {
		r.Rates.Output = "0" // an embedding model, unpriced has seen to it
	}
	for _, t := range m.Tiers {
		if err := addTier(&r.Tiers, t); err != nil {
			return nil, err
		}
	}
	r.WebSearch = m.Fees["web_search_per_call"].String()
	r.Request = m.Fees["per_request"].String()
	return r, nil
}

// lacks is what the source says that a model cannot do.
func lacks(c caps) (out []string) {
	if c.Attachment != nil && !*c.Attachment {
		out = append(out, "image", "audio", "video", "file")
	}
	if c.Reasoning != nil && !*c.Reasoning {
		out = append(out, "reasoning")
	}
	return out
}

// correct lays a correction over a record.
func correct(r *catalog.Record, fix *model) error {
	if fix.Context > 0 {
		r.Context = fix.Context
	}
	if fix.Lacks != nil {
		r.Lacks = *fix.Lacks
	}
	r.MaxOutput = fix.MaxOutput
	r.CacheMinimum = fix.CacheMin
	if r.Unpriced != "" {
		return nil
	}
	for name, v := range fix.Variants {
		rates, err := rates(v.byName)
		if err != nil {
			return err
		}
		tiers := []catalog.RecordTier{{Rates: rates}}
		for _, t := range v.Tiers {
			if err := addTier(&tiers, t); err != nil {
				return err
			}
		}
		if r.Variants == nil {
			r.Variants = map[string][]catalog.RecordTier{}
		}
		r.Variants[name] = tiers
	}
	return nil
}
