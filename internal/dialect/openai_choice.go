package dialect

import "github.com/go-json-experiment/json/jsontext"

// openaiNamed is a choice of tools that names some: of chat, whose tools have a member for
// what they are, or of Responses, whose tools are flat.
type openaiNamed struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Function openaiName      `json:"function"`
	Allowed  *openaiAllowed  `json:"allowed_tools"` // of chat
	Mode     string          `json:"mode"`          // of Responses, as what follows
	Tools    []openaiAllowee `json:"tools"`
	Rest     jsontext.Value  `json:",embed"`
}

type openaiName struct {
	Name string `json:"name"`
}

type openaiAllowed struct {
	Mode  string          `json:"mode"`
	Tools []openaiAllowee `json:"tools"`
}

type openaiAllowee struct {
	Type     string     `json:"type"`
	Name     string     `json:"name"`
	Function openaiName `json:"function"`
}

// among reads a choice among some of the tools. What it allows beside functions is asked
// for as what it is.
func (n *openaiNamed) among(r *Request) {
	mode, tools := n.Mode, n.Tools
	if n.Allowed != nil {
		mode, tools = n.Allowed.Mode, n.Allowed.Tools
	}
	switch mode {
	case "auto":
		r.Choice.Kind = ChoiceAuto
	case "required":
		r.Choice.Kind = ChoiceAny
	default:
		r.ask(FeatureUnknown, "tool_choice", nil)
		return
	}
	names := []string{}
	for i := range tools {
		switch t := &tools[i]; {
		case t.Type == "custom":
			r.ask(FeatureCustomTool, "tool_choice", nil)
		case t.Type != "function":
			r.ask(FeatureServerTool, "tool_choice", nil)
		case t.Name != "":
			names = append(names, t.Name)
		default:
			names = append(names, t.Function.Name)
		}
	}
	r.Choice.among(names)
}

// openaiAmong appends a choice among some of the tools; flat is that of Responses.
func openaiAmong(b []byte, c *Choice, flat bool) []byte {
	mode := "auto"
	if c.Kind == ChoiceAny {
		mode = "required"
	}
	b = pair(append(key(b, "tool_choice"), '{'), "type", "allowed_tools")
	if !flat {
		b = append(key(b, "allowed_tools"), '{')
	}
	b = append(key(pair(b, "mode", mode), "tools"), '[')
	for _, name := range c.Only {
		b = pair(append(sep(b), '{'), "type", "function")
		if flat {
			b = append(pair(b, "name", name), '}')
		} else {
			b = append(pair(append(key(b, "function"), '{'), "name", name), '}', '}')
		}
	}
	b = append(b, ']', '}')
	if !flat {
		b = append(b, '}')
	}
	return b
}
