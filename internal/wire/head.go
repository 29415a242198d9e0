package wire

import (
	"sluice"
	"sluice/internal/route"
)

// span is a half-open range of byte offsets into the body. The zero span means
// absent: no value can start at offset 0 of an object.
type span struct{ start, end int }

func (s span) ok() bool { return s.end > 0 }
func (s span) len() int { return s.end - s.start }

// Head is what one pass over a request's body found. It refers to the body by
// offsets and holds no part of it, so it does not keep the body alive.
type Head struct {
	Op    Operation
	Model string // as the client wrote it, at most MaxModelName bytes, never empty

	Stream          bool
	IncludeUsage    bool // the client asked for usage in the stream
	ContinuousUsage bool // the client asked for usage in every event (vLLM)

	MaxOutput     sluice.Tokens // the client's bound on one choice's output; 0 if it names none (or names 0: see HasMaxOutput)
	HasMaxOutput  bool          // the client named a bound, which may be 0 (Messages: fill the prefix cache only; Completions with echo: score the prompt)
	MaxParam      string        // the field that names it, "max_completion_tokens" or "max_tokens"; where none is, the one that Splice would insert
	Choices       int64         // answers that are generated: max(n, best_of) × prompts; at least 1, 0 where the operation generates none
	Prediction    sluice.Tokens // bound on predicted output that can be billed on top of MaxOutput when rejected
	ParallelTools bool          // several tool calls may come in one answer

	User        string // safety_identifier, user or metadata.user_id, in this order; hashed when it is longer than sluice.MaxLabel or has control characters
	ServiceTier string // what was asked for; the tier that is billed is in the answer

	Messages    int         // messages, or prompts, or inputs
	Tools       int         // tools and functions declared
	ServerTools int         // of those, run by the provider: fees and input that the body does not tell
	ServerUses  int64       // how often the provider runs them at most, by their max_uses; -1 if nothing bounds it
	Searches    int64       // of those, searches of the web, which have a fee; of no meaning where ServerUses is -1
	Media       int         // images, audio, video, documents
	Needs       route.Needs // of a backend

	// Refs is what the request refers to of what a backend keeps; see state.go.
	Refs []route.State

	Text     sluice.Tokens // class-based estimate of text and framing, without media
	Estimate sluice.Tokens // Text and media, for the model named Model; see For
	Bound    sluice.Tokens // hard upper bound of the input for the model named Model; see For and Unbounded
	Exact    bool          // the input is token ids alone: Estimate is no estimate and takes no learned ratio
	// Unbounded says that the input refers to content whose size the body does not
	// tell (file ids, documents, URLs of documents, server tools), so that only the
	// model's context length bounds it.
	Unbounded bool

	Units, UnitsBound int64 // of what the request is billed by beside tokens, see Billing: expected, and the most

	// Privileged names members that steer a self-run engine (priority, chat_template,
	// cache_salt, …): refuse them unless the tenant may.
	Privileged []string

	// Of the Responses operation: the provider is to keep the answer, which is what
	// leaving it out means there (chat may ask for it, too); the answer is not waited for.
	Store, Background bool

	// Query is what stands behind the path of a request of a stored answer, and After the
	// number in it behind which its stream is to begin; -1 is the whole stream.
	Query string
	After int64

	// What For and Splice need.
	base      sluice.Tokens // bound of text and template, without media
	media     []media
	moreMedia int // images beyond maxMedia

	cacheSalt span
	prompt    [numPromptParts]span // by promptPart

	model, streamOptions           span
	version, betas                 span // anthropic_version, anthropic_beta
	includeUsage, continuousUsage  span
	streamOptionsEmpty             bool // it is {}
	streamOptionsNull              bool
	maxTokens, maxCompletionTokens span
	inference                      span // inferenceConfig, of Converse
	inferenceEmpty                 bool // it is {}
	generation                     span // Gemini's generationConfig
	generationNull                 span // it, where it is null
	generationEmpty, empty         bool // it, the request is {}
	// Their values; negative where the client wrote null.
	maxTokensIs, maxCompletionTokensIs sluice.Tokens

	form     bool // the body is a form of parts
	inside   int  // offset behind the opening brace of the request
	members  int  // of the request
	modelAt  removable
	streamAt removable
}
