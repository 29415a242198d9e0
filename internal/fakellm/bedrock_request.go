package fakellm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// converse is the body of a Converse. Members that are not of the dialect are refused,
// as the real service refuses a body that does not fit its model.
type converse struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content []converseBlock `json:"content"`
	} `json:"messages"`
	System    []converseBlock `json:"system"`
	Inference *struct {
		MaxTokens   *int64          `json:"maxTokens"`
		Temperature json.RawMessage `json:"temperature"`
		TopP        json.RawMessage `json:"topP"`
		Stop        []string        `json:"stopSequences"`
	} `json:"inferenceConfig"`
	Tools *struct {
		Tools []struct {
			Spec *struct {
				Name        string                         `json:"name"`
				Description string                         `json:"description"`
				Schema      struct{ JSON json.RawMessage } `json:"inputSchema"`
				Strict      bool                           `json:"strict"`
			} `json:"toolSpec"`
			CachePoint json.RawMessage `json:"cachePoint"`
		} `json:"tools"`
		Choice json.RawMessage `json:"toolChoice"`
	} `json:"toolConfig"`
	Output *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type      string `json:"type"`
			Structure struct {
				Schema struct {
					Schema      string `json:"schema"`
					Name        string `json:"name"`
					Description string `json:"description"`
				} `json:"jsonSchema"`
			} `json:"structure"`
		} `json:"textFormat"`
	} `json:"outputConfig"`
	More *struct { // of the models
		Thinking *thinking       `json:"thinking"`
		TopK     json.RawMessage `json:"top_k"`
	} `json:"additionalModelRequestFields"`
	Paths       []string          `json:"additionalModelResponseFieldPaths"`
	Metadata    map[string]string `json:"requestMetadata"`
	Tier        json.RawMessage   `json:"serviceTier"`
	Guardrail   json.RawMessage   `json:"guardrailConfig"`
	Performance json.RawMessage   `json:"performanceConfig"`
	Variables   json.RawMessage   `json:"promptVariables"`
}

// converseBlock is a block of a message, of the instructions or of a tool's result.
type converseBlock struct {
	Text       *string         `json:"text"`
	Image      json.RawMessage `json:"image"`
	Document   json.RawMessage `json:"document"`
	JSON       json.RawMessage `json:"json"`
	Reasoning  json.RawMessage `json:"reasoningContent"`
	CachePoint json.RawMessage `json:"cachePoint"`
	ToolUse    *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	Result *struct {
		ID      string          `json:"toolUseId"`
		Content []converseBlock `json:"content"`
		Status  string          `json:"status"`
	} `json:"toolResult"`
}

// readConverse understands a Converse as the union of what all surfaces read.
func readConverse(r *http.Request, raw []byte) (*body, *refusal) {
	var in converse
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, invalid("the body does not fit the API: %v", err)
	}
	if r := in.check(); r != nil {
		return nil, r
	}
	out := &body{Model: r.PathValue("model"), Stream: strings.HasSuffix(r.URL.Path, "/converse-stream")}
	if in.More != nil {
		out.Thinking = in.More.Thinking
	}
	out.System = blocksLike(in.System)
	for _, m := range in.Messages {
		out.Messages = append(out.Messages, message{Role: m.Role, Content: blocksLike(m.Content)})
	}
	if c := in.Inference; c != nil {
		out.MaxTokens, out.Temperature, out.TopP = c.MaxTokens, c.Temperature, c.TopP
	}
	if c := in.Tools; c != nil {
		for _, t := range c.Tools {
			if t.Spec != nil {
				out.Tools = append(out.Tools, marshal(obj{"name": t.Spec.Name, "description": t.Spec.Description, "input_schema": t.Spec.Schema.JSON}))
			}
		}
		out.ToolChoice = c.Choice
	}
	if c := in.Output; c != nil && c.Format != nil {
		schema := json.RawMessage(c.Format.Structure.Schema.Schema)
		if c.Format.Type != "json_schema" || !json.Valid(schema) {
			return nil, invalid("outputConfig.textFormat: the schema is not the text of a JSON schema")
		}
		out.format = formatOf(schema)
	}
	return out, nil
}

// check refuses what the real service refuses.
func (in *converse) check() *refusal {
	tools := false
	for i, m := range in.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return invalid("messages.%d.role: %q is not user or assistant", i, m.Role)
		case i == 0 && m.Role != "user":
			return invalid("A conversation must start with a user message.")
		case i > 0 && m.Role == in.Messages[i-1].Role:
			return invalid("messages.%d: roles must alternate between user and assistant", i)
		case len(m.Content) == 0:
			return invalid("messages.%d.content: is empty", i)
		}
		for j, b := range m.Content {
			if b.Text != nil && *b.Text == "" {
				return invalid("The text field in the ContentBlock object at messages.%d.content.%d is blank.", i, j)
			}
			tools = tools || b.ToolUse != nil || b.Result != nil
		}
	}
	switch {
	case len(in.Messages) == 0:
		return invalid("messages: at least one message is required")
	case tools && in.Tools == nil:
		return invalid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	case in.Tools != nil && len(in.Tools.Tools) == 0:
		return invalid("toolConfig.tools: at least one tool is required")
	}
	return nil
}

// blocksLike are blocks as the parts that weigh counts.
func blocksLike(blocks []converseBlock) json.RawMessage {
	if len(blocks) == 0 {
		return nil
	}
	out := []obj{}
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			out = append(out, obj{"type": "text", "text": *b.Text})
		case len(b.Image) > 0:
			out = append(out, obj{"type": "image"})
		case len(b.Document) > 0:
			out = append(out, obj{"type": "text", "text": "a document"})
		case b.ToolUse != nil:
			out = append(out, obj{"type": "tool_use", "input": b.ToolUse.Input})
		case b.Result != nil:
			out = append(out, obj{"type": "tool_result", "content": blocksLike(b.Result.Content)})
		}
	}
	return marshal(out)
}

// formatOf is a format that asks for JSON by a schema.
func formatOf(schema json.RawMessage) (f format) {
	if json.Unmarshal(marshal(obj{"output_config": obj{"format": obj{"schema": schema}}}), &f) != nil {
		panic("fakellm: a format that is none")
	}
	return f
}
