package wire

import (
	"sluice"
	"sluice/internal/route"
)

// ops is a set of operations.
type ops uint64

const (
	chatOp        = ops(1) << Chat
	completionsOp = ops(1) << Completions
	embeddingsOp  = ops(1) << Embeddings
	messagesOp    = ops(1) << Messages
	countOp       = ops(1) << CountTokens
	responsesOp   = ops(1) << Responses
	openaiOps     = chatOp | completionsOp | embeddingsOp | responsesOp | asideOps
	anthropicOps  = messagesOp | countOp
	textOps       = chatOp | completionsOp
	allOps        = openaiOps | anthropicOps
)

// member is a top-level member that the gateway understands.
type member struct {
	name string
	ops  ops
	read func(*scanner)
}

// members is every member that decides what a request costs, where it goes or
// whose it is. A key that folds to one of them is refused for every operation,
// since some servers match keys without regard to case.
var members = []member{
	{"model", allOps | converseOp, (*scanner).readModel},
	{"stream", textOps | messagesOp | converseOp | responsesOp, func(s *scanner) { s.h.Stream = s.boolean("stream") }},
	{"stream_options", textOps, (*scanner).readStreamOptions},
	{"max_tokens", textOps | messagesOp, (*scanner).readMaxTokens},
	{"max_completion_tokens", chatOp, (*scanner).readMaxCompletionTokens},
	{"max_output_tokens", responsesOp, (*scanner).readMaxOutputTokens},
	{"echo", completionsOp, func(s *scanner) { s.echo = s.boolean("echo") }},
	{"n", textOps, func(s *scanner) { s.n = s.count("n") }},
	{"best_of", textOps, func(s *scanner) { s.bestOf = s.count("best_of") }},
	{"user", openaiOps, func(s *scanner) { s.user, _ = s.word("user", 1<<12) }},
	{"safety_identifier", openaiOps, func(s *scanner) { s.safetyID, _ = s.word("safety_identifier", 1<<12) }},
	{"metadata", anthropicOps, (*scanner).readMetadata},
	{"service_tier", allOps, func(s *scanner) { s.h.ServiceTier, _ = s.word("service_tier", 64) }},
	{"messages", chatOp | anthropicOps, (*scanner).readMessages},
	{"system", anthropicOps, (*scanner).content},
	{"prompt", completionsOp | responsesOp, (*scanner).readPrompt},
	{"suffix", completionsOp, (*scanner).content},
	{"input", embeddingsOp | responsesOp, (*scanner).readInputs},
	{"instructions", responsesOp, (*scanner).content},
	{"tools", chatOp | anthropicOps | responsesOp, (*scanner).readTools},
	{"functions", chatOp, (*scanner).readTools},
	{"parallel_tool_calls", chatOp | responsesOp, (*scanner).readParallel},
	{"tool_choice", anthropicOps, (*scanner).readToolChoice},
	{"response_format", textOps, (*scanner).readResponseFormat},
	{"structured_outputs", textOps, needs(route.NeedJSONSchema)},
	{"guided_json", textOps, needs(route.NeedJSONSchema)},
	{"guided_regex", textOps, needs(route.NeedJSONSchema)},
	{"guided_choice", textOps, needs(route.NeedJSONSchema)},
	{"guided_grammar", textOps, needs(route.NeedJSONSchema)},
	{"output_config", anthropicOps, (*scanner).readOutputConfig},
	{"output_format", anthropicOps, needs(route.NeedJSONSchema)},
	{"text", responsesOp, (*scanner).readText},
	{"reasoning", responsesOp, (*scanner).readReasoning},
	{"include", responsesOp, (*scanner).readInclude},
	{"top_logprobs", responsesOp, (*scanner).readTopLogprobs},
	{"max_tool_calls", responsesOp, (*scanner).readMaxToolCalls},
	{"store", responsesOp | chatOp, (*scanner).readStore},
	{"background", responsesOp, func(s *scanner) { s.h.Background = s.boolean("background") }},
	{"previous_response_id", responsesOp | chatOp, reads(route.StateResponse, "previous_response_id")},
	{"conversation", responsesOp, reads(route.StateConversation, "conversation")},
	{"reasoning_effort", chatOp, (*scanner).readEffort},
	{"thinking", anthropicOps, (*scanner).readThinking},
	{"logprobs", textOps, (*scanner).readLogprobs},
	{"cache_control", anthropicOps, needs(route.NeedCache)},
	{"anthropic_version", anthropicOps, func(s *scanner) { _, s.h.version = s.word("anthropic_version", 64) }},
	{"anthropic_beta", anthropicOps, func(s *scanner) { s.ws(); s.h.betas = s.skip() }},
	{"temperature", textOps | messagesOp | responsesOp, sampling(route.NeedTemperature, "1")},
	{"top_p", textOps | messagesOp | responsesOp, sampling(route.NeedTopP, "1")},
	{"top_k", textOps | messagesOp, sampling(route.NeedTopK, "0", "-1")},
	{"min_p", textOps, sampling(route.NeedMinP, "0")},
	{"presence_penalty", textOps, sampling(route.NeedPresence, "0")},
	{"frequency_penalty", textOps, sampling(route.NeedFrequency, "0")},
	{"repetition_penalty", textOps, sampling(route.NeedRepetition, "1")},
	{"seed", textOps, needs(route.NeedSeed)},
	{"logit_bias", textOps, (*scanner).readLogitBias},
	{"stop", textOps, (*scanner).readStop},
	{"stop_sequences", messagesOp, (*scanner).readStop},
	{"modalities", chatOp, (*scanner).readModalities},
	{"audio", chatOp, needs(route.NeedAudioOutput)},
	{"prediction", chatOp, (*scanner).readPrediction},
	{"web_search_options", chatOp, (*scanner).readServerTool},
	{"mcp_servers", anthropicOps, (*scanner).readServerTool},
	{"container", anthropicOps, reads(route.StateContainer, "container")},
	{"documents", chatOp, (*scanner).content},
	{"n_predict", textOps | messagesOp | responsesOp, privileged("n_predict")}, // llama.cpp obeys it before max_tokens
	{"num_predict", textOps | messagesOp | responsesOp, privileged("num_predict")},
	{"max_new_tokens", textOps | messagesOp | responsesOp, privileged("max_new_tokens")},
	{"priority", openaiOps, privileged("priority")},
	{"request_id", openaiOps, privileged("request_id")},
	{"rid", openaiOps, privileged("rid")},
	{"chat_template", openaiOps, privileged("chat_template")},
	{"chat_template_kwargs", openaiOps, privileged("chat_template_kwargs")},
	{"logits_processors", textOps | responsesOp, privileged("logits_processors")},
	{"kv_transfer_params", textOps | responsesOp, privileged("kv_transfer_params")},
	{"cache_salt", openaiOps, (*scanner).readCacheSalt},
	{"truncate_prompt_tokens", openaiOps, privileged("truncate_prompt_tokens")},
	{"mm_processor_kwargs", openaiOps, privileged("mm_processor_kwargs")},
	{"vllm_xargs", textOps | responsesOp, privileged("vllm_xargs")},
}

