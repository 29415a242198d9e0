package wire

import "sluice/internal/route"

// Dialect is the family of HTTP shapes that a client or a backend speaks.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"
	Bedrock   Dialect = "bedrock" // Amazon Bedrock Converse; of backends alone
	Gemini    Dialect = "gemini"
)

// Operation is one endpoint of a dialect.
type Operation uint8

// The operations. Models stands for both dialects' list, which share a path;
// its Dialect is OpenAI and the face chooses by the request's headers.
const (
	Chat Operation = iota // OpenAI chat completions
	Completions
	Embeddings
	Messages // Anthropic
	CountTokens
	Models
	Converse        // Bedrock, streamed or not
	GenerateContent // Gemini, streamed or not
	CountContent    // Gemini's count of tokens
	ImageGenerations
	ImageEdits
	ImageVariations
	Speech
	Transcriptions
	Translations // of audio, into English
	Moderations
	Rerank
	Responses   // OpenAI, streamed or not
	ResponseGet // what is asked of a stored answer, by its id
	ResponseDelete
	ResponseCancel
	ResponseItems // what it answers to
	NumOperations = iota

	firstAside, lastAside = ImageGenerations, Rerank
	firstStored           = ResponseGet
)

// operationInfo is one row of the table of operations.
type operationInfo struct {
	name    string
	dialect Dialect
	path    string
}

var operations = [NumOperations]operationInfo{
	Chat:        {"chat", OpenAI, "/chat/completions"},
	Completions: {"completions", OpenAI, "/completions"},
	Embeddings:  {"embeddings", OpenAI, "/embeddings"},
	Messages:    {"messages", Anthropic, "/messages"},
	CountTokens: {"count_tokens", Anthropic, "/messages/count_tokens"},
	Models:      {"models", OpenAI, "/models"},
	Converse:    {"converse", Bedrock, "/converse"},

	// The model stands in these paths: see InPath.
	GenerateContent: {"generate_content", Gemini, "/models/{model}:generateContent"},
	CountContent:    {"gemini_count_tokens", Gemini, "/models/{model}:countTokens"},

	ImageGenerations: {"image_generations", OpenAI, "/images/generations"},
	ImageEdits:       {"image_edits", OpenAI, "/images/edits"},
	ImageVariations:  {"image_variations", OpenAI, "/images/variations"},
	Speech:           {"speech", OpenAI, "/audio/speech"},
	Transcriptions:   {"transcriptions", OpenAI, "/audio/transcriptions"},
	Translations:     {"translations", OpenAI, "/audio/translations"},
	Moderations:      {"moderations", OpenAI, "/moderations"},
	Rerank:           {"rerank", OpenAI, "/rerank"},
	Responses:        {"responses", OpenAI, "/responses"},
	ResponseGet:      {"responses_get", OpenAI, "/responses/{id}"},
	ResponseDelete:   {"responses_delete", OpenAI, "/responses/{id}"},
	ResponseCancel:   {"responses_cancel", OpenAI, "/responses/{id}/cancel"},
	ResponseItems:    {"responses_input_items", OpenAI, "/responses/{id}/input_items"},
}

// String is the operation's word in logs, metrics and the ledger.
func (o Operation) String() string {
	if int(o) < len(operations) {
		return operations[o].name
	}
	return "unknown"
}

// Dialect is the dialect that the operation belongs to.
func (o Operation) Dialect() Dialect {
	if int(o) < len(operations) {
		return operations[o].dialect
	}
	return OpenAI
}

// Path is the operation's path below a backend's base URL, which ends in /v1 or
// its like.
func (o Operation) Path() string {
	if int(o) < len(operations) {
		return operations[o].path
	}
	return ""
}

// Generates reports whether the operation makes a model produce output, so that
// it has an output bound.
func (o Operation) Generates() bool {
	return o == Chat || o == Completions || o == Messages || o == Converse || o == GenerateContent || o == Responses
}

// Counts reports whether the operation counts the tokens of a request that is not
// run.
func (o Operation) Counts() bool { return o == CountTokens || o == CountContent }

// TellsUsage reports whether the usage of a stream has to be asked for.
func (o Operation) TellsUsage() bool { return o == Chat || o == Completions }

// Surface is what a backend of the dialect must have to serve the operation, beside
// the dialect itself; none for one that all of them serve.
func (o Operation) Surface() route.Needs {
	switch o {
	case Chat:
		return route.NeedChat
	case Responses, ResponseGet, ResponseDelete, ResponseCancel, ResponseItems:
		return route.NeedResponses
	}
	return 0
}

// Streams reports whether the operation can be asked to stream.
func (o Operation) Streams() bool { return o.Generates() || o == ResponseGet }
