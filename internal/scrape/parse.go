package scrape

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"sluice"
	"sluice/internal/route"
)

// The bounds of what is read of an engine.
const (
	MaxBody  = 4 << 20 // bytes of metrics
	maxLine  = 4 << 10 // bytes of a line; longer ones are skipped
	maxCount = int64(1) << 40
)

// series is what a name stands for.
type series uint8

const (
	running series = iota + 1
	waiting
	kvUsage
	cacheConfig
)

var names = map[string]series{
	"vllm:num_requests_running": running, "vllm:num_requests_waiting": waiting,
	"vllm:kv_cache_usage_perc": kvUsage, "vllm:gpu_cache_usage_perc": kvUsage,
	"vllm:cache_config_info": cacheConfig,

	"sglang:num_running_reqs": running, "sglang:num_queue_reqs": waiting,
	"sglang:token_usage": kvUsage, "sglang:cache_config_info": cacheConfig,
}

// Parse reads the load of a model from an engine's metrics; ok is that any figure
// of it was there. Series without a model's name are of every model; an engine that
// serves one under another name is read as it is.
func Parse(text []byte, model string) (l route.Load, ok bool) {
	var named, all reading
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if len(line) == 0 || len(line) > maxLine || line[0] == '#' {
			continue
		}
		name, labels, value, good := split(line)
		if !good {
			continue
		}
		what := names[strings.TrimSuffix(name, "_total")]
		if what == 0 {
			continue
		}
		of := label(labels, "model_name")
		if of == "" || of == model {
			named.add(what, labels, value)
		}
		all.add(what, labels, value)
	}
	if named.seen {
		return named.load(), true
	}
	return all.load(), all.seen
}

// reading sums up the series of one model.
type reading struct {
	seen             bool
	running, waiting int64
	permille         int64
	told             bool
	capacity         int64
}

func (r *reading) add(s series, labels string, value float64) {
	if math.IsNaN(value) || value < 0 {
		return
	}
	switch n := int64(min(value, float64(maxCount))); s {
	case running:
		r.running, r.seen = min(r.running+n, maxCount), true
	case waiting:
		r.waiting, r.seen = min(r.waiting+n, maxCount), true
	case kvUsage:
		r.permille, r.told, r.seen = max(r.permille, permille(value)), true, true
	case cacheConfig:
		size, blocks := number(labels, "block_size", "page_size"), number(labels, "num_gpu_blocks", "num_pages")
		if size > 0 && blocks > 0 && blocks <= maxCount/size {
			r.capacity = min(r.capacity+size*blocks, maxCount)
		}
	}
}

func (r *reading) load() route.Load {
	l := route.Load{Running: r.running, Waiting: r.waiting, KVPermille: -1, KVCapacity: sluice.Tokens(r.capacity)}
	if r.told {
		l.KVPermille = r.permille
	}
	return l
}

// permille is a share from 0 to 1 in thousandths.
func permille(share float64) int64 { return int64(math.Round(min(max(share, 0), 1) * 1000)) }

// split takes a sample apart: name, labels without their braces, value.
func split(line []byte) (name, labels string, value float64, ok bool) {
	s := string(line)
	at := strings.IndexAny(s, "{ ")
	if at < 0 {
		return "", "", 0, false
	}
	name, rest := s[:at], s[at:]
	if rest[0] == '{' {
		end := closing(rest)
		if end < 0 {
			return "", "", 0, false
		}
		labels, rest = rest[1:end], rest[end+1:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil
}

// closing is where the labels end, -1 if nowhere.
func closing(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}

// label is the value of a label, as it is written; empty if it is not there.
func label(labels, name string) string {
	for labels != "" {
		key, rest, ok := strings.Cut(labels, `="`)
		if !ok {
			return ""
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return ""
		}
		if strings.Trim(key, ", ") == name {
			return rest[:end]
		}
		labels = rest[end+1:]
	}
	return ""
}

func number(labels string, names ...string) int64 {
	for _, n := range names {
		if v, err := strconv.ParseInt(label(labels, n), 10, 64); err == nil {
			return v
		}
	}
	return 0
}

// Report reads the header endpoint-load-metrics, "TEXT a=1, b=2" or "JSON {…}"; ok is
// that it tells of memory or of what waits.
func Report(v string) (l route.Load, ok bool) {
	if len(v) > maxLine {
		return l, false
	}
	values := map[string]float64{}
	format, rest, _ := strings.Cut(v, " ")
	switch strings.ToUpper(format) {
	case "TEXT":
		for pair := range strings.SplitSeq(rest, ",") {
			key, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
				values[strings.TrimPrefix(key, "named_metrics.")] = f
			}
		}
	case "JSON":
		var doc struct {
			Named map[string]float64 `json:"named_metrics"`
		}
		if json.Unmarshal([]byte(rest), &doc) != nil {
			return l, false
		}
		values = doc.Named
	}
	var r reading
	for name, s := range map[string]series{"num_requests_running": running, "num_requests_waiting": waiting, "kv_cache_usage_perc": kvUsage} {
		if f, has := values[name]; has {
			r.add(s, "", f)
		}
	}
	_, counts := values["num_requests_waiting"]
	if _, runs := values["num_requests_running"]; counts && !runs {
		r.waiting = 0 // one means nothing without the other
	}
	return r.load(), r.seen
}