// EngineFields are the members that steer a self-run engine and that a tenant may be
// allowed. Those that bound the output in another way than max_tokens are not among
// them: an engine that obeyed them would go past what is held.
var EngineFields = []string{
	"priority", "request_id", "rid", "chat_template", "chat_template_kwargs", "logits_processors", "kv_transfer_params", "cache_salt",
	"truncate_prompt_tokens", "mm_processor_kwargs", "vllm_xargs",
}

// known finds the reader of a member of the operation, nil if it has none.
func known(key []byte, op Operation) func(*scanner) {
	if op == Converse {
		for i := range converseMembers {
			if converseMembers[i].name == string(key) {
				return converseMembers[i].read
			}
		}
	}
	if op.Aside() {
		for i := range asideMembers {
			if m := &asideMembers[i]; m.name == string(key) && m.ops&(1<<op) != 0 {
				return m.read
			}
		}
	}
	for i := range members {
		if members[i].name == string(key) {
			if members[i].ops&(1<<op) != 0 {
				return members[i].read
			}
			return nil
		}
	}
	return nil
}

func (s *scanner) readCacheSalt() {
	s.ws()
	start := s.i
	privileged("cache_salt")(s)
	s.h.cacheSalt = span{start, s.i}
}

// privileged notes a member that steers a self-run engine.
func privileged(name string) func(*scanner) {
	return func(s *scanner) {
		if !s.null() {
			s.skip()
			s.h.Privileged = append(s.h.Privileged, name)
		}
	}
}

