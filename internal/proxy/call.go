package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"sluice"
	"sluice/internal/auth"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/ledger"
	"sluice/internal/wire"
)

// Record is one request at its end: what the log line and the metrics are made
// of. It holds no body, no header and no secret.
type Record struct {
	Final   ledger.Entry    // outcome and reason are the request's
	Usage   sluice.Usage    // over all attempts; Source is the least trusted of them
	Cost    sluice.Nano     // over all attempts
	Risk    sluice.Risk     // its label
	Refusal *sluice.Refusal // the limit that did not fit, nil if it was none
	Denied  string          // why a failed attempt was not followed by another, where that is not plain from the failure
	Would   *sluice.Error   // why it would have been refused, had its limits not been shadows
	Err     error           // the cause, for the log alone
}

// call is one request of the data plane.
type call struct {
	p       *Proxy
	w       http.ResponseWriter
	r       *http.Request
	op      wire.Operation
	word    string // of what is no operation; empty takes op's
	dialect wire.Dialect
	how     auth.Prefer
	at      wire.InPath // what the path tells of the request
	array   bool        // its stream is a list, and not events
	arrived time.Time
	sink    sink
	values  values

	dropping string // what of the request's own headers had less effect than it asked for

	principal sluice.Principal
	head      *wire.Head
	space     *space  // that the body is in; nil if it has its own
	probe     [1]byte // what follows the body
	limits    engine.Limits
	record    Record
	recorded  bool // by the exchange: Record.Final is the ledger's
}

// handle brackets a request: it gets its id, survives a panic and is recorded
// once.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request, op wire.Operation, how auth.Prefer, serve func(*call)) {
	c := &call{p: p, w: w, r: r, op: op, dialect: op.Dialect(), how: how, arrived: time.Now()}
	if op == wire.Models {
		c.dialect = spoken(r)
	}
	c.sink.init(c)
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			if p.o.Panic != nil {
				p.o.Panic(c.sink.id, v, debug.Stack())
			}
			c.reject(&sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "internal error", Err: fmt.Errorf("panic: %v", v)})
		}
		if c.finish() {
			panic(http.ErrAbortHandler) // net/http closes the connection and prints nothing
		}
	}()
	if c.dialect == wire.Gemini {
		if err := c.query(); err != nil {
			c.reject(err)
			return
		}
	}
	serve(c)
}

// serve is the request path.
func (c *call) serve() {
	if err := c.identify(); err != nil {
		c.reject(err)
		return
	}
	body, err := c.read()
	if err != nil {
		c.reject(err)
		return
	}
	c.head, err = c.scan(body)
	if err != nil {
		c.reject(err)
		return
	}
	req, err := c.request(body)
	if err != nil {
		c.reject(err)
		return
	}
	if c.later(req) {
		return
	}
	c.sink.watch(c.head.Stream)
	res := c.p.o.Run(c.r.Context(), req, &c.sink)
	if !res.BodyKept {
		c.p.bodies.give(c.space)
	}
	c.space = nil
	c.deliver(res)
}

// scan reads the head of the body.
func (c *call) scan(body []byte) (*wire.Head, error) {
	if c.op.Form() {
		return wire.ScanForm(c.op, body, c.r.Header.Get("Content-Type"))
	}
	return wire.ScanIn(c.op, body, c.at)
}

// deliver tells the client what the exchange has not.
func (c *call) deliver(res exchange.Result) {
	c.recorded = true
	c.limits = res.Limits
	c.record = Record{Final: res.Final, Usage: res.Usage, Cost: res.Cost, Risk: res.Risk, Denied: res.Denied, Would: res.Would}
	if res.Err == nil {
		return
	}
	c.record.Refusal, c.record.Err = res.Err.Refusal, res.Err.Err
	if res.Pass != nil && c.sink.pass(res.Head, res.Pass) {
		return
	}
	c.sink.fail(res.Err, res.Head)
}

// identify finds who calls.
func (c *call) identify() error {
	credential, err := auth.Credential(c.r.Header, c.how)
	if err != nil {
		return err
	}
	c.principal, err = c.p.o.Identify(credential)
	return err
}

// reject ends a request that the exchange has not seen.
func (c *call) reject(err error) {
	e := sluice.AsError(err)
	if !c.recorded {
		f := &c.record.Final
		f.Outcome, f.Reason, f.Status = sluice.Rejected, e.Reason, wire.Status(c.dialect, e, c.errorOptions())
		if e.Kind == sluice.KindInternal {
			f.Outcome = sluice.Failed
		}
		if e.Kind == sluice.KindCancelled {
			f.Outcome, f.Status = sluice.Cancelled, 499
		}
	}
	c.record.Refusal, c.record.Err = e.Refusal, e.Err
	c.sink.fail(e, nil)
}

// finish closes the sink, hands the record over and reports whether the
// connection must be aborted.
func (c *call) finish() (abort bool) {
	abort = c.sink.close()
	f := &c.record.Final
	if !c.recorded {
		f.Request, f.At, f.Ended, f.Final = c.sink.id, c.arrived, time.Now(), true
		f.Tenant, f.Project, f.Key, f.User = c.principal.Tenant, c.principal.Project, c.principal.Key, c.principal.User
		f.Run = c.principal.Run
		f.Operation, f.Dialect = cmp.Or(c.word, c.op.String()), string(c.dialect)
		f.Duration = f.Ended.Sub(f.At)
		if p := c.principal.Policy; p != nil {
			f.Class = p.Class
		}
		if c.head != nil {
			f.Model, f.Stream = sluice.ModelID(c.head.Model), c.head.Stream
		}
	}
	c.p.o.Log(&c.record)
	return abort
}

func (c *call) errorOptions() wire.ErrorOptions {
	return wire.ErrorOptions{Budget402: c.principal.Policy != nil && c.principal.Policy.Budget402}
}

func (c *call) notFound() {
	c.reject(&sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no such path", Hint: "see the list of endpoints in the documentation"})
}

func wrongMethod(allow string) func(*call) {
	return func(c *call) {
		c.w.Header().Set("Allow", allow)
		c.reject(&sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.MethodNotAllowed, Msg: "the method is not allowed here", Hint: "use " + allow})
	}
}
