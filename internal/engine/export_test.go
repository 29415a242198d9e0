package engine

import "sluice"

// Ahead is whom the engine believes to be next, empty if it does not know.
func (e *Engine) Ahead() sluice.RequestID {
	if it := e.ahead.item; it != nil {
		return it.Value.(*request).call.ID
	}
	return ""
}
