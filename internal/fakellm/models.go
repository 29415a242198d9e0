package fakellm

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// listModels answers in the dialect that the client speaks: both have this path.
func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	data := []obj{}
	anthropic := r.Header.Get("anthropic-version") != ""
	for _, m := range s.models {
		data = append(data, s.describe(m, m.Name, anthropic))
	}
	if anthropic {
		writeJSON(w, http.StatusOK, obj{
			"data": data, "has_more": false, "first_id": s.models[0].Name, "last_id": s.models[len(s.models)-1].Name,
		})
		return
	}
	writeJSON(w, http.StatusOK, obj{"object": "list", "data": data})
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	base, _ := splitModel(name)
	anthropic := r.Header.Get("anthropic-version") != ""
	m, ok := s.lookup(base)
	if !ok {
		msg := fmt.Sprintf("the model %q does not exist", name)
		if anthropic {
			writeJSON(w, http.StatusNotFound, anthropicError("not_found_error", msg, ""))
			return
		}
		writeJSON(w, http.StatusNotFound, openaiError("invalid_request_error", "model_not_found", msg))
		return
	}
	writeJSON(w, http.StatusOK, s.describe(m, name, anthropic))
}

func (s *Server) describe(m *model, name string, anthropic bool) obj {
	if anthropic {
		return obj{
			"type": "model", "id": name, "display_name": name, "created_at": s.started.UTC().Format(time.RFC3339),
			"max_input_tokens": m.Context, "max_tokens": m.Context,
		}
	}
	o := obj{"id": name, "object": "model", "created": s.started.Unix(), "owned_by": "fakellm"}
	if m.Hosted == nil {
		o["owned_by"], o["root"], o["parent"], o["max_model_len"] = "vllm", name, nil, m.Context
	}
	return o
}

// metrics answers in the names of a current vLLM, one engine per model.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	families := []struct {
		name, kind, help string
		value            func(*engineState) string
	}{
		{"vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", func(e *engineState) string { return itoa(e.load.Running) }},
		{"vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", func(e *engineState) string { return itoa(e.load.Waiting) }},
		{"vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", func(e *engineState) string { return fmt.Sprintf("%g", float64(e.load.Permille())/1000) }},
		{"vllm:num_preemptions_total", "counter", "Cumulative number of preemptions from the engine.", func(*engineState) string { return "0" }},
		{"vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", func(e *engineState) string { return itoa(e.totals.Prefilled + e.totals.CacheHits) }},
		{"vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", func(e *engineState) string { return itoa(e.totals.Generated) }},
		{"vllm:prefix_cache_queries_total", "counter", "Prefix cache queries, in tokens.", func(e *engineState) string { return itoa(e.totals.Prefilled + e.totals.CacheHits) }},
		{"vllm:prefix_cache_hits_total", "counter", "Prefix cache hits, in tokens.", func(e *engineState) string { return itoa(e.totals.CacheHits) }},
		{"vllm:request_success_total", "counter", "Count of successfully processed requests.", func(e *engineState) string { return itoa(e.totals.Done) }},
	}
	engines := s.engines()
	for _, f := range families {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for i := range engines {
			fmt.Fprintf(&b, "%s{engine=\"0\",model_name=%q} %s\n", f.name, engines[i].name, f.value(&engines[i]))
		}
	}
	const block = 16
	fmt.Fprint(&b, "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\n")
	for i := range engines {
		fmt.Fprintf(&b, "vllm:cache_config_info{block_size=\"%d\",engine=\"0\",model_name=%q,num_gpu_blocks=\"%d\"} 1\n",
			block, engines[i].name, engines[i].load.KVCapacity/block)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}
