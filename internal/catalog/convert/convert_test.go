package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/catalog"
)

func TestConvert(t *testing.T) {
	tests := []struct {
		name, source, fix string
		want              catalog.Record // Provider and Model are p and the source's id
		err               string
	}{
		{
			name:   "exact decimals",
			source: `{"id":"m","prices":{"input":0.0133,"output":1e-2,"cache_read":0.00125}}`,
			want:   catalog.Record{Rates: catalog.RecordRates{Input: "0.0133", Output: "0.01", CacheRead: "0.00125"}},
		},
		{
			name:   "too fine",
			source: `{"id":"m","prices":{"input":0.0000000001,"output":1}}`,
			err:    "no whole number of nano-dollars",
		},
		{
			name:   "zero that nothing explains",
			source: `{"id":"m","prices":{"input":0.0,"output":0.0}}`,
			want:   catalog.Record{Unpriced: "an input price of zero that nothing says is meant"},
		},
		{
			name:   "zero by name",
			source: `{"id":"m:free","prices":{"input":0.0,"output":0.0}}`,
			want:   catalog.Record{Model: "m:free", Rates: catalog.RecordRates{Input: "0", Output: "0"}},
		},
		{
			name:   "cache read dearer than the input",
			source: `{"id":"m","prices":{"input":1,"output":1,"cache_read":2}}`,
			want:   catalog.Record{Unpriced: "reading the cache is dearer than not reading it"},
		},
		{
			name:   "cache prices that cannot be",
			source: `{"id":"m","prices":{"input":1,"output":1,"cache_read":0.6,"cache_write":0.9}}`,
			want:   catalog.Record{Rates: catalog.RecordRates{Input: "1", Output: "1"}},
		},
		{
			name:   "threshold told as its last token",
			source: `{"id":"m","prices":{"input":1,"output":1},"tiers":[{"above_input_tokens":271999,"input":2,"output":1.5}]}`,
			want: catalog.Record{
				Rates: catalog.RecordRates{Input: "1", Output: "1"},
				Tiers: []catalog.RecordTier{{Above: 272_000, Rates: catalog.RecordRates{Input: "2", Output: "1.5"}}},
			},
		},
		{
			name:   "an hour's cache of Claude",
			source: `{"id":"claude-x","prices":{"input":3,"output":15,"cache_write":3.75}}`,
			want:   catalog.Record{Model: "claude-x", Rates: catalog.RecordRates{Input: "3", Output: "15", CacheWrite: "3.75", CacheWrite1h: "6"}},
		},
		{
			name:   "the source's output is a default, the correction's a bound",
			source: `{"id":"m","max_output":8192,"prices":{"input":1,"output":1}}`,
			fix:    `{"provider":"p","id":"m","max_output":16384,"variants":{"batch":{"input":"0.5","output":"0.5"}}}`,
			want: catalog.Record{
				MaxOutput: 16384, Rates: catalog.RecordRates{Input: "1", Output: "1"},
				Variants: map[string][]catalog.RecordTier{"batch": {{Rates: catalog.RecordRates{Input: "0.5", Output: "0.5"}}}},
			},
		},
		{
			name:   "rules",
			source: `{"id":"m","prices":{"input":1,"output":1},"match":{"or":[{"equals":"m"},{"equals":"n"},{"starts_with":"a"},{"regex":"^m\\.1-\\d{8}$"},{"regex":"^m-\\d"}]}}`,
			want:   catalog.Record{Match: []string{"=n", "^a", "@m.1", "#m-"}, Rates: catalog.RecordRates{Input: "1", Output: "1"}},
		},
		{
			name:   "a regex of no known form",
			source: `{"id":"m","prices":{"input":1,"output":1},"match":{"regex":"^m.*$"}}`,
			err:    "no known form",
		},
		{
			name:   "a price of no known name",
			source: `{"id":"m","prices":{"input":1,"output":1,"video":9}}`,
			err:    "unknown price",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := convert([]model{parse(t, tt.source)}, fixes(t, tt.fix))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Provider = "p"
			if tt.want.Model == "" {
				tt.want.Model = "m"
			}
			if diff := cmp.Diff([]catalog.Record{tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnite(t *testing.T) {
	priced := catalog.RecordRates{Input: "1", Output: "2"}
	got := unite([]catalog.Record{
		{Provider: "p", Model: "GLM", Rates: priced, AsOf: "2026-09"},
		{Provider: "p", Model: "glm", Unpriced: "zero", Context: 7, AsOf: "2026-10"},
	})
	want := []catalog.Record{{Provider: "p", Model: "glm", Rates: priced, Context: 7, AsOf: "2026-10"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func parse(t *testing.T, s string) (m model) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Provider == "" {
		m.Provider = "p"
	}
	return m
}

func fixes(t *testing.T, s string) []model {
	if s == "" {
		return nil
	}
	return []model{parse(t, s)}
}
