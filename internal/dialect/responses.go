package dialect

import "sluice/internal/wire"

// responses is OpenAI's Responses, of the same dialect as chat: without what a provider
// keeps, which is served natively or not at all.
var responses = codec{
	dialect: wire.OpenAI, op: wire.Responses, title: "OpenAI responses", signs: openaiMark,
	parseRequest: parseResponsesRequest, emitRequest: emitResponsesRequest,
	parseAnswer: parseResponsesAnswer, emitAnswer: emitResponsesAnswer,
	newReader: func(o *StreamOptions) reader { return &responsesReader{o: o} },
	newWriter: func(o *StreamOptions) writer { return newResponsesWriter(o) },
	unread:    asUnread("sequence_number", "obfuscation"),
	path:      responsesPath, names: responsesNames,
	fields: responsesFields, carries: responsesCarries, elsewhere: responsesElsewhere,
}

// What only clients of Responses can ask for.
const (
	FeatureKept       Feature = "earlier answers and items by id"
	FeaturePrompt     Feature = "prompt of the provider by id"
	FeatureBackground Feature = "answer in the background"
	FeatureTruncation Feature = "truncation of the conversation"
	FeatureSealed     Feature = "sealed reasoning in the answer"
	FeatureInclude    Feature = "more of what tools of the provider did"
	FeatureMaxCalls   Feature = "bound on the calls of tools of the provider"
	FeaturePhase      Feature = "phase of an earlier answer"
	FeatureToolItem   Feature = "what tools of the provider did earlier"
)

// responsesElsewhere is what becomes of what other dialects do not have, where they say
// nothing of it.
var responsesElsewhere = map[Feature]carriage{
	FeatureKept:       {Refused, "names what another provider keeps", "send the items themselves, or " + ownDialect},
	FeaturePrompt:     {Refused, "names a prompt that another provider keeps", "send its text as instructions"},
	FeatureBackground: {Refused, "asks for an answer that is fetched later, which this dialect does not have", "wait for the answer, or " + ownDialect},
	FeatureTruncation: {Dropped, "has no place in this dialect: a conversation that is too long is refused", dropField},
	FeatureSealed:     {Kept, "as the backend gives it", ""},
	FeatureInclude:    {Dropped, "is of tools of another provider", dropField},
	FeatureMaxCalls:   {Kept, "which bounds nothing here: tools of the provider are refused", ""},
	FeaturePhase:      {Dropped, "has no place in this dialect", dropField},
	FeatureToolItem:   {Refused, "is what another provider's tool did, which this dialect cannot say", "send its result as a text, or " + ownDialect},

	FeatureDisplay:     {Dropped, "has no place in this dialect: the backend decides what it shows", dropField},
	FeatureMixedAnswer: {fate: Kept},
	FeatureResultMedia: {fate: Kept},
	FeatureContext:     {Refused, "lets another provider edit the conversation", "leave it out, or " + ownDialect},
	FeatureOrphan:      {fate: Kept},
	FeatureUndeclared:  {fate: Kept},
}

// responsesNames are the members that typed features stand in.
var responsesNames = map[Feature]string{
	FeatureNoTurn: "input", FeatureCache: "prompt_cache_breakpoint", FeatureHot: "temperature", FeatureMinimal: "reasoning.effort", FeatureToolName: "name",
	FeatureImageURL: "image_url", FeatureAllowedTools: "tool_choice", FeatureDocumentURL: "file_url", FeatureNoCalls: "tool_choice", FeatureChoiceless: "tool_choice", FeatureNoThinking: "reasoning.effort", FeatureImageKind: "image_url", FeatureSerial: "parallel_tool_calls", FeatureOrphan: "call_id", FeatureUser: "user",
}

// responsesPath is where something stands in a request: in items of input.
func responsesPath(p place, member string) string {
	switch {
	case p.message == inSystem:
		at := "instructions"
		if member != "" {
			at += "." + member
		}
		return at
	case p.message < 0:
		return p.inMessages(member)
	}
	at := "input" + index(p.message)
	switch {
	case p.inner >= 0:
		at += ".output" + index(p.inner)
	case p.part >= 0:
		at += ".content" + index(p.part)
	}
	if member != "" {
		at += "." + member
	}
	return at
}

