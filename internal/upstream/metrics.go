package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"

	"sluice"
)

// Metrics reads at most limit bytes of an engine's metrics: /metrics beside the
// version that its address ends with.
func (c *Client) Metrics(ctx context.Context, t *Target, limit int64) ([]byte, error) {
	beside, base := *t, *t.BaseURL
	base.Path = strings.TrimSuffix(base.Path, "/")
	if i := strings.LastIndexByte(base.Path, '/'); i >= 0 && strings.HasPrefix(base.Path[i:], "/v") {
		base.Path = base.Path[:i]
	}
	beside.BaseURL, beside.MetricsEvery = &base, 0
	ans, err := c.Do(ctx, &beside, Request{Method: http.MethodGet, Path: "/metrics"})
	if err != nil {
		return nil, err
	}
	defer ans.Close()
	if ans.Status >= 400 {
		return nil, &Error{Reason: sluice.UpstreamRefused, Status: ans.Status, What: "no metrics"}
	}
	return io.ReadAll(io.LimitReader(ans, limit))
}
