package proxy

import (
	"io"
	"net/http"
	"strings"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/exchange"
	"sluice/internal/idempotency"
	"sluice/internal/wire"
)

// Mount is a path of the data plane that another face serves: this one identifies the
// caller, bounds the body, writes errors in the dialect and records the request.
type Mount struct {
	Pattern   string       // of http.ServeMux, with its method: "GET /v1/files/{id}"
	Operation string       // the request's word in logs, metrics and the ledger
	Dialect   wire.Dialect // empty: as the request's headers tell, like that of /v1/models
	MaxBody   int64        // bytes of the body, which is not read ahead; 0 takes Options.MaxBody
	Once      bool         // it obeys an Idempotency-Key; else that has no effect
	// Serve answers the request, or returns why not: a *sluice.Error is told as it is,
	// any other is internal. What it writes is sent part by part, each under a deadline;
	// an error after that aborts the connection.
	Serve func(w http.ResponseWriter, r *http.Request, by Caller) error
}

// Caller is who asks for what is mounted, and what of the gateway's own headers says
// how.
type Caller struct {
	ID        sluice.RequestID
	Principal sluice.Principal
	Dialect   wire.Dialect
	Task      string
	Labels    []sluice.Label
	Risk      sluice.Risk
	Key       string // the Idempotency-Key, of a Mount that obeys it; empty is none
}

// mount adds what other faces serve. Methods that a path does not have are refused in
// its dialect.
func (p *Proxy) mount(mux *http.ServeMux) {
	type path struct {
		dialect wire.Dialect
		methods []string
	}
	var order []string
	paths := map[string]*path{}
	for _, m := range p.o.Mounts {
		mux.HandleFunc(m.Pattern, p.mounted(m.Dialect, func(c *call) { c.serveMount(&m) }))
		method, at, _ := strings.Cut(m.Pattern, " ")
		if paths[at] == nil {
			paths[at] = &path{dialect: m.Dialect}
			order = append(order, at)
		}
		paths[at].methods = append(paths[at].methods, method)
	}
	for _, at := range order {
		mux.HandleFunc(at, p.mounted(paths[at].dialect, wrongMethod(strings.Join(paths[at].methods, ", "))))
	}
}

// mounted serves a path of a dialect, or, where that is empty, of the one that the
// request's headers speak.
func (p *Proxy) mounted(d wire.Dialect, f func(*call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		dialect := d
		if dialect == "" {
			dialect = spoken(r)
		}
		p.handle(w, r, wire.Models, preferIn(dialect), func(c *call) {
			c.dialect = dialect
			f(c)
		})
	}
}

// preferIn is where clients of a dialect put their key.
func preferIn(d wire.Dialect) auth.Prefer {
	switch d {
	case wire.Anthropic:
		return auth.PreferAPIKey
	case wire.Gemini:
		return auth.PreferGoogleKey
	}
	return auth.PreferAuthorization
}

func (c *call) serveMount(m *Mount) {
	c.word = m.Operation
	if !c.known() {
		return
	}
	by, err := c.caller(m)
	if err != nil {
		c.reject(err)
		return
	}
	in, out := c.mountBody(m.MaxBody), &answer{c: c}
	c.r.Body = in
	err = m.Serve(out, c.r, by)
	if !in.ended { // what is left of the body nobody reads
		in.end(false)
	}
	if err == nil {
		out.end()
		return
	}
	if in.failed != nil {
		err = in.failed
	}
	if !in.ended {
		c.w.Header().Set("Connection", "close")
	}
	c.reject(err) // which aborts an answer that has begun
}

// caller reads the gateway's own headers as far as they have an effect here.
func (c *call) caller(m *Mount) (Caller, error) {
	h := c.r.Header
	by := Caller{ID: c.sink.id, Principal: c.principal, Dialect: c.dialect}
	if err := understood(h); err != nil {
		return by, err
	}
	err := idempotency.Check(h[idempotency.Header])
	switch {
	case err != nil && m.Once:
		return by, err
	case m.Once:
		by.Key = h.Get(idempotency.Header)
	case len(h[idempotency.Header]) > 0:
		c.drop("idempotency-key")
	}
	if by.Risk, err = c.risk(); err != nil {
		return by, err
	}
	if v := h[hTask]; len(v) > 0 {
		if by.Task, err = sluice.ParseTask(v[0]); err != nil {
			return by, err
		}
	}
	if v := h[hLabels]; len(v) > 0 {
		if by.Labels, err = parseLabels(v[0]); err != nil {
			return by, err
		}
	}
	return by, c.without()
}