// responsesFields is what its clients can ask for.
var responsesFields = []field{
	{FeatureText, "`input`, as text or items of type `message`"},
	{FeatureInstructions, "`instructions`, leading `system` and `developer` messages"},
	{FeatureWithin, "later `system` and `developer` messages"},
	{FeatureNoTurn, "`input` of instructions alone"},
	{FeaturePrefill, "last item of the assistant"},
	{FeatureEmptyText, "`input_text`: empty"},
	{FeatureImage, "`input_image.image_url`: `data:`"},
	{FeatureImageKind, "`input_image.image_url`: `data:` of other kinds"},
	{FeatureImageURL, "`input_image.image_url`: others"},
	{FeatureImageDetail, "`input_image.detail` but `auto`"},
	{FeatureDocument, "`input_file.file_data`"},
	{FeatureDocumentURL, "`input_file.file_url`"},
	{FeatureFile, "`input_file.file_id`, `input_image.file_id`"},
	{FeatureAudioInput, "`input_audio`"},
	{FeatureSearchResult, "other kinds of parts"},
	{FeatureCall, "`function_call`"},
	{FeatureArguments, "`function_call.arguments`: no object"},
	{FeatureResult, "`function_call_output`"},
	{FeatureOrphan, "`function_call_output` of no call"},
	{FeatureResultMedia, "`input_image`, `input_file` in a `function_call_output`"},
	{FeatureReasoning, "`reasoning` without `encrypted_content`"},
	{FeatureSigned, "`reasoning.encrypted_content` of Claude"},
	{FeatureForeign, "`reasoning.encrypted_content` of a Gemini model"},
	{FeatureOpenAISealed, "`reasoning.encrypted_content` of an OpenAI model"},
	{FeatureRefusalText, "`refusal`"},
	{FeatureAnnotations, "`output_text.annotations`"},
	{FeatureMixedAnswer, "a message after `function_call`"},
	{FeatureUndeclared, "`function_call` without `tools`"},
	{FeaturePhase, "`phase`"},
	{FeatureToolItem, "items of other types"},
	{FeatureKept, "`previous_response_id`, `conversation`, `item_reference`"},
	{FeaturePrompt, "`prompt`"},
	{FeatureTools, "`tools`: functions"},
	{FeatureCustomTool, "`tools`, items: custom"},
	{FeatureServerTool, "`tools`: others"},
	{FeatureChoice, "`tool_choice`"},
	{FeatureChoiceless, "`tool_choice`: required or a function, without `tools`"},
	{FeatureNoCalls, "`tool_choice: none`"},
	{FeatureAllowedTools, "`tool_choice`: allowed_tools"},
	{FeatureSerial, "`parallel_tool_calls: false`"},
	{FeatureMaxCalls, "`max_tool_calls`"},
	{FeatureMaxOutput, "`max_output_tokens`"},
	{FeatureTemperature, "`temperature`"},
	{FeatureHot, "`temperature` above 1"},
	{FeatureTopP, "`top_p`"},
	{FeatureLogprobs, "`top_logprobs`, `include`: message.output_text.logprobs"},
	{FeatureSchema, "`text.format`: json_schema"},
	{FeatureObject, "`text.format`: json_object"},
	{FeatureFormatNote, "`text.format.description`"},
	{FeatureGrammar, "`text.format`: others"},
	{FeatureEffort, "`reasoning.effort`"},
	{FeatureMinimal, "`reasoning.effort: minimal`"},
	{FeatureNoThinking, "`reasoning.effort: none`"},
	{FeatureDisplay, "`reasoning.summary`"},
	{FeatureVerbosity, "`text.verbosity`"},
	{FeatureSealed, "`include`: reasoning.encrypted_content"},
	{FeatureInclude, "`include`: others"},
	{FeatureUser, "`safety_identifier`, `user`"},
	{FeatureSecondUser, "`user` beside another `safety_identifier`"},
	{FeatureMetadata, "`metadata`"},
	{FeatureCache, "`prompt_cache_breakpoint`"},
	{FeatureCacheKey, "`prompt_cache_key`, `prompt_cache_retention`, `prompt_cache_options`"},
	{FeatureStandard, "`service_tier: default`"},
	{FeatureTier, "`service_tier`: others but auto"},
	{FeatureModeration, "`moderation`"},
	{FeatureStore, "`store: true`; left out it asks for nothing, and the answer says `store: false`"},
	{FeatureBackground, "`background: true`"},
	{FeatureTruncation, "`truncation: auto`"},
	{FeatureContext, "`context_management`"},
	{FeatureObfuscation, "`stream_options.include_obfuscation: true`"},
	{FeatureBeta, "`OpenAI-Beta` header"},
	{FeatureUnknown, "what is in no row"},
}