func (s *scanner) readModel() {
	s.h.Model, s.h.model = s.word("model", MaxModelName)
}

// readPrompt takes the text of completions, and the prompt of Responses that the
// provider keeps.
func (s *scanner) readPrompt() {
	if s.h.Op == Responses {
		s.readStoredPrompt()
		return
	}
	s.readInput("prompt")
}

func (s *scanner) readInputs() {
	if s.h.Op == Responses {
		s.readInputItems()
		return
	}
	s.readInput("input")
}

func (s *scanner) count(param string) int64 {
	v, _ := s.integer(param, maxChoices+1)
	if v > maxChoices || v == 0 {
		s.reject(param, "must be from 1 to 4096")
	}
	return v
}

func (s *scanner) readMaxTokens() {
	v, at := s.integer("max_tokens", maxOutputAsked)
	s.h.maxTokens, s.h.maxTokensIs = at, sluice.Tokens(v)
	s.outputBound("max_tokens", v)
}

func (s *scanner) readMaxCompletionTokens() {
	v, at := s.integer("max_completion_tokens", maxOutputAsked)
	s.h.maxCompletionTokens, s.h.maxCompletionTokensIs = at, sluice.Tokens(v)
	s.outputBound("max_completion_tokens", v)
}

// outputBound takes the larger of two fields that both bound the output: which one
// counts is the backend's choice. A bound of 0 is refused but for what means
// something by it, see finish: servers that take it for no bound at all are common.
func (s *scanner) outputBound(param string, v int64) {
	if v == 0 && (s.h.Op == Chat || s.h.Op == Responses) {
		s.reject(param, atLeastOne)
	}
	if v >= 0 {
		s.h.HasMaxOutput = true
		s.h.MaxOutput = max(s.h.MaxOutput, sluice.Tokens(v))
	}
}

// inner reads an object whose members are known by name; others are skipped. The
// known names may not be written in another case.
func (s *scanner) inner(param string, fields []field) span {
	if c := s.ws(); c != '{' {
		at := s.skip()
		if c != 'n' {
			s.reject(param, "must be an object")
		}
		return at
	}
	start := s.i
next:
	for o := s.object(); s.member(&o); {
		key := s.key(&o)
		for _, f := range fields {
			if f.name == string(key) {
				f.read(s)
				continue next
			}
			if equalFold(key, f.name) {
				s.reject(param+"."+f.name, "is written in another case here: keys are case-sensitive")
			}
		}
		s.skip()
	}
	return span{start, s.i}
}

// field is a member of an inner object.
type field struct {
	name string
	read func(*scanner)
}

var streamOptionFields = []field{
	{"include_usage", func(s *scanner) {
		s.h.IncludeUsage, s.h.includeUsage = s.flag("stream_options.include_usage")
	}},
	{"continuous_usage_stats", func(s *scanner) {
		s.h.ContinuousUsage, s.h.continuousUsage = s.flag("stream_options.continuous_usage_stats")
	}},
}

func (s *scanner) flag(param string) (bool, span) {
	s.ws()
	start := s.i
	v := s.boolean(param)
	return v, span{start, s.i}
}

func (s *scanner) readStreamOptions() {
	c := s.ws()
	s.h.streamOptions = s.inner("stream_options", streamOptionFields)
	if at := s.h.streamOptions; c == '{' && s.lexer.err == nil {
		inside := lexer{b: s.b[:at.end], i: at.start + 1}
		s.h.streamOptionsEmpty = inside.ws() == '}'
	}
	s.h.streamOptionsNull = c == 'n'
}

func (s *scanner) readMetadata() {
	s.inner("metadata", metadataFields)
}

var metadataFields = []field{
	{"user_id", func(s *scanner) { s.metaID, _ = s.word("metadata.user_id", 1<<12) }},
}

// readPrediction bounds what rejected predictions can add to the bill by the
// bytes of the prediction.
func (s *scanner) readPrediction() {
	if !s.null() {
		s.h.Prediction = sluice.Tokens(s.skip().len())
	}
}

func (s *scanner) readServerTool() {
	c := s.ws()
	at := s.skip()
	if c == 'n' || c == '[' && bytesTrimmed(s.b[at.start+1:at.end-1]) == 0 {
		return
	}
	s.again(at)
	s.serverTool(-1, true)
}
