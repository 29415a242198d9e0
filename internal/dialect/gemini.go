package dialect

import "sluice/internal/wire"

// gemini is Google's Gemini dialect.
var gemini = codec{
	dialect: wire.Gemini, op: wire.GenerateContent, title: "Gemini", signs: geminiMark, several: true,
	objects:      true,
	parseRequest: parseGeminiRequest, emitRequest: emitGeminiRequest,
	parseAnswer: parseGeminiAnswer, emitAnswer: emitGeminiAnswer,
	newReader: func(o *StreamOptions) reader { return &geminiReader{o: o} },
	newWriter: func(o *StreamOptions) writer { return &geminiWriter{o: o} },
	unread:    asUnread("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount", "cachedContentTokenCount", "tokenCount"),
	path:      geminiPath, names: geminiNames,
	fields: geminiFields, carries: geminiCarries, elsewhere: geminiElsewhere,
}

// toolBits is how many bits of a tool's index are that of its declaration; those above
// are that of the list that it stands in.
const toolBits = 16

// geminiPath is where something stands in a request.
func geminiPath(p place, member string) string {
	at := ""
	switch {
	case p.message == ofRequest:
		at = member
		if p.part >= 0 {
			at += index(p.part)
		}
		return at
	case p.message == ofTools:
		at = "tools" + index(p.part>>toolBits) + ".functionDeclarations" + index(p.part&(1<<toolBits-1))
	case p.message == inSystem:
		at = "systemInstruction"
		if p.part >= 0 {
			at += ".parts" + index(p.part)
		}
	default:
		at = "contents" + index(p.message)
		if p.part >= 0 {
			at += ".parts" + index(p.part)
		}
	}
	if p.inner >= 0 {
		at += ".functionResponse.parts" + index(p.inner)
	}
	if member != "" {
		at += "." + member
	}
	return at
}

// geminiNames are the members that typed features stand in.
var geminiNames = map[Feature]string{
	FeatureNoTurn: "contents", FeatureResultError: "functionResponse.response.error", FeatureSigned: "thoughtSignature",
	FeatureHot: "generationConfig.temperature", FeatureTopK: "generationConfig.topK", FeatureBlankStop: "generationConfig.stopSequences",
	FeatureAllowedTools: "toolConfig.functionCallingConfig.allowedFunctionNames", FeatureImageURL: "fileData.fileUri", FeatureDocumentURL: "fileData.fileUri",
	FeatureStops:  "generationConfig.stopSequences",
	FeatureBudget: "generationConfig.thinkingConfig.thinkingBudget", FeatureMinimal: "generationConfig.thinkingConfig.thinkingLevel",
	FeatureToolName: "name", FeatureNoCalls: "toolConfig.functionCallingConfig.mode", FeatureChoiceless: "toolConfig.functionCallingConfig.mode",
	FeatureEffortOff: "generationConfig.thinkingConfig.thinkingLevel", FeatureNoThinking: "generationConfig.thinkingConfig.thinkingBudget",
	FeatureLeast: "generationConfig.thinkingConfig.thinkingBudget", FeatureImageKind: "inlineData",
}

