package dialect

// foreign is what becomes of what a client asks of the provider of its own dialect,
// wherever neither the target's carries nor the client's elsewhere say another thing.
var foreign = map[Feature]carriage{
	FeatureSigned:       anothers,
	FeatureForeign:      anothers,
	FeatureOpenAISealed: anothers,
	FeatureImageKind:    {Refused, "is an image of a kind that this dialect does not take", "send it as PNG, JPEG, GIF or WebP"},
	FeatureChoiceless:   {Refused, "says that a tool must be called, and there is none", "declare tools, or leave it out"},
	FeatureFormats:      {Refused, "is another format than that of output_config, and an answer has one", "send one of them"},
	FeatureEffortOff:    {Kept, "beside that", ""},
	FeatureNotStrict:    {Kept, "as all schemas", ""},
	FeatureLeast:        {Kept, "as any budget", ""},

	FeatureServerTool:  {Refused, "is a tool that another provider runs", "leave it out, or " + ownDialect},
	FeatureWebSearch:   {Refused, "is a search that another provider runs", "leave it out, or " + ownDialect},
	FeatureModeration:  {Refused, "asks another provider to judge the answer", "leave it out, or " + ownDialect},
	FeatureStore:       {Refused, "asks another provider to keep the answer", "leave it out, or " + ownDialect},
	FeatureContainer:   {Refused, "is run by another provider", "leave it out, or " + ownDialect},
	FeatureContext:     {Refused, "lets another provider edit the conversation", "leave it out, or " + ownDialect},
	FeatureDiagnostics: {Dropped, "is another provider's", dropField},
	FeatureBeta:        {Dropped, "switches on what another provider tries out", dropField},
	FeatureBetaField:   {Kept, "the fields are judged by themselves", ""},
	FeatureUnknown:     {Refused, "is not known, so nobody can say what leaving it out would change", "leave it out, or " + ownDialect},
}
