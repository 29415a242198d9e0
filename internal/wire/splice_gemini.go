package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// geminiPatches lists what differs in a Gemini body: its output bound, and the model
// where the client repeats it. The model and the manner are the path's.
func (h *Head) geminiPatches(p []patch, e Edit) []patch {
	if h.model.ok() && e.Model != "" && e.Model != h.Model {
		p = append(p, patch{h.model, quoted("models/" + strings.TrimPrefix(e.Model, "models/"))})
	}
	if e.MaxOutput <= 0 || !h.Op.Generates() {
		return p
	}
	bound := strconv.AppendInt(nil, int64(e.MaxOutput), 10)
	member := bytes.Join([][]byte{[]byte(`"maxOutputTokens":`), bound}, nil)
	switch {
	case h.maxTokens.ok() && h.maxTokensIs < 0: // null
		return append(p, patch{h.maxTokens, bound})
	case h.maxTokens.ok():
		if replaces(e.MaxOutput, h.maxTokensIs) {
			p = append(p, patch{h.maxTokens, bound})
		}
		return p
	case h.generation.ok():
		at := h.generation.start + 1
		if !h.generationEmpty {
			member = append(member, ',')
		}
		return append(p, patch{span{at, at}, member})
	case h.generationNull.ok():
		return append(p, patch{h.generationNull, bytes.Join([][]byte{{'{'}, member, {'}'}}, nil)})
	}
	member = bytes.Join([][]byte{[]byte(`"generationConfig":{`), member, {'}'}}, nil)
	if !h.empty {
		member = append(member, ',')
	}
	return append(p, patch{span{h.inside, h.inside}, member})
}