// geminiFields is what its clients can ask for.
var geminiFields = []field{
	{FeatureText, "`parts[].text`"},
	{FeatureInstructions, "`systemInstruction`"},
	{FeaturePrefill, "last of `contents` of the model"},
	{FeatureNoTurn, "`contents` without a turn of the user"},
	{FeatureImage, "`inlineData` of an image"},
	{FeatureImageKind, "`inlineData` of an image of other kinds"},
	{FeatureImageURL, "`fileData` of an image on the web"},
	{FeatureImageDetail, "`mediaResolution`"},
	{FeatureDocument, "`inlineData` of a PDF"},
	{FeatureDocumentText, "`inlineData` of plain text"},
	{FeatureDocumentURL, "`fileData` of a document on the web"},
	{FeatureFile, "`fileData` of a stored file"},
	{FeatureAudioInput, "`inlineData` of WAV or MP3 of the user's"},
	{FeatureAudioOther, "`inlineData` of other sound, `fileData` of sound, `audioTimestamp`"},
	{FeatureVideo, "`inlineData`, `fileData` of video, `videoMetadata`"},
	{FeatureSearchResult, "other kinds of parts: code and tools that the provider ran"},
	{FeatureCall, "`functionCall`"},
	{FeatureResult, "`functionResponse`"},
	{FeatureOrphan, "`functionResponse` that answers no call"},
	{FeatureResultMedia, "`functionResponse.parts`"},
	{FeatureResultError, "`functionResponse.response.error`"},
	{FeatureResultOrder, "`functionResponse` after other parts"},
	{FeatureReasoning, "`thought` without a signature"},
	{FeatureSigned, "`thoughtSignature` of Claude"},
	{FeatureForeign, "`thoughtSignature` of a Gemini model"},
	{FeatureOpenAISealed, "`thoughtSignature` of an OpenAI model"},
	{FeatureMixedAnswer, "`text` after `functionCall`"},
	{FeatureTools, "`tools[].functionDeclarations`"},
	{FeatureToolName, "`functionDeclarations[].name` longer than 64"},
	{FeatureToolSigns, "`functionDeclarations[].name` with . or :"},
	{FeatureToolAnswer, "`functionDeclarations[].response`, `responseJsonSchema`"},
	{FeatureServerTool, "`tools`: others"},
	{FeatureChoice, "`toolConfig.functionCallingConfig`"},
	{FeatureChoiceless, "`mode: ANY` without `tools`"},
	{FeatureNoCalls, "`mode: NONE`"},
	{FeatureUndeclared, "`functionCall` in `contents`, without `tools`"},
	{FeatureAllowedTools, "`allowedFunctionNames`: several"},
	{FeatureMaxOutput, "`maxOutputTokens`"},
	{FeatureTemperature, "`temperature`"},
	{FeatureHot, "`temperature` above 1"},
	{FeatureTopP, "`topP`"},
	{FeatureTopK, "`topK`"},
	{FeatureSeed, "`seed`"},
	{FeaturePenalty, "`presencePenalty`, `frequencyPenalty`"},
	{FeatureStop, "`stopSequences`"},
	{FeatureStops, "`stopSequences`: five"},
	{FeatureBlankStop, "`stopSequences` of white space"},
	{FeatureChoices, "`candidateCount` above 1"},
	{FeatureLogprobs, "`responseLogprobs`, `logprobs`"},
	{FeatureSchema, "`responseSchema`, `responseJsonSchema`"},
	{FeatureNotStrict, "`responseSchema`, `responseJsonSchema` whose objects have optional or further properties"},
	{FeatureObject, "`responseMimeType`: JSON without a schema"},
	{FeatureGrammar, "`responseMimeType`: others"},
	{FeatureEffort, "`thinkingLevel`"},
	{FeatureMinimal, "`thinkingLevel: MINIMAL`"},
	{FeatureNoThinking, "`thinkingBudget: 0`"},
	{FeatureEffortOff, "`thinkingLevel` with `thinkingBudget: 0`"},
	{FeatureAdaptive, "`thinkingBudget: -1`"},
	{FeatureBudget, "`thinkingBudget`"},
	{FeatureLeast, "`thinkingBudget` below 1024"},
	{FeatureDisplay, "`includeThoughts: true`"},
	{FeatureAudio, "`responseModalities` but text, `speechConfig`, `imageConfig`"},
	{FeatureSafety, "`safetySettings` that block"},
	{FeatureModeration, "`modelArmorConfig`, `enableEnhancedCivicAnswers`"},
	{FeatureMetadata, "`labels`"},
	{FeatureCachedContent, "`cachedContent`"},
	{FeatureStandard, "`serviceTier: standard`"},
	{FeatureTier, "`serviceTier`: others"},
	{FeatureGeo, "`routingConfig`, `modelSelectionConfig`"},
	{FeatureStore, "`store: true`"},
	{FeatureContext, "`continuationToken`"},
	{FeatureUnknown, "what is in no row"},
}

// geminiElsewhere is what becomes of what it alone has at backends of other dialects.
var geminiElsewhere = map[Feature]carriage{
	FeatureUndeclared:    {fate: Kept},
	FeatureStops:         {fate: Kept},
	FeatureDocumentText:  {fate: Kept},
	FeatureResultMedia:   {fate: Kept},
	FeatureResultError:   {fate: Kept},
	FeatureResultOrder:   {fate: Kept},
	FeatureMixedAnswer:   {fate: Kept},
	FeatureToolName:      {fate: Kept},
	FeatureAdaptive:      {fate: Kept},
	FeatureBudget:        {fate: Kept},
	FeatureDisplay:       {Dropped, "has no place in this dialect: the backend decides what it shows", dropField},
	FeatureGeo:           {Refused, "says where it is to run, which is another provider's to decide", "leave it out, or " + ownDialect},
	FeatureContext:       {Refused, "goes on with an answer of another provider", "leave it out, or " + ownDialect},
	FeatureVideo:         {Refused, "is video, which this dialect cannot take", "send pictures of it"},
	FeatureOrphan:        {Refused, "answers no call that came before it", "send the call that it answers, or its id"},
	FeatureToolSigns:     {Refused, "has a sign in its name that this dialect does not take", "use letters, digits, - and _"},
	FeatureToolAnswer:    {Dropped, "has no place in this dialect", "write it into the description"},
	FeatureSafety:        {Refused, "says what is to be blocked, which this dialect cannot say", "leave it out, or " + ownDialect},
	FeatureCachedContent: {Refused, "names a cache at another provider", "send what it holds"},
	FeatureGrammar:       {Refused, "asks for a form that this dialect does not have", "use application/json with a schema"},
	FeatureImageDetail:   {Dropped, "has no place in this dialect", dropField},
}