// responsesCarries is what becomes of requests to backends that serve it and no chat.
var responsesCarries = map[Feature]carriage{
	FeatureText:         {fate: Kept},
	FeatureInstructions: {Kept, "as `instructions`; a list of texts as a `system` message", ""},
	FeatureWithin:       {Kept, "as a `system` message where it stands", ""},
	FeatureNoTurn:       {fate: Kept},
	FeaturePrefill:      {Refused, "begins an answer, which this operation cannot go on with", "end with a message of the user"},
	FeatureEmptyText:    {fate: Kept},
	FeatureName:         {Dropped, "has no place in this operation", "write the name into the text"},

	FeatureImage:           {Kept, "as `input_image`, base64 as a `data:` URL", ""},
	FeatureImageURL:        {fate: Kept},
	FeatureImageDetail:     {fate: Kept},
	FeatureDocument:        {Kept, "as `input_file.file_data`, its title as `filename`", ""},
	FeatureDocumentURL:     {Kept, "as `input_file.file_url`", ""},
	FeatureDocumentText:    {Approximately, "becomes a text: its title goes before it", "send it as a text"},
	FeatureDocumentContext: {Dropped, "has no place in this operation", "write it into a text"},
	FeatureCitations:       {Refused, "asks for citations, which this operation does not have", ownDialect},
	FeatureFile:            {Refused, "names a file that another operation or provider keeps", "send its bytes"},
	FeatureAudioInput:      {Refused, "is audio, which this operation does not take", "send its transcript"},
	FeatureAudioOther:      {Refused, "is audio, which this operation does not take", "send its transcript"},
	FeatureSearchResult:    {Refused, "is a part that this operation does not have", "send it as a text, or " + ownDialect},

	FeatureCall:         {Kept, "as `function_call`", ""},
	FeatureArguments:    {Refused, "is not the text of a JSON object", "send the arguments as an object"},
	FeatureResult:       {Kept, "as `function_call_output`", ""},
	FeatureResultMedia:  {fate: Kept},
	FeatureResultError:  {Approximately, "becomes the words \"Error: \" before the result", "say so in the result"},
	FeatureResultOrder:  {fate: Kept},
	FeatureReasoning:    {Dropped, "is reasoning without a signature, which a backend of this operation refuses", dropField},
	FeatureOpenAISealed: {Kept, "as `reasoning.encrypted_content`, under the id that it had", ""},
	FeatureRefusalText:  {Kept, "as a `refusal` of the assistant", ""},
	FeatureSpoken:       {Refused, "names an audio answer of another operation", "send its transcript as content"},
	FeatureAnnotations:  {Dropped, "has no place in this operation", dropField},
	FeatureMixedAnswer:  {fate: Kept},
	FeatureTools:        {Kept, "with `strict` said, which is else true", ""},
	FeatureToolName:     {Refused, "is longer than the 64 bytes that this operation takes", "shorten it"},
	FeatureCustomTool:   {Refused, "is a tool without a JSON schema, which is not translated", "use a function"},
	FeatureToolExamples: {Dropped, "has no place in this operation", "write examples into the description"},
	FeatureDeferred:     {Dropped, "has no place in this operation: all tools are told at once", dropField},
	FeatureEager:        {Kept, "which is how this operation streams them", ""},
	FeatureFunctions:    {Refused, "is the older form of tools, which is not translated", "use tools and tool_choice"},
	FeatureChoice:       {fate: Kept},
	FeatureNoCalls:      {fate: Kept},
	FeatureAllowedTools: {Kept, "as `allowed_tools`", ""},
	FeatureSerial:       {Kept, "as `parallel_tool_calls: false`", ""},

	FeatureMaxOutput:   {Kept, "as `max_output_tokens`", ""},
	FeatureWarm:        {Refused, "asks for no output at all, which only fills a cache of another provider", "ask for at least one token"},
	FeatureTemperature: {fate: Kept},
	FeatureHot:         {fate: Kept},
	FeatureTopP:        {fate: Kept},
	FeatureTopK:        {Dropped, "has no place in this operation", "use top_p"},
	FeatureSeed:        {Refused, "asks for the same answer each time, which this operation cannot promise", dropField},
	FeaturePenalty:     {Refused, "changes how the answer is drawn and has no place in this operation", dropField},
	FeatureLogitBias:   {Refused, "changes how the answer is drawn and has no place in this operation", dropField},
	FeatureSampling:    {Refused, "changes how the answer is drawn and has no place in this operation", dropField},
	FeatureStop:        {Refused, "ends the answer at a text, which this operation cannot", dropField},
	FeatureBlankStop:   {Refused, "ends the answer at a text, which this operation cannot", dropField},
	FeatureStops:       {Refused, "ends the answer at a text, which this operation cannot", dropField},
	FeatureChoices:     {Refused, "asks for several answers, and this operation gives one", "ask for one, several times"},
	FeatureLogprobs:    {Kept, "as `top_logprobs` and `include`", ""},

	FeatureSchema:     {Kept, "as `text.format`", ""},
	FeatureNotStrict:  {Approximately, "is asked for without strict, which this dialect has for schemas alone whose objects have no optional and no further properties", "require all properties, with null as the value of one that is not there, and no others (additionalProperties: false)"},
	FeatureObject:     {Kept, "as `text.format`: json_object", ""},
	FeatureFormatNote: {fate: Kept},
	FeatureGrammar:    {Refused, "is a grammar, which this operation does not have", "use a JSON schema"},
	FeatureEffort:     {Kept, "as `reasoning.effort`", ""},
	FeatureMinimal:    {fate: Kept},
	FeatureEffortOff:  {Dropped, "is left out: the effort of this dialect is that of the reasoning, which is to be off", "leave one of them out"},
	FeatureNoThinking: {Kept, "as `reasoning.effort: none`", ""},
	FeatureAdaptive:   {Kept, "which is what leaving it out means here", ""},
	FeatureBudget:     {Approximately, "becomes a reasoning effort: below 4096 low, below 16384 medium, else high; the bound on the output still holds", "say the effort"},
	FeatureLeast:      {Approximately, "becomes a reasoning effort: below 4096 low, below 16384 medium, else high; the bound on the output still holds", "say the effort"},
	FeatureDisplay:    {Dropped, "has no place in this operation: the backend decides what it shows", dropField},
	FeatureVerbosity:  {Kept, "as `text.verbosity`", ""},
	FeaturePrediction: {Dropped, "has no place in this operation", dropField},
	FeatureAudio:      {Refused, "asks for audio, which this operation does not give", ownDialect},

	FeatureUser:        {Kept, "as `safety_identifier`; replaced by its hash where it is longer than 64 bytes", ""},
	FeatureSecondUser:  {Dropped, "is a second label of the end user, and one is sent", "send one of them"},
	FeatureMetadata:    {fate: Kept},
	FeatureCache:       {Approximately, "has no place in this operation, whose backends cache by themselves", dropField},
	FeatureCacheKey:    {fate: Kept},
	FeatureStandard:    {Kept, "as `service_tier: default`", ""},
	FeatureTier:        {Refused, "asks for a speed or a tier of another provider, at another price", "use auto or default"},
	FeatureGeo:         {Refused, "says where it is to run, which is another provider's to decide", "leave it out, or " + ownDialect},
	FeatureObfuscation: {Dropped, "has no place in this operation", dropField},
}
