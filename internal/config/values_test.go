package config

import (
	"encoding"
	"strings"
	"testing"
)

// Each value reads what it writes, and says how to mend what it cannot read.
func TestValues(t *testing.T) {
	for _, tc := range []struct {
		value func() encoding.TextUnmarshaler
		good  map[string]string // text → canonical text
		bad   []string
	}{
		{func() encoding.TextUnmarshaler { return new(Duration) }, map[string]string{"15s": "15s", "90m": "1h30m0s", "0": "0s"}, []string{"", "15", "-1s", "1d"}},
		{func() encoding.TextUnmarshaler { return new(Count) }, map[string]string{"600": "600", "50k": "50k", "1.5M": "1500k", "1_000": "1k", "0": "0", "2G": "2G", "9223372036854775807": "9223372036854775807"}, []string{"", "-1", "k", "1.0001k", "0.5", "1e3", "9223372036854775808", "10000000000G", "1.2.3k", "1 KiB"}},
		{func() encoding.TextUnmarshaler { return new(Bytes) }, map[string]string{"512KiB": "512KiB", "32 MiB": "32MiB", "1GB": "1GB", "1.5GiB": "1536MiB", "7": "7B", "1000": "1KB"}, []string{"", "1k", "-1MiB", "1TiB", "1.5B"}},
		{func() encoding.TextUnmarshaler { return new(Percent) }, map[string]string{"60%": "60%", "0%": "0%", "100%": "100%"}, []string{"60", "101%", "-1%", "0.5%", "%"}},
		{func() encoding.TextUnmarshaler { return new(Money) }, map[string]string{"$100": "$100.00", "0.5": "$0.50", "$0.000000001": "$0.000000001"}, []string{"", "$", "-1", "$1.0000000001", "1 EUR", "1e3"}},
		{func() encoding.TextUnmarshaler { return new(Time) }, map[string]string{"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T12:00:00+02:00": "2026-11-01T12:00:00+02:00"}, []string{"", "1.11.2026", "2026-13-01"}},
		{func() encoding.TextUnmarshaler { return new(LogLevel) }, map[string]string{"debug": "debug", "info": "info", "warn": "warn", "error": "error"}, []string{"", "INFO", "trace"}},
		{func() encoding.TextUnmarshaler { return new(Address) }, map[string]string{"127.0.0.1:80": "", ":0": "", "[::1]:8080": ""}, []string{"", "localhost", "x:http", "x:70000", "::1:80"}},
	} {
		for text, want := range tc.good {
			v := tc.value()
			if err := v.UnmarshalText([]byte(text)); err != nil {
				t.Errorf("%T %q: %v", v, text, err)
				continue
			}
			if m, ok := v.(encoding.TextMarshaler); ok {
				got, err := m.MarshalText()
				if err != nil || string(got) != want {
					t.Errorf("%T %q: got %q, want %q", v, text, got, want)
				}
				if err := tc.value().UnmarshalText(got); err != nil {
					t.Errorf("%T does not read what it writes: %v", v, err)
				}
			}
		}
		for _, text := range tc.bad {
			v := tc.value()
			err, ok := v.UnmarshalText([]byte(text)).(*valueError)
			if !ok || err.fix == "" || !strings.Contains(err.cause, text) && !strings.Contains(err.cause, "port") {
				t.Errorf("%T %q: got %v", v, text, err)
			}
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"api_key", "base_url", "engine", "vllm"}
	for word, want := range map[string]string{
		"apikey": `did you mean "api_key"?`, "bsae_url": `did you mean "base_url"?`, "VLLM": `did you mean "vllm"?`,
		"xyz": "use one of api_key, base_url, engine, vllm", "": "use one of api_key, base_url, engine, vllm",
	} {
		if got := suggest(word, known); got != want {
			t.Errorf("suggest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := editDistance(strings.Repeat("a", 1000), strings.Repeat("b", 1000)); got != 64 {
		t.Errorf("the work is not bounded: %d", got)
	}
}
