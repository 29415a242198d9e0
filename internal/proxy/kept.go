package proxy

import (
	"sluice"
	"sluice/internal/wire"
)

// unkept refuses what the Responses operation would have a provider keep and that no
// later request is led to.
func unkept(h *wire.Head) error {
	var e *sluice.Error
	switch {
	case h.Items:
		e = sluice.Invalid("input", "has an item by its id alone, which is not led to where that is kept")
		e.Hint = "send the item itself, or go on from an answer by previous_response_id"
	default:
		return nil
	}
	return e
}
