package telemetry

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/proxy"
)

// Request is one request at its end, as the data plane tells it.
type Request = proxy.Record

// How long a request's line may wait for others, to be written with them, how
// much may wait, and how many in so long do not.
const (
	lineWait  = 100 * time.Millisecond
	lineGroup = 16 << 10
	lineBurst = 10
)

// RequestLog writes the canonical line of each request: who, what, how it ended
// and what it took. A line holds no body and no credential; the key is its public
// id. Level is info, or warn when the gateway or a backend failed the request.
//
// It writes what a Logger of the same options would write, for a tenth of the
// time: there is one line for each request. A line is written at once, until there
// are more than ten in 100 ms: from then on those that follow within 100 ms are
// written together. A warning does not wait. What a process that is killed under
// load has not written is in the ledger.
type RequestLog struct {
	o LogOptions

	mu     sync.Mutex // guards what follows
	w      io.Writer
	buf    []byte
	window time.Time   // when the last lineWait began
	lines  int         // in it
	timer  *time.Timer // writes what waits; nil until there was something
	closed bool
}

// Shared makes a writer that a Logger and a RequestLog may share.
func Shared(w io.Writer) io.Writer { return &shared{w: w} }

type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// NewRequestLog writes to w, see Shared. Close it.
func NewRequestLog(w io.Writer, o LogOptions) *RequestLog { return &RequestLog{w: w, o: o} }

// Log writes the line of r, soon.
func (l *RequestLog) Log(r *Request) { l.log(time.Now(), r) }

func (l *RequestLog) log(now time.Time, r *Request) {
	level := slog.LevelInfo
	if o := r.Final.Outcome; o == sluice.Failed || o == sluice.Expired {
		level = slog.LevelWarn
	}
	if level < l.o.Level {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.window) >= lineWait {
		l.window, l.lines = now, 0
	}
	l.lines++
	first := len(l.buf) == 0
	n := line{b: l.buf, json: l.o.Format != "text"}
	n.begin(now, level)
	n.request(r)
	l.buf = n.end()
	switch {
	case level > slog.LevelInfo, len(l.buf) >= lineGroup, l.closed, first && l.lines <= lineBurst:
		l.flush()
	case first && l.timer == nil:
		l.timer = time.AfterFunc(lineWait, l.due)
	case first:
		l.timer.Reset(lineWait)
	}
}

// due runs on the timer.
func (l *RequestLog) due() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

// flush writes what waits. mu is held.
func (l *RequestLog) flush() {
	if len(l.buf) == 0 {
		return
	}
	_, _ = l.w.Write(l.buf) // there is nowhere to tell of a log that cannot be written
	l.buf = l.buf[:0]
	if cap(l.buf) > 2*lineGroup {
		l.buf = nil
	}
}

// Close writes what waits. Lines that come later are written at once.
func (l *RequestLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.flush()
}

// line is one line on its way, as slog's handlers write it.
type line struct {
	b    []byte
	json bool
}

func (n *line) begin(now time.Time, level slog.Level) {
	now = now.UTC()
	if n.json {
		n.b = append(n.b, `{"time":"`...)
		n.b = now.AppendFormat(n.b, time.RFC3339Nano)
		n.b = append(n.b, '"')
	} else {
		n.b = append(n.b, `time=`...)
		n.b = now.AppendFormat(n.b, "2006-01-02T15:04:05.000Z07:00")
	}
	n.word("level", level.String())
	n.word("msg", "request")
}

func (n *line) end() []byte {
	if n.json {
		n.b = append(n.b, '}')
	}
	return append(n.b, '\n')
}

func (n *line) key(k string) {
	if !n.json {
		n.b = append(n.b, ' ')
		n.b = append(n.b, k...)
		n.b = append(n.b, '=')
		return
	}
	n.b = append(n.b, ',', '"')
	n.b = append(n.b, k...)
	n.b = append(n.b, '"', ':')
}

