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

// ModelsBody is the list of models in the dialect's shape.
func ModelsBody(d Dialect, models []ModelInfo) []byte { return nil }

// ModelBody is one model in the dialect's shape.
func ModelBody(d Dialect, m ModelInfo) []byte { return nil }

// TokenCountBody answers count_tokens.
func TokenCountBody(n sluice.Tokens) []byte { return nil }
