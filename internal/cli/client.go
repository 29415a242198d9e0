package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"sluice/internal/admin"
	"sluice/internal/egress"
)

// DefaultAdmin is where a gateway on this machine is administered.
const DefaultAdmin = "http://127.0.0.1:8081"

// TokenFile is where serve leaves the admin token below its data directory.
const TokenFile = "admin-token"

// maxAnswer bounds an answer of the admin API, in bytes.
const maxAnswer = 64 << 20

// connection is the flags of everything that speaks to a gateway.
type connection struct {
	Admin     string        `env:"SLUICE_ADMIN" help:"Address of the admin API (${env}; default ${admin})." placeholder:"URL"`
	Token     string        `env:"SLUICE_ADMIN_TOKEN" help:"Admin token (${env}); else it is read from --token-file." placeholder:"TOKEN"`
	TokenFile string        `default:"${tokenfile}" help:"File that serve wrote the token to (${default})." placeholder:"FILE" type:"path"`
	Timeout   time.Duration `default:"90s" help:"Longest wait for an answer (${default})." placeholder:"D"`
}

// client speaks to one gateway's admin API.
type client struct {
	base    *url.URL
	token   string
	timeout time.Duration
	wire    http.RoundTripper
}

// client opens nothing yet; it says early what cannot work.
func (c *connection) client() (*client, error) {
	base, err := url.Parse(cmp.Or(c.Admin, DefaultAdmin))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &codedError{code: exitUsage, msg: fmt.Sprintf("%q is not the address of an admin API", c.Admin), hint: "write " + DefaultAdmin}
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	wire := egress.New(egress.Options{}).Transport(egress.TransportOptions{AllowPrivate: true})
	return &client{base: base, token: token, timeout: c.Timeout, wire: wire}, nil
}

func (c *connection) token() (string, error) {
	if c.Token != "" {
		return c.Token, nil
	}
	raw, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", &codedError{
			code: exitDenied, msg: "there is no admin token: " + err.Error(),
			hint: "run this in the directory of sluice serve, or set SLUICE_ADMIN_TOKEN to the token that its first start printed",
		}
	}
	return strings.TrimSpace(string(raw)), nil
}

// get asks for a resource.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, http.MethodGet, path, query, nil, out)
}

// call sends one request and decodes the answer. An answer that is a problem
// comes back as *admin.Problem. out may be nil.
func (c *client) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	u := *c.base
	u.Path, u.RawPath = "", ""
	target := u.String() + strings.TrimSuffix(c.base.EscapedPath(), "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return &codedError{code: exitUsage, msg: err.Error()}
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Accept", "application/json")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.wire.RoundTrip(r)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return c.unreachable(ctx, err)
	}
	return decode(res, raw, out)
}

func decode(res *http.Response, raw []byte, out any) error {
	if res.StatusCode >= 300 {
		p := &admin.Problem{}
		if err := json.Unmarshal(raw, p); err != nil || p.Detail == "" {
			return &codedError{
				code: exitUnavailable, msg: fmt.Sprintf("what answers is not a gateway's admin API: status %d", res.StatusCode),
				hint: "give its address with --admin or SLUICE_ADMIN",
			}
		}
		return p
	}
	if out == nil || len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &codedError{code: exitUnavailable, msg: "what answers is not a gateway's admin API: " + err.Error(), hint: "give its address with --admin or SLUICE_ADMIN"}
	}
	return nil
}

func (c *client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &codedError{
		code: exitUnavailable, msg: fmt.Sprintf("the gateway at %s does not answer: %v", c.base, err),
		hint: "start it with sluice serve, or give its address with --admin or SLUICE_ADMIN",
	}
}

// seg escapes one segment of a path: an id is never trusted to be one.
func seg(s string) string { return url.PathEscape(s) }

// dry is the query of a dry run, nil for a real one.
func dry(on bool) url.Values {
	if !on {
		return nil
	}
	return url.Values{"dry_run": {"true"}}
}
