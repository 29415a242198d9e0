package engine

import (
	"slices"

	"sluice"
)

// Ahead is whom the engine believes to be next, empty if it does not know.
func (e *Engine) Ahead() sluice.RequestID {
	if it := e.ahead.item; it != nil {
		return it.Value.(*request).call.ID
	}
	return ""
}

// Kept reports whether every place that is kept for a request is one of its pool's.
func (e *Engine) Kept() bool {
	return !slices.ContainsFunc(e.queues, func(p *pool) bool { return p.keeps() != nil && !slices.Contains(p.places, p.keeps()) })
}