// geminiCarries is what becomes of requests to backends that speak it.
var geminiCarries = map[Feature]carriage{
	FeatureText:         {Kept, "as `parts`", ""},
	FeatureInstructions: {Kept, "as `systemInstruction`, a part for each text", ""},
	FeatureWithin:       {Approximately, "is moved before the conversation: this dialect takes instructions there alone", "put it first"},
	FeaturePrefill:      {Refused, "is a last message of the assistant, which a backend of this dialect would go on with", "end with a message of the user"},
	FeatureNoTurn:       {Refused, "has no turn of the user, which this dialect needs", "add a message of the user"},
	FeatureEmptyText:    {Kept, "left out beside other parts", ""},
	FeatureName:         {Dropped, "has no place in this dialect", "write the name into the text"},

	FeatureImage:           {Kept, "by data, as `inlineData`", ""},
	FeatureImageURL:        byItsBytes,
	FeatureImageDetail:     {Dropped, "has no place in this dialect", "leave it out or auto"},
	FeatureDocument:        {Kept, "as `inlineData`, its name as `displayName`", ""},
	FeatureDocumentText:    {Kept, "as `inlineData` of plain text", ""},
	FeatureDocumentURL:     byItsBytes,
	FeatureDocumentContext: {Dropped, "has no place in this dialect", "write it into a text"},
	FeatureCitations:       {Refused, "asks for citations, which this dialect does not have", ownDialect},
	FeatureFile:            {Refused, "names a file at another provider", "send its bytes"},
	FeatureAudioInput:      {Kept, "as `inlineData`, `audio/wav` or `audio/mp3`", ""},
	FeatureAudioOther:      {Refused, "is audio in a form that is not translated", "send its bytes as wav or mp3 in a message of the user"},
	FeatureSearchResult:    {Refused, "is a part that this dialect does not have", "send it as a text, or " + ownDialect},

	FeatureCall:         {Kept, "as `functionCall`, its arguments as the object `args`", ""},
	FeatureArguments:    {Refused, "is not the text of a JSON object, which this dialect needs", "send the arguments as an object"},
	FeatureResult:       {Kept, "as `functionResponse`, its text as `response.output`", ""},
	FeatureOrphan:       {Refused, "answers no call that came before it, and this dialect needs the name of the tool", "send the call that it answers"},
	FeatureResultMedia:  {Approximately, "stands behind the result: results are objects here", "answer in text"},
	FeatureResultError:  {Kept, "as `response.error`", ""},
	FeatureResultOrder:  {Approximately, "stands before other parts of the turn, which come after all results here", "begin the turn with the results"},
	FeatureReasoning:    {Kept, "as parts that are `thought`", ""},
	FeatureForeign:      {Kept, "as `thoughtSignature` of the part that it stood before", ""},
	FeatureRefusalText:  {Approximately, "becomes a text of the model", "send it as content"},
	FeatureSpoken:       {Refused, "names an audio answer of another provider", "send its transcript as content"},
	FeatureAnnotations:  {Dropped, "has no place in this dialect", dropField},
	FeatureMixedAnswer:  {fate: Kept},
	FeatureTools:        {Kept, "as `functionDeclarations`, their schemas as `parametersJsonSchema`", ""},
	FeatureToolName:     {Refused, "is longer than the 64 bytes that this dialect takes", "shorten it"},
	FeatureCustomTool:   {Refused, "is a tool without a JSON schema, which this dialect does not have", "use a function"},
	FeatureToolExamples: {Dropped, "has no place in this dialect", "write examples into the description"},
	FeatureDeferred:     {Dropped, "has no place in this dialect: all tools are told at once", dropField},
	FeatureEager:        {Kept, "arguments come whole", ""},
	FeatureFunctions:    {Refused, "is the older form of tools, which is not translated", "use tools and tool_choice"},
	FeatureChoice:       {Kept, "as `functionCallingConfig`; tools that are strict as mode `VALIDATED`", ""},
	FeatureNoCalls:      {Kept, "as mode `NONE`", ""},
	FeatureAllowedTools: {Kept, "as `allowedFunctionNames`; where none must be called with mode `VALIDATED`, which holds calls to their schemas", ""},
	FeatureSerial:       {Refused, "asks for one call at a time, which this dialect cannot promise", "leave it out, or " + ownDialect},

	FeatureMaxOutput:   {Kept, "as `maxOutputTokens`", ""},
	FeatureWarm:        {Refused, "asks for no output at all, which only fills a cache of another provider", "ask for at least one token"},
	FeatureTemperature: {fate: Kept},
	FeatureHot:         {fate: Kept},
	FeatureTopP:        {Kept, "as `topP`", ""},
	FeatureTopK:        {Kept, "as `topK`", ""},
	FeatureSeed:        {Kept, "as `seed`", ""},
	FeaturePenalty:     {Kept, "as `presencePenalty` and `frequencyPenalty`; `repetition_penalty` is refused", ""},
	FeatureRepetition:  {Refused, "changes how the answer is drawn and has no place in this dialect", dropField},
	FeatureLogitBias:   {Refused, "changes how the answer is drawn and has no place in this dialect", dropField},
	FeatureSampling:    {Refused, "changes how the answer is drawn and has no place in this dialect", dropField},
	FeatureStop:        {Kept, "as `stopSequences`", ""},
	FeatureStops:       {Refused, "are more stop sequences than the five that this dialect takes", "name five at most"},
	FeatureBlankStop:   {fate: Kept},
	FeatureChoices:     {Kept, "as `candidateCount`", ""},
	FeatureManyChoices: {Refused, "asks for more answers than the eight that this dialect gives", "ask for eight at most"},
	FeatureLogprobs:    {Kept, "as `responseLogprobs` and `logprobs`; answers have no numbers of tokens", ""},

	FeatureSchema:     {Kept, "as `responseJsonSchema`, which knows a part of JSON Schema", ""},
	FeatureObject:     {Kept, "as `responseMimeType: application/json`", ""},
	FeatureFormatNote: {Dropped, "has no place in this dialect", "write it into the instructions"},
	FeatureGrammar:    {Refused, "is a grammar, which this dialect does not have", "use a JSON schema"},
	FeatureEffort:     {Kept, "as `thinkingLevel`", ""},
	FeatureEffortFit:  {Approximately, "becomes the nearest that the model has", "use low, medium or high with a model of Gemini 3 or later"},
	FeatureMinimal:    {fate: Kept},
	FeatureEffortOff:  {Dropped, "is left out: the effort of this dialect is that of the reasoning, which is to be off", "leave one of them out"},
	FeatureImageKind:  {Kept, "as `inlineData`: it takes HEIC and HEIF, and says itself what it does not take", ""},
	FeatureNoThinking: {Kept, "as `thinkingBudget: 0`", ""},
	FeatureAdaptive:   {Kept, "as `thinkingBudget: -1`", ""},
	FeatureBudget:     {Kept, "as `thinkingBudget`", ""},
	FeatureDisplay:    {Dropped, "has no place in this dialect: thoughts are shown where reasoning is asked for", dropField},
	FeatureVerbosity:  {Dropped, "has no place in this dialect", "say in the instructions how long the answer is to be"},
	FeaturePrediction: {Dropped, "has no place in this dialect", dropField},
	FeatureAudio:      {Refused, "asks for audio, which is not put into this dialect", ownDialect},

	FeatureUser:        {Dropped, "has no place in this dialect", dropField},
	FeatureSecondUser:  {Dropped, "has no place in this dialect", dropField},
	FeatureMetadata:    {Dropped, "has no place in this dialect", dropField},
	FeatureCache:       {Approximately, "has no place in this dialect, whose backends cache by themselves", dropField},
	FeatureCacheKey:    {Dropped, "has no place in this dialect", dropField},
	FeatureStandard:    {Kept, "as `serviceTier: standard`", ""},
	FeatureTier:        {Refused, "asks for a service tier of another provider, at another price", "use auto or default"},
	FeatureGeo:         {Refused, "says where it is to run, which is another provider's to decide", "leave it out, or " + ownDialect},
	FeatureObfuscation: {Dropped, "has no place in this dialect", dropField},
}
