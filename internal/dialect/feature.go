package dialect

// Feature is something that a request can ask for. Its text is the row's name in
// docs/dialects.md.
type Feature string

// The features. Those with a typed place in Request are carried by it; the others
// travel as Asks.
const (
	FeatureText         Feature = "text"
	FeatureInstructions Feature = "instructions before the conversation"
	FeatureWithin       Feature = "instructions within the conversation"
	FeaturePrefill      Feature = "an answer that is begun"
	FeatureNoTurn       Feature = "a conversation without a turn of the user"
	FeatureEmptyText    Feature = "empty texts beside other parts"
	FeatureName         Feature = "name of a participant"

	FeatureImage           Feature = "image by data"
	FeatureImageURL        Feature = "image by URL"
	FeatureImageKind       Feature = "image of other kinds than PNG, JPEG, GIF and WebP"
	FeatureImageDetail     Feature = "detail of an image"
	FeatureDocument        Feature = "PDF by data"
	FeatureDocumentURL     Feature = "document by URL"
	FeatureDocumentText    Feature = "document of plain text"
	FeatureDocumentContext Feature = "context of a document"
	FeatureCitations       Feature = "citations"
	FeatureFile            Feature = "file by id"
	FeatureAudioInput      Feature = "audio in the input"
	FeatureAudioOther      Feature = "audio in other forms, by URL or elsewhere"
	FeatureVideo           Feature = "video in the input"
	FeatureSearchResult    Feature = "search results and other blocks"

	FeatureCall         Feature = "tool call"
	FeatureArguments    Feature = "arguments that are no JSON object"
	FeatureResult       Feature = "tool result"
	FeatureOrphan       Feature = "tool result without its call"
	FeatureResultMedia  Feature = "image or document in a tool result"
	FeatureResultError  Feature = "tool result that is an error"
	FeatureResultOrder  Feature = "tool results after other parts of the turn"
	FeatureReasoning    Feature = "reasoning of earlier answers"
	FeatureSigned       Feature = "reasoning of earlier answers that Claude has signed or redacted"
	FeatureForeign      Feature = "reasoning of earlier answers that Gemini has signed"
	FeatureOpenAISealed Feature = "reasoning of earlier answers that OpenAI has sealed"
	FeatureRefusalText  Feature = "refusal of an earlier answer"
	FeatureSpoken       Feature = "spoken earlier answer"
	FeatureAnnotations  Feature = "annotations of earlier answers"
	FeatureMixedAnswer  Feature = "text after tool calls in an earlier answer"
	FeatureTools        Feature = "tools"
	FeatureToolName     Feature = "tool name longer than 64"
	FeatureToolSigns    Feature = "tool name with other signs than letters, digits, - and _"
	FeatureToolAnswer   Feature = "schema of what a tool answers"
	FeatureCustomTool   Feature = "custom tool or its call"
	FeatureServerTool   Feature = "tool of the provider"
	FeatureToolExamples Feature = "examples and callers of a tool"
	FeatureDeferred     Feature = "tools that are loaded when they are needed"
	FeatureEager        Feature = "arguments streamed as they are written"
	FeatureUndeclared   Feature = "tool calls of earlier answers without tools"
	FeatureFunctions    Feature = "functions, the older form of tools"
	FeatureChoice       Feature = "tool choice"
	FeatureChoiceless   Feature = "call of a tool that must be, without tools"
	FeatureNoCalls      Feature = "tools that are not to be called"
	FeatureAllowedTools Feature = "choice among some of the tools"
	FeatureSerial       Feature = "one tool call at a time"

	FeatureMaxOutput   Feature = "bound on the output"
	FeatureWarm        Feature = "warming the cache"
	FeatureTemperature Feature = "temperature up to 1"
	FeatureHot         Feature = "temperature above 1"
	FeatureTopP        Feature = "top_p"
	FeatureTopK        Feature = "top_k"
	FeatureSeed        Feature = "seed"
	FeaturePenalty     Feature = "penalties"
	FeatureRepetition  Feature = "penalty on repetition"
	FeatureLogitBias   Feature = "logit bias"
	FeatureSampling    Feature = "other sampling parameters of engines"
	FeatureStop        Feature = "stop sequences"
	FeatureStops       Feature = "more stop sequences than some dialects take"
	FeatureBlankStop   Feature = "stop sequences of white space"
	FeatureChoices     Feature = "several answers"
	FeatureManyChoices Feature = "more than eight answers"
	FeatureLogprobs    Feature = "log probabilities"

	FeatureSchema     Feature = "JSON by a schema"
	FeatureNotStrict  Feature = "JSON by a schema with optional or further properties"
	FeatureFormats    Feature = "a second format of the answer"
	FeatureObject     Feature = "JSON without a schema"
	FeatureFormatNote Feature = "description of the format"
	FeatureGrammar    Feature = "grammars of engines"
	FeatureEffort     Feature = "reasoning effort"
	FeatureEffortFit  Feature = "reasoning effort that a model does not have"
	FeatureEffortOff  Feature = "reasoning effort beside no reasoning"
	FeatureLeast      Feature = "token budget of reasoning below 1024"
	FeatureMinimal    Feature = "minimal reasoning effort"
	FeatureNoThinking Feature = "no reasoning"
	FeatureAdaptive   Feature = "reasoning as the model sees fit"
	FeatureBudget     Feature = "token budget of reasoning"
	FeatureDisplay    Feature = "display of reasoning"
	FeatureVerbosity  Feature = "verbosity"
	FeaturePrediction Feature = "predicted output"
	FeatureAudio      Feature = "audio in the answer"

	FeatureUser          Feature = "label of the end user"
	FeatureSecondUser    Feature = "a second label of the end user"
	FeatureMetadata      Feature = "metadata"
	FeatureCache         Feature = "cache marks"
	FeatureMark          Feature = "cache marks of five minutes or an hour"
	FeatureCacheKey      Feature = "cache key and retention"
	FeatureStandard      Feature = "the ordinary service tier"
	FeatureTier          Feature = "other service tiers and speeds"
	FeatureGeo           Feature = "place of inference"
	FeatureWebSearch     Feature = "web search"
	FeatureSafety        Feature = "what is to be blocked"
	FeatureCachedContent Feature = "stored prefix of the provider"
	FeatureModeration    Feature = "moderation"
	FeatureStore         Feature = "stored answers"
	FeatureObfuscation   Feature = "obfuscation of the stream"
	FeatureContainer     Feature = "containers, skills and MCP servers"
	FeatureContext       Feature = "context management"
	FeatureDiagnostics   Feature = "diagnostics"
	FeatureBeta          Feature = "betas that change behaviour"
	FeatureBetaField     Feature = "betas that permit fields"
	FeatureUnknown       Feature = "anything else"
)

// carriage is what becomes of a feature in requests to backends of a dialect.
type carriage struct {
	fate Fate
	why  string // completes "FIELD …"; of a kept one, how
	fix  string
}

// byItsBytes is what becomes of media by URL at backends that take bytes alone.
var byItsBytes = carriage{Kept, "by its bytes, which the gateway fetches; refused where the tenant's `fetch_media` is `refuse`", ""}

// field is what the clients of a dialect call a feature.
type field struct {
	feature Feature
	name    string
}

// dropField is the usual advice.
const dropField = "leave it out"

// ownDialect is the advice where leaving it out would not do.
const ownDialect = "use a model that speaks your dialect"