// without checks the headers that have no effect on what is mounted, as they are checked
// elsewhere, and tells which are there.
func (c *call) without() error {
	h := c.r.Header
	if _, err := c.class(sluice.Batch); err != nil {
		return err
	}
	if _, err := maxWait(h[hMaxWait]); err != nil {
		return err
	}
	if _, err := wish(h[hCache]); err != nil {
		return err
	}
	if err := c.run(&exchange.Request{}); err != nil {
		return err
	}
	c.principal.Run = "" // this request is no step of it
	if err := c.session(&exchange.Request{}); err != nil {
		return err
	}
	for _, name := range [...]string{hClass, hMaxWait, hCache, hSession, hRun, hRunLimits} {
		if len(h[name]) > 0 {
			c.drop(strings.ToLower(name))
		}
	}
	if prefers(h["Prefer"], respondAsync) {
		c.drop("prefer")
	}
	return nil
}

// mountBody is a body that is read as it is needed, at a least rate and up to a bound.
type mountBody struct {
	paced
	left   int64
	most   int64
	ended  bool
	failed *sluice.Error // why it could not be read on
}

func (c *call) mountBody(most int64) *mountBody {
	if most <= 0 {
		most = c.p.o.MaxBody
	}
	b := &mountBody{paced: paced{c: c, start: time.Now(), from: c.r.Body}, left: most, most: most}
	b.ended = c.r.ContentLength == 0
	return b
}

// Read implements io.Reader. Its errors are a *sluice.Error, or io.EOF.
func (b *mountBody) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if b.n == 0 {
		if b.failed = b.refused(); b.failed != nil {
			return 0, b.failed
		}
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.paced.Read(p)
	switch {
	case int64(n) > b.left:
		b.failed = tooLarge(b.most)
		return int(b.left), b.failed
	case err == io.EOF:
		b.ended = true
		b.end(true)
		return n, err
	case err != nil:
		b.failed = b.c.unread(err)
		return n, b.failed
	}
	b.left -= int64(n)
	return n, nil
}

var _ io.ReadCloser = (*mountBody)(nil)

// refused is why the body is not read at all.
func (b *mountBody) refused() *sluice.Error {
	if err := b.c.encoded(); err != nil {
		return err
	}
	if b.c.r.ContentLength > b.most {
		return tooLarge(b.most)
	}
	return nil
}

// Close implements io.Closer: net/http closes what it made.
func (b *mountBody) Close() error { return nil }

// answer is what a mount writes to: the sink, with the request's id on it and each part
// under its own deadline.
type answer struct {
	c      *call
	sent   bool
	status int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.c.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.sent {
		return
	}
	a.sent, a.status = true, status
	s := &a.c.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = true
	h := a.c.w.Header()
	a.c.answerHeader(h, nil)
	if d := a.c.dropping; d != "" {
		if kept := h.Get(hDropped); kept != "" { // of the answer that is given here
			d = kept + ", " + d
		}
		h[hDropped] = []string{d}
	}
	if a.c.dialect == wire.Anthropic && h["Request-Id"] == nil {
		h.Set("Request-Id", string(s.id))
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = typeJSON
	}
	s.slide()
	a.c.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (n int, err error) {
	a.WriteHeader(http.StatusOK)
	s := &a.c.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		part := p[:min(len(p), writePart)]
		s.slide()
		k, err := a.c.w.Write(part)
		n += k
		if err != nil {
			return n, s.stalled(err)
		}
		p = p[len(part):]
	}
	return n, nil
}

// end records an answer that is whole.
func (a *answer) end() {
	a.WriteHeader(http.StatusOK)
	a.c.record.Final.Outcome, a.c.record.Final.Status = sluice.Completed, a.status
}
