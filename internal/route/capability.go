package route

import "strings"

// Needs is a set of things that a request may ask of a backend beside text: what it
// needs of one, or what one lacks.
type Needs uint32

// What a request may need. Sampling parameters count only where they are set to
// something else than what leaving them out means.
const (
	NeedStream      Needs = 1 << iota // an answer in events
	NeedImage                         // images in the input
	NeedAudio                         // audio in the input
	NeedVideo                         // video in the input
	NeedFile                          // documents in the input
	NeedAudioOutput                   // audio in the answer
	NeedTools                         // tools that the client runs
	NeedParallel                      // several tool calls in one answer, asked for in so many words
	NeedServerTools                   // tools that the provider runs
	NeedJSONObject                    // some JSON object as the answer
	NeedJSONSchema                    // JSON by a schema, or by another grammar, as the answer
	NeedReasoning                     // a reasoning effort, or a budget to think with
	NeedLogprobs                      // log probabilities
	NeedChoices                       // several answers
	NeedCache                         // marks of what to cache
	NeedCount                         // tokens counted without an answer
	NeedTemperature                   // sampling
	NeedTopP
	NeedTopK
	NeedMinP
	NeedPresence
	NeedFrequency
	NeedRepetition
	NeedSeed
	NeedLogitBias
	NeedStop
	NeedMediaURL  // media by URL, which the backend fetches itself
	NeedChat      // chat completions, of the OpenAI dialect
	NeedResponses // responses, likewise
	numNeeds      = iota
)

// AllNeeds is everything that a request may need.
const AllNeeds Needs = 1<<numNeeds - 1

// Surfaces are the ways in which backends of a dialect take a request: one may lack
// some and speak the dialect all the same.
const Surfaces = NeedChat | NeedResponses

// Sampling is the sampling parameters.
const Sampling = NeedTemperature | NeedTopP | NeedTopK | NeedMinP | NeedPresence | NeedFrequency | NeedRepetition | NeedSeed | NeedLogitBias | NeedStop

var needNames = [numNeeds]string{
	"stream", "image", "audio", "video", "file", "audio_output", "tools", "parallel_tools", "server_tools",
	"json_object", "json_schema", "reasoning", "logprobs", "n", "cache", "count_tokens",
	"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed", "logit_bias", "stop",
	"media_url", "chat", "responses",
}

// Has reports whether all of n are in the set.
func (s Needs) Has(n Needs) bool { return s&n == n }

// Names lists the set in a fixed order, nil if it is empty. They are the words of
// the configuration.
func (s Needs) Names() []string {
	var out []string
	for i, n := range needNames {
		if s&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

func (s Needs) String() string { return strings.Join(s.Names(), ", ") }

// NeedNamed is the set of one name; false if there is no such thing.
func NeedNamed(name string) (Needs, bool) {
	for i, n := range needNames {
		if n == name {
			return 1 << i, true
		}
	}
	return 0, false
}

// EngineLacks is what a self-run engine of a kind is taken to lack where nobody
// says otherwise: what it refuses, or leaves out without a word. What depends on
// the model that it runs and that it would leave out, such as images and reasoning,
// counts as lacking; tools and JSON are what such engines are run for. What it would
// fetch itself, from the network that it stands in, counts as lacking too: whose
// requests reach what there is for its operator to say. The kinds are those of the
// configuration.
func EngineLacks(kind string) Needs {
	const (
		model    = NeedImage | NeedAudio | NeedVideo | NeedFile | NeedAudioOutput | NeedReasoning
		hosted   = NeedServerTools | NeedMediaURL
		ofOllama = NeedChoices | NeedLogitBias | NeedCache | NeedCount | NeedTopK | NeedMinP | NeedRepetition | NeedParallel
	)
	switch kind {
	case "ollama":
		return model | hosted | ofOllama
	case "llamacpp":
		return model | hosted | NeedChoices
	case "tgi":
		return model | hosted | NeedChoices | NeedLogitBias
	}
	return model | hosted
}
