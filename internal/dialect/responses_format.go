package dialect

// text writes the structure of the answer and how long it is to be.
func (e *responsesEmitter) text() {
	f, verbosity, object := e.r.Format, e.r.asked(FeatureVerbosity), e.r.asks(FeatureObject)
	if f == nil && verbosity == nil && !object {
		return
	}
	e.b = append(key(e.b, "text"), '{')
	switch {
	case f != nil:
		name := f.Name
		if name == "" {
			name = "response"
		}
		e.b = pair(pair(append(key(e.b, "format"), '{'), "type", "json_schema"), "name", name)
		if f.Note != "" {
			e.b = pair(e.b, "description", f.Note)
		}
		schema, strict := f.Schema, !f.Loose
		if strict {
			schema, strict = e.rep.held(schema, f.at)
		}
		e.b = append(key(e.b, "strict"), boolean(strict)...)
		e.b = append(append(key(e.b, "schema"), schema...), '}')
	case object:
		e.b = append(key(e.b, "format"), `{"type":"json_object"}`...)
	}
	e.raw("verbosity", verbosity)
	e.b = append(e.b, '}')
}

func (e *responsesEmitter) reasoning() {
	effort := e.r.Effort
	switch e.r.Thinking.Kind {
	case ThinkingOff:
		e.rep.effortOff(e.r)
		effort = "none"
	case ThinkingBudget:
		e.rep.at(FeatureBudget, top())
		if effort == "" {
			effort = effortOf(e.r.Thinking.Budget)
		}
	}
	if effort != "" {
		e.b = append(pair(append(key(e.b, "reasoning"), '{'), "effort", effort), '}')
	}
}