// word writes a word of the gateway's own.
func (n *line) word(k, v string) {
	n.key(k)
	if n.json || v == "" {
		n.b = append(n.b, '"')
		n.b = append(n.b, v...)
		n.b = append(n.b, '"')
		return
	}
	n.b = append(n.b, v...)
}

// text writes what may have come from outside.
func (n *line) text(k, v string) {
	if len(v) <= maxLogged && bare(v) {
		n.word(k, v)
		return
	}
	n.key(k)
	v = Clean(v)
	if n.json {
		quoted, err := jsontext.AppendQuote(n.b, v)
		if err == nil { // it is valid UTF-8 by now
			n.b = quoted
		}
		return
	}
	n.b = strconv.AppendQuote(n.b, v)
}

// bare reports whether v needs neither quotes nor escapes in either format.
func bare(v string) bool {
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=' {
			return false
		}
	}
	return true
}

func (n *line) int(k string, v int64) {
	n.key(k)
	n.b = strconv.AppendInt(n.b, v, 10)
}

func (n *line) bool(k string, v bool) {
	n.key(k)
	n.b = strconv.AppendBool(n.b, v)
}

// seconds writes a duration as seconds with microseconds: a number that log
// stores can sum.
func (n *line) seconds(k string, d time.Duration) {
	n.key(k)
	us := max(d.Microseconds(), 0)
	n.b = strconv.AppendInt(n.b, us/1e6, 10)
	if us %= 1e6; us == 0 {
		return
	}
	n.b = append(n.b, '.')
	for unit := int64(1e5); us > 0; unit /= 10 {
		n.b = append(n.b, '0'+byte(us/unit))
		us %= unit
	}
}

func (n *line) request(r *Request) {
	e := &r.Final
	n.text("request_id", string(e.Request))
	n.text("tenant", string(e.Tenant))
	n.text("project", string(e.Project))
	n.text("key", string(e.Key))
	n.text("operation", e.Operation)
	n.text("model", string(e.Model))
	n.word("class", e.Class.String())
	n.word("outcome", e.Outcome.String())
	n.word("reason", e.Reason.String())
	n.int("status", int64(e.Status))
	n.int("attempts", int64(e.Attempt))
	n.bool("stream", e.Stream)
	n.seconds("queued_s", e.Queued)
	n.seconds("ttft_s", e.FirstToken)
	n.seconds("duration_s", e.Duration)
	n.some("backend", string(e.Backend))
	n.some("pool", string(e.Pool))
	n.some("policy", e.Policy)
	n.some("task", e.Task)
	n.some("upstream_request_id", e.UpstreamRequestID)
	for _, c := range tokenClasses(&r.Usage) {
		if c.n != 0 {
			n.int(c.logged, int64(c.n))
		}
	}
	n.word("usage_source", r.Usage.Source.String())
	n.int("cost_nanodollars", int64(r.Cost))
	if r.Risk != sluice.RiskNone {
		n.word("risk", r.Risk.String())
	}
	if r.Denied != "" {
		n.word("retry_denied", r.Denied)
	}
	if f := r.Refusal; f != nil {
		n.word("limit_scope", f.Scope.String())
		n.word("limit_dimension", f.Limit.Dimension.String())
		n.word("limit_window", f.Limit.Window.String())
		n.int("limit_amount", f.Limit.Amount)
	}
	if w := r.Would; w != nil && w.Refusal != nil {
		n.word("shadow_reason", w.Reason.String())
		n.word("shadow_scope", w.Refusal.Scope.String())
		n.word("shadow_dimension", w.Refusal.Limit.Dimension.String())
		n.word("shadow_window", w.Refusal.Limit.Window.String())
	}
	if r.Err != nil {
		n.text("error", credentials.Redact(r.Err.Error()))
	}
}

// some writes a text unless it is empty.
func (n *line) some(k, v string) {
	if v != "" {
		n.text(k, v)
	}
}
