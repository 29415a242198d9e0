package config

import (
	"time"

	"sluice/internal/upstream"
)

// HandOver says when lines of batches go to a provider's own batch API.
type HandOver struct {
	HandOver   bool     `json:"hand_over,omitempty" jsonschema:"do so"`
	LeastLines Count    `json:"least_lines,omitempty" jsonschema:"lines of a batch that are open, at least"`
	Window     Duration `json:"window,omitempty" jsonschema:"how long the provider is given at least: with slack, the least time that a batch must have left, from 1h to 7d"`
	Slack      Duration `json:"slack,omitempty" jsonschema:"how long before the deadline what the provider has not answered is taken back and run by itself, from 15m to 24h"`
}

func (h *HandOver) setDefaults() {
	*h = HandOver{LeastLines: 100, Window: Duration(12 * time.Hour), Slack: Duration(time.Hour)}
}

// handOver is HandOver for the process.
func (h *HandOver) handOver() upstream.HandOver {
	if h == nil {
		return upstream.HandOver{}
	}
	return upstream.HandOver{On: h.HandOver, LeastLines: int(h.LeastLines), Window: time.Duration(h.Window), Slack: time.Duration(h.Slack)}
}

func (v *validator) handOver(path string, p *Provider) {
	h, at := p.Batch, join(path, "batch")
	if h == nil {
		return
	}
	if h.HandOver && (p.Dialect != "openai" && p.Dialect != "anthropic" || p.Service != "" || p.Engine != "") {
		v.fail(join(at, "hand_over"), "remove it", "only providers of the dialects openai and anthropic that are called directly have a batch API that is known here")
	}
	if h.LeastLines < 1 || h.LeastLines > maxJobLines {
		v.fail(join(at, "least_lines"), "write a number from 1 to 1M, such as 100", "%s is out of range", h.LeastLines)
	}
	if h.Window < Duration(time.Hour) || h.Window > Duration(7*24*time.Hour) {
		v.fail(join(at, "window"), "write a time from 1h to 7d, such as 12h", "%s is out of range", h.Window)
	}
	if h.Slack < Duration(15*time.Minute) || h.Slack > Duration(24*time.Hour) {
		v.fail(join(at, "slack"), "write a time from 15m to 24h, such as 1h", "%s is out of range", h.Slack)
	}
}
