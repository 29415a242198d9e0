package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice"
	"sluice/internal/egress"
)

// The bounds of an answer.
const (
	DefaultMaxAnswer = 32 << 20 // bytes of an answer in one piece
	maxErrorAnswer   = 64 << 10 // bytes of an error answer that are kept
	maxRest          = 16 << 10 // bytes read after the end of a stream
	errorAnswerWait  = 5 * time.Second
)

// Options configures a Client.
type Options struct {
	Dialer    *egress.Dialer
	MaxAnswer int64 // bytes of an answer in one piece; 0 means DefaultMaxAnswer
}

// Client calls backends over connections that it keeps.
type Client struct {
	o      Options
	tokens tokens
	clocks clocks

	mu         sync.Mutex
	transports map[egress.TransportOptions]*http.Transport // guarded by mu; one for each distinct option in use
	clears     map[egress.TransportOptions]*egress.Clear   // likewise, for backends that are called in the clear
	signers    map[AWS]*v4.Signer                          // likewise; a signer keeps what it derives from a secret by the key's id alone
}

// New makes a Client.
func New(o Options) *Client {
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	return &Client{o: o, transports: make(map[egress.TransportOptions]*http.Transport), clears: make(map[egress.TransportOptions]*egress.Clear), signers: make(map[AWS]*v4.Signer)}
}

// Close ends the calls of token endpoints and the idle connections. Answers that are still read are not touched.
func (c *Client) Close() error {
	c.tokens.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
	for _, t := range c.clears {
		t.CloseIdleConnections()
	}
	return nil
}

func (c *Client) clear(o egress.TransportOptions) *egress.Clear {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.clears[o]
	if !ok {
		t = c.o.Dialer.Clear(o)
		c.clears[o] = t
	}
	return t
}

func (c *Client) transport(o egress.TransportOptions) *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.transports[o]
	if !ok {
		t = c.o.Dialer.Transport(o)
		c.transports[o] = t
	}
	return t
}

// Request is one attempt.
type Request struct {
	Method string      // empty means POST
	Path   string      // below the base URL, escaped, with its query, such as /chat/completions: see Target.At
	Body   []byte      // not changed, and not kept after the answer is closed
	Pieces [][]byte    // the body in pieces, where Body is nil
	Header http.Header // the client's; those that may pass are sent
	Stream bool        // events are expected
	Type   []string    // Content-Type of the body; nil is that of JSON
	Any    bool        // the answer may be of another type than JSON
	Long   bool        // the answer may have any length: it is read with Read, which has no bound
	// Sent, if it is not nil, is set when the backend may have begun to know of it.
	Sent *atomic.Bool
	Key  string // a name of the target's Keys or Logins; another, or none, takes the target's own
}

// Do sends the request and waits for the headers. The error is an *Error, or,
// where ctx itself ended, context.Cause of it, wrapped together with ErrUnsent if
// the backend knows nothing of the request. The caller closes the answer.
func (c *Client) Do(ctx context.Context, t *Target, r Request) (*Answer, error) {
	a, l, err := c.try(ctx, t, &r)
	if err == nil && c.renews(t, l, a) {
		a.Close()
		a, _, err = c.try(ctx, t, &r)
	}
	return a, err
}

// try is Do with the credential that there is now.
func (c *Client) try(ctx context.Context, t *Target, r *Request) (*Answer, *letter, error) {
	l := t.letter(r)
	if err := c.authenticate(ctx, t, r.Key, l); err != nil {
		return nil, nil, err
	}
	a := &Answer{parent: ctx, max: c.o.MaxAnswer}
	clear := t.BaseURL.Scheme == "http"
	if !clear {
		ctx, a.cancel = context.WithCancel(ctx)
	}
	a.watch = newWatch(a.expire, t.Timeouts.withDefaults(), r.Stream)
	var err error
	if clear {
		err = c.sendClear(ctx, a, t, l)
	} else {
		err = c.send(ctx, a, t, l)
	}
	if err == nil {
		err = a.begin(r)
	}
	if err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, l, nil
}

