package dialect

import (
	"strconv"
	"strings"
)

// maxCandidates is the most answers that the dialect gives to one request.
const maxCandidates = 8

func (e *geminiEmitter) tools() {
	r, strict := e.r, false
	if r.Serial {
		e.rep.at(FeatureSerial, top())
	}
	if len(r.Tools) > 0 {
		e.b = append(key(append(append(key(e.b, "tools"), '['), '{'), "functionDeclarations"), '[')
		for i := range r.Tools {
			e.tool(&r.Tools[i])
			strict = strict || r.Tools[i].Strict
		}
		e.b = append(e.b, "]}]"...)
	}
	mode := ""
	switch r.Choice.Kind {
	case ChoiceDefault, ChoiceAuto:
		switch {
		case strict || r.Choice.Only != nil:
			mode = "VALIDATED"
		case r.Choice.Kind == ChoiceAuto:
			mode = "AUTO"
		}
	case ChoiceNone:
		mode = "NONE"
	case ChoiceAny, ChoiceOne:
		mode = "ANY"
	}
	if mode == "" || len(r.Tools) == 0 {
		return
	}
	e.b = pair(append(key(append(key(e.b, "toolConfig"), '{'), "functionCallingConfig"), '{'), "mode", mode)
	only := r.Choice.Only
	if r.Choice.Kind == ChoiceOne {
		only = []string{r.Choice.Name}
	}
	if len(only) > 0 {
		e.b = append(key(e.b, "allowedFunctionNames"), '[')
		for _, name := range only {
			e.b = text(sep(e.b), name)
		}
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, '}', '}')
}

func (e *geminiEmitter) tool(t *Tool) {
	if len(t.Name) > maxToolName {
		e.rep.at(FeatureToolName, toolAt(t.index))
	}
	if t.Cached {
		e.rep.mark(toolAt(t.index))
	}
	e.b = pair(append(sep(e.b), '{'), "name", t.Name)
	if t.Description != "" {
		e.b = pair(e.b, "description", t.Description)
	}
	e.raw("parametersJsonSchema", t.Schema)
	e.b = append(e.b, '}')
}

func (e *geminiEmitter) raw(name string, v []byte) {
	if v != nil {
		e.b = append(key(e.b, name), v...)
	}
}

// config writes how the answer is made. It is left out where nothing is said of it.
func (e *geminiEmitter) config() {
	r, was := e.r, len(e.b)
	e.b = append(key(e.b, "generationConfig"), '{')
	empty := len(e.b)
	if r.MaxOutput > 0 {
		e.b = figure(e.b, "maxOutputTokens", r.MaxOutput)
	}
	e.raw("temperature", r.Temperature)
	e.raw("topP", r.TopP)
	e.raw("topK", r.TopK)
	if len(r.Stop) > 0 {
		if len(r.Stop) > 5 {
			e.rep.at(FeatureStops, top())
		}
		e.b = append(key(e.b, "stopSequences"), '[')
		for _, s := range r.Stop {
			e.b = text(sep(e.b), s)
		}
		e.b = append(e.b, ']')
	}
	for i := range r.Asks {
		switch a := &r.Asks[i]; a.Feature {
		case FeatureSeed:
			e.raw("seed", a.Value)
		case FeatureChoices:
			if n, err := strconv.Atoi(string(a.Value)); err != nil || n > maxCandidates {
				e.rep.tell(FeatureManyChoices, a.Path)
			}
			e.raw("candidateCount", a.Value)
		case FeaturePenalty:
			if name := penalty(a.Path); name != "" {
				e.raw(name, a.Value)
			}
		case FeatureObject:
			e.b = pair(e.b, "responseMimeType", "application/json")
		}
	}
	if top, ok := r.logprobs(); ok {
		e.b = append(key(e.b, "responseLogprobs"), "true"...)
		e.raw("logprobs", top)
	}
	if r.Format != nil {
		e.b = pair(e.b, "responseMimeType", "application/json")
		e.raw("responseJsonSchema", r.Format.Schema)
	}
	e.thinking()
	if len(e.b) == empty {
		e.b = e.b[:was]
		return
	}
	e.b = append(e.b, '}')
}

// penalty is the member that a penalty of another dialect is, empty if it is none of
// Gemini's.
func penalty(path string) string {
	switch {
	case strings.HasSuffix(path, "frequency_penalty"):
		return "frequencyPenalty"
	case strings.HasSuffix(path, "presence_penalty"):
		return "presencePenalty"
	}
	return ""
}

// fit tells that an effort is not one that the model has.
func (e *geminiEmitter) fit() {
	e.rep.tell(FeatureEffortFit, e.rep.from.path(top(), e.rep.from.names[FeatureMinimal]))
}

// geminiBudgets are the tokens that Google takes an effort for, with models that have
// budgets alone.
var geminiBudgets = map[string]int64{"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}

// thinking writes how much the model is to think. Where reasoning was asked for by
// name it is shown.
func (e *geminiEmitter) thinking() {
	r, kind, effort := e.r, e.r.Thinking.Kind, e.r.Effort
	if kind == ThinkingOff {
		e.rep.effortOff(r)
	}
	if effort == "none" {
		kind, effort = ThinkingOff, ""
	}
	if kind == ThinkingDefault && effort == "" {
		return
	}
	e.b = append(key(e.b, "thinkingConfig"), '{')
	switch {
	case kind == ThinkingOff && strings.HasPrefix(e.model(), "gemini-3"): // it cannot do without
		e.rep.tell(FeatureEffortFit, e.rep.from.path(top(), e.rep.from.names[FeatureNoThinking]))
		e.b = pair(e.b, "thinkingLevel", "MINIMAL")
	case kind == ThinkingOff:
		e.b = figure(e.b, "thinkingBudget", 0)
	case kind == ThinkingBudget:
		e.b = figure(e.b, "thinkingBudget", r.Thinking.Budget)
	case effort == "":
		e.b = append(key(e.b, "thinkingBudget"), "-1"...)
	case !e.levels:
		e.fit()
		e.b = figure(e.b, "thinkingBudget", geminiBudgets[effort])
	default:
		level := strings.ToUpper(effort)
		if effort == "xhigh" || effort == "max" {
			e.fit()
			level = "HIGH"
		}
		e.b = pair(e.b, "thinkingLevel", level)
	}
	if kind == ThinkingBudget || kind == ThinkingAdaptive {
		e.b = append(key(e.b, "includeThoughts"), "true"...)
	}
	e.b = append(e.b, '}')
}
