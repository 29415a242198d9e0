package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// maxProbe is the most bytes of a probe's answer that are read.
const maxProbe = 64 << 10

// Ask asks for a path at the target's host and returns the status of the answer, 0 if
// there was none. A redirect is not followed.
func (c *Client) Ask(ctx context.Context, t *Target, path string) (status int, err error) {
	beside, base := *t, *t.BaseURL
	base.Path, base.RawPath = "", ""
	beside.BaseURL, beside.MetricsEvery = &base, 0
	ans, err := c.Do(ctx, &beside, Request{Method: http.MethodGet, Path: path})
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			status = e.Status
		}
		return status, err
	}
	defer ans.Close()
	if _, err := io.CopyN(io.Discard, ans, maxProbe); err != nil && err != io.EOF && ans.Status < 400 {
		return ans.Status, err
	}
	return ans.Status, nil
}
