package jobs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sluice"
	"sluice/internal/route"
	"sluice/internal/wire"
)

// openaiLine is one line of an OpenAIBatch.
type openaiLine struct {
	CustomID *string        `json:"custom_id"`
	Method   *string        `json:"method"`
	URL      *string        `json:"url"`
	Body     jsontext.Value `json:"body"`
}

// messageLine is one line of a MessageBatch.
type messageLine struct {
	CustomID *string        `json:"custom_id"`
	Params   jsontext.Value `json:"params"`
}

// bodyOf is the request's body that a line which has been checked has in it.
func bodyOf(k Kind, line []byte) ([]byte, error) {
	switch k {
	case OpenAIBatch:
		var l openaiLine
		err := json.Unmarshal(line, &l)
		return l.Body, err
	case MessageBatch:
		var l messageLine
		err := json.Unmarshal(line, &l)
		return l.Params, err
	}
	return line, nil
}

// headOf scans a request's body and says what of it no line may have.
func headOf(op wire.Operation, body []byte, p *sluice.Policy, table *route.Table) (*wire.Head, error) {
	h, err := wire.Scan(op, body)
	if err != nil {
		return nil, err
	}
	if h.Stream {
		e := sluice.Invalid("stream", "is true, and nobody reads the answer as it comes")
		e.Hint = "leave it out"
		return nil, e
	}
	if h.Background {
		e := sluice.Invalid("background", "is true: all of a batch is answered in the background")
		e.Hint = "leave it out"
		return nil, e
	}
	model := sluice.ModelID(h.Model)
	if p != nil && !p.Allows(model) {
		return nil, &sluice.Error{Kind: sluice.KindForbidden, Reason: sluice.ModelNotAllowed, Param: "model", Msg: "is not allowed for this key", Hint: "GET /v1/models lists what is"}
	}
	if table.Models[model] == nil {
		return nil, &sluice.Error{Kind: sluice.KindNotFound, Reason: sluice.ModelNotFound, Param: "model", Msg: fmt.Sprintf("%q is no model here", h.Model), Hint: "GET /v1/models lists what is"}
	}
	for _, name := range h.Privileged {
		if p == nil || !slices.Contains(p.EngineFields, name) {
			return nil, sluice.Invalid(name, "steers the backend's engine, which this key may not do: leave it out")
		}
	}
	return h, nil
}

// checker checks the lines of one input, in order. What it remembers of a line is 24
// bytes.
type checker struct {
	job    *Job
	policy *sluice.Policy
	table  *route.Table

	seen     map[[16]byte]int32 // hash of a custom id → its line
	problems []Problem
	dropped  int
	cause    *sluice.Error // that the first problem was made of; nil if it was made of none
}

func (c *checker) wrong(line int, code, param, format string, args ...any) {
	if len(c.problems) >= MaxProblems {
		c.dropped++
		return
	}
	c.problems = append(c.problems, Problem{Line: line, Code: code, Param: param, Message: fmt.Sprintf(format, args...)})
}

// broken reports whether anything was wrong.
func (c *checker) broken() bool { return len(c.problems) > 0 }

// check reads line n. Its custom id is empty where the line is wrong.
func (c *checker) check(n int, line []byte) (customID string) {
	switch c.job.Kind {
	case OpenAIBatch:
		return c.openai(n, line)
	case MessageBatch:
		return c.message(n, line)
	}
	h, err := headOf(c.job.Op, line, c.policy, c.table)
	if err != nil {
		c.refused(n, "", err)
		return ""
	}
	c.job.Model = h.Model
	return ""
}

