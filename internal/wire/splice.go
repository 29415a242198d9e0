package wire

import "sluice"

// Edit is what changes in a request on its way to a backend. Zero fields change
// nothing.
type Edit struct {
	Model           string        // the backend's name of the model
	IncludeUsage    bool          // ask for usage in the stream; only where Head.Stream and the dialect is OpenAI
	ContinuousUsage bool          // ask for usage in every event as well (vLLM, SGLang)
	MaxOutput       sluice.Tokens // bound on one choice's output: lowers or inserts the client's, never raises it
	LegacyMaxTokens bool          // the backend knows max_tokens only (Ollama, Mistral): a bound is also named so
}

// Splice returns a new body in which only the edited values differ from the one
// that was scanned. The body is not changed, so that it can be spliced again
// for another backend.
func (h *Head) Splice(body []byte, e Edit) []byte { return append([]byte(nil), body...) }

// For gives the input estimate (before any learned ratio) and its hard bound for
// a backend's model: only the size of media depends on it.
func (h *Head) For(model string) (estimate, bound sluice.Tokens) { return h.Estimate, h.Bound }