// sendClear sends a request in the clear and waits for the headers.
func (c *Client) sendClear(ctx context.Context, a *Answer, t *Target, l *letter) error {
	resp, err := c.clear(t.transport()).Do(ctx, &egress.ClearRequest{
		Method: l.method, Host: l.url.Host, Path: l.url.RequestURI(), Header: l.header, Body: l.pieces,
		Cut: &a.cut, Sent: l.sent,
	})
	if err != nil {
		unsent := errors.Is(err, egress.ErrUnsent)
		err = a.failed(err)
		if a.parent.Err() != nil && unsent {
			err = fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		return err
	}
	a.body, a.Status, a.Header, a.length = resp, resp.Status, resp.Header, resp.Length
	return nil
}

// send does the same over TLS, where the backend may speak HTTP/2.
func (c *Client) send(ctx context.Context, a *Answer, t *Target, l *letter) error {
	out := new(outgoing)
	trace := &httptrace.ClientTrace{GotConn: out.got}
	if l.sent != nil {
		trace.WroteHeaders = func() { l.sent.Store(true) }
	}
	traced := httptrace.WithClientTrace(ctx, trace)
	resp, err := c.transport(t.transport()).RoundTrip(l.request(traced))
	if err != nil {
		err = a.failed(err)
		if a.parent.Err() != nil && !out.sent() {
			err = fmt.Errorf("%w: %w", ErrUnsent, err)
		}
		return err
	}
	a.body, a.Status, a.Header, a.length = resp.Body, resp.StatusCode, resp.Header, resp.ContentLength
	return nil
}

// outgoing knows whether anything of a request can have left. A request that is
// cut while it is written may have arrived.
type outgoing struct{ on atomic.Pointer[taken] }

// taken is a connection, and how much had been written to it before.
type taken struct {
	conn   net.Conn
	before int64
}

// got notes the connection that the request will be written to.
func (o *outgoing) got(i httptrace.GotConnInfo) {
	o.on.Store(&taken{i.Conn, egress.Writes(i.Conn)})
}

func (o *outgoing) sent() bool {
	t := o.on.Load()
	return t != nil && egress.Writes(t.conn) > t.before
}

func (l *letter) request(ctx context.Context) *http.Request {
	req := &http.Request{
		Method: l.method, URL: l.url, Header: l.header, Host: l.url.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for _, p := range l.pieces {
		req.ContentLength += int64(len(p))
	}
	if req.ContentLength > 0 {
		req.Body = l.reader()
		req.GetBody = func() (io.ReadCloser, error) { return l.reader(), nil }
	} else {
		req.Body = http.NoBody
	}
	return req.WithContext(ctx)
}

func (r *Request) pieces() [][]byte {
	if r.Body != nil {
		return [][]byte{r.Body}
	}
	return r.Pieces
}

// reader reads the body.
func (l *letter) reader() io.ReadCloser {
	if len(l.pieces) == 1 {
		return io.NopCloser(bytes.NewReader(l.pieces[0]))
	}
	readers := make([]io.Reader, len(l.pieces))
	for i, p := range l.pieces {
		readers[i] = bytes.NewReader(p)
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// begin judges the headers and reads what is not an answer to pass on.
func (a *Answer) begin(r *Request) error {
	switch {
	case a.Status >= 300 && a.Status < 400:
		return &Error{Reason: sluice.UpstreamRedirect, Status: a.Status}
	case a.Status >= 400:
		a.watch.within(errorAnswerWait)
		body, err := io.ReadAll(io.LimitReader(a.body, maxErrorAnswer))
		if err != nil && a.parent.Err() != nil {
			return context.Cause(a.parent)
		}
		a.Refusal = body // a refusal cut short is still one
		return nil
	}
	if e := a.Header["Content-Encoding"]; len(e) > 0 && !strings.EqualFold(e[0], "identity") {
		return &Error{Reason: sluice.UpstreamMalformed, Sent: true, Status: a.Status, What: "content encoding"}
	}
	if a.length > a.max && !r.Long {
		return &Error{Reason: sluice.UpstreamTooLarge, Sent: true, Status: a.Status}
	}
	a.Frames = r.Stream && is(a.Header, frameType)
	a.Events = a.Frames || r.Stream && is(a.Header, eventType)
	a.watch.wait()
	return nil
}

// The media types of streams: server-sent events, and the binary frames of Bedrock.
const (
	eventType = "text/event-stream"
	frameType = "application/vnd.amazon.eventstream"
)

// is reports whether an answer is of a media type.
func is(h http.Header, kind string) bool {
	v := h[hContentType]
	return len(v) > 0 && len(v[0]) >= len(kind) && strings.EqualFold(v[0][:len(kind)], kind)
}