func (c *checker) openai(n int, line []byte) string {
	var l openaiLine
	if err := json.Unmarshal(line, &l); err != nil {
		c.wrong(n, "invalid_json_line", "", "This line is not a JSON object with custom_id, method, url and body: %s", plain(err))
		return ""
	}
	id := c.customID(n, l.CustomID)
	switch {
	case l.Method == nil:
		c.wrong(n, "missing_required_parameter", "method", `method is required: write "POST"`)
	case *l.Method != "POST":
		c.wrong(n, "invalid_method", "method", `method is %q: write "POST"`, cut(*l.Method))
	}
	switch {
	case l.URL == nil:
		c.wrong(n, "missing_required_parameter", "url", "url is required: write %q, the endpoint of the batch", c.job.Endpoint)
	case *l.URL != c.job.Endpoint:
		c.wrong(n, "invalid_url", "url", "url is %q and the endpoint of the batch is %q: all lines have that", cut(*l.URL), c.job.Endpoint)
	}
	if bytes.TrimSpace(l.Body) == nil || l.Body.Kind() != '{' {
		c.wrong(n, "missing_required_parameter", "body", "body is required: the JSON object that %s takes", c.job.Endpoint)
		return id
	}
	h, err := headOf(c.job.Op, l.Body, c.policy, c.table)
	switch {
	case err != nil:
		c.refused(n, "body", err)
	case c.job.Model == "":
		c.job.Model = h.Model
	case c.job.Model != h.Model:
		c.wrong(n, "mismatched_model", "body.model", "model is %q and that of the lines before is %q: one batch has one model", cut(h.Model), c.job.Model)
	}
	return id
}

// message checks what is around the parameters: those are the line's own affair.
func (c *checker) message(n int, line []byte) string {
	var l messageLine
	if err := json.Unmarshal(line, &l); err != nil {
		c.wrong(n, "invalid_json_line", "", "is not an object with custom_id and params: %s", plain(err))
		return ""
	}
	if l.Params.Kind() != '{' {
		c.wrong(n, "missing_required_parameter", "params", "params is required: the JSON object that /v1/messages takes")
	} else if n == 1 {
		if h, err := wire.Scan(c.job.Op, l.Params); err == nil {
			c.job.Model = h.Model
		}
	}
	return c.customID(n, l.CustomID)
}

// customID checks that a line is told apart from all others.
func (c *checker) customID(n int, id *string) string {
	switch {
	case id == nil || *id == "":
		c.wrong(n, "missing_required_parameter", "custom_id", "custom_id is required: a text that no other line has")
		return ""
	case len(*id) > MaxCustomID || !utf8.ValidString(*id) || strings.IndexByte(*id, 0) >= 0:
		c.wrong(n, "invalid_custom_id", "custom_id", "custom_id has at most %d bytes and no NUL, this one has %d", MaxCustomID, len(*id))
		return ""
	}
	sum := sha256.Sum256([]byte(*id))
	if first, ok := c.seen[[16]byte(sum[:16])]; ok {
		c.wrong(n, "duplicate_custom_id", "custom_id", "custom_id %q is that of line %d already: give each its own", cut(*id), first)
		return ""
	}
	c.remember(n, sum)
	return *id
}

// saw notes the custom id of a line that was checked before.
func (c *checker) saw(n int, id string) { c.remember(n, sha256.Sum256([]byte(id))) }

func (c *checker) remember(n int, sum [sha256.Size]byte) {
	if c.seen == nil {
		c.seen = make(map[[16]byte]int32)
	}
	c.seen[[16]byte(sum[:16])] = int32(n)
}

// refused notes what is wrong with a request's body.
func (c *checker) refused(n int, within string, err error) {
	e := sluice.AsError(err)
	param := e.Param
	if within != "" && param != "" {
		param = within + "." + param
	} else if within != "" {
		param = within
	}
	said := e.Msg
	if e.Param != "" {
		said = e.Param + " " + said
	}
	if e.Hint != "" {
		said += ": " + e.Hint
	}
	if !c.broken() {
		c.cause = e
	}
	c.wrong(n, e.Reason.String(), param, "%s", said)
}

// plain is an error of the JSON decoder without what is of its own making.
func plain(err error) string {
	if e, ok := errors.AsType[*json.SemanticError](err); ok && e.JSONKind != 0 {
		at := strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
		return cut(cmp.Or(at, "it") + " is a JSON " + e.JSONKind.String())
	}
	s := err.Error()
	for _, prefix := range [...]string{"jsontext: ", "json: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	return cut(s)
}

// cut shortens what a client wrote to what an error may show of it.
func cut(s string) string {
	const most = 120
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
