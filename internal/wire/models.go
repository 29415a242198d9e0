package wire

import (
	"time"

	"sluice"
)

// ModelInfo is one public model in a list.
type ModelInfo struct {
	ID        sluice.ModelID
	Created   time.Time     // zero is written as the epoch
	OwnedBy   string        // empty is written as "sluice"
	Context   sluice.Tokens // 0 if unknown
	MaxOutput sluice.Tokens // 0 if unknown
}

type openaiModel struct {
	ID      sluice.ModelID `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	OwnedBy string         `json:"owned_by"`
}

type anthropicModel struct {
	Type        string         `json:"type"`
	ID          sluice.ModelID `json:"id"`
	DisplayName string         `json:"display_name"`
	CreatedAt   string         `json:"created_at"`
	MaxInput    sluice.Tokens  `json:"max_input_tokens,omitempty"`
	MaxTokens   sluice.Tokens  `json:"max_tokens,omitempty"`
}

func (m ModelInfo) openai() openaiModel {
	owner := m.OwnedBy
	if owner == "" {
		owner = "sluice"
	}
	return openaiModel{m.ID, "model", m.created().Unix(), owner}
}

func (m ModelInfo) anthropic() anthropicModel {
	return anthropicModel{"model", m.ID, string(m.ID), m.created().Format(time.RFC3339), m.Context, m.MaxOutput}
}

// geminiModel is a model as Google lists it: its name is the path of its operations.
type geminiModel struct {
	Name        string        `json:"name"`
	DisplayName string        `json:"displayName"`
	Input       sluice.Tokens `json:"inputTokenLimit,omitempty"`
	Output      sluice.Tokens `json:"outputTokenLimit,omitempty"`
	Methods     []string      `json:"supportedGenerationMethods"`
}

func (m ModelInfo) gemini() geminiModel {
	return geminiModel{"models/" + string(m.ID), string(m.ID), m.Context, m.MaxOutput, []string{"generateContent", "countTokens"}}
}

func (m ModelInfo) created() time.Time {
	if m.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return m.Created.UTC()
}

// ModelsBody is the list of models in the dialect's shape, in the order given and
// on one page.
func ModelsBody(d Dialect, models []ModelInfo) []byte {
	if d == Gemini {
		list := make([]geminiModel, len(models))
		for i, m := range models {
			list[i] = m.gemini()
		}
		return encode(struct {
			Models []geminiModel `json:"models"`
		}{list})
	}
	if d != Anthropic {
		list := make([]openaiModel, len(models))
		for i, m := range models {
			list[i] = m.openai()
		}
		return encode(struct {
			Object string        `json:"object"`
			Data   []openaiModel `json:"data"`
		}{"list", list})
	}
	list := make([]anthropicModel, len(models))
	var first, last *sluice.ModelID
	for i, m := range models {
		list[i] = m.anthropic()
	}
	if n := len(models); n > 0 {
		first, last = &models[0].ID, &models[n-1].ID
	}
	return encode(struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *sluice.ModelID  `json:"first_id"`
		LastID  *sluice.ModelID  `json:"last_id"`
	}{list, false, first, last})
}

// ModelBody is one model in the dialect's shape.
func ModelBody(d Dialect, m ModelInfo) []byte {
	switch d {
	case Anthropic:
		return encode(m.anthropic())
	case Gemini:
		return encode(m.gemini())
	}
	return encode(m.openai())
}
