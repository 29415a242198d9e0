package fakellm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The batch APIs of both dialects: files and batches, and message batches. A batch's
// requests are served one after the other by the server itself, on the machines of
// their models, and stand in the book as Batch. Rules of the script for the model
// "batch" are about batches: status=N refuses to make one, hang-first leaves it
// running until it is cancelled, die-after=n has it expire after n requests, and both
// together leave it running after n requests.

// scriptedBatch is the name by which the script has rules for batches.
const scriptedBatch = "batch"

// How a batch stands.
const (
	batchRunning    = "in_progress"
	batchCancelling = "cancelling"
	batchDone       = "completed"
	batchExpired    = "expired"
	batchCancelled  = "cancelled"
	batchFailed     = "failed"
)

// batch is one of either dialect.
type batch struct {
	id, owner string
	anthropic bool
	input     string // its file
	endpoint  string
	window    string
	metadata  json.RawMessage
	lines     []batchLine
	stop      context.CancelFunc

	status                string
	at, ended, cancelled  time.Time
	outcomes              [4]int // succeeded, errored, cancelled, expired
	output, errors        bytes.Buffer
	outputFile, errorFile string
	invalid               []obj
}

// What became of a line.
const (
	lineSucceeded = iota
	lineErrored
	lineCancelled
	lineExpired
)

// batchLine is one request of a batch.
type batchLine struct {
	custom, path string
	body         []byte
}

// batches are the files and batches of a provider, each its credential's own.
type batches struct {
	mu    sync.Mutex
	files []*kept
	all   []*batch
	ctx   context.Context
	close context.CancelFunc
	work  sync.WaitGroup
}

func (s *Server) batchRoutes() {
	s.batches.ctx, s.batches.close = context.WithCancel(context.Background())
	for pattern, f := range map[string]func(*batchCall){
		"POST /v1/files":                        (*batchCall).upload,
		"GET /v1/files":                         (*batchCall).listFiles,
		"GET /v1/files/{id}":                    (*batchCall).showFile,
		"GET /v1/files/{id}/content":            (*batchCall).content,
		"DELETE /v1/files/{id}":                 (*batchCall).deleteFile,
		"POST /v1/batches":                      (*batchCall).create,
		"GET /v1/batches/{id}":                  (*batchCall).show,
		"GET /v1/batches":                       (*batchCall).list,
		"POST /v1/batches/{id}/cancel":          (*batchCall).cancel,
		"POST /v1/messages/batches":             (*batchCall).createMessages,
		"GET /v1/messages/batches":              (*batchCall).list,
		"GET /v1/messages/batches/{id}":         (*batchCall).show,
		"GET /v1/messages/batches/{id}/results": (*batchCall).results,
		"POST /v1/messages/batches/{id}/cancel": (*batchCall).cancel,
		"DELETE /v1/messages/batches/{id}":      (*batchCall).deleteMessages,
	} {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			c := &batchCall{s: s, w: w, r: r, turn: &turn{s: s, w: w, r: r, id: s.mint(), surface: surfaceChat}}
			if strings.HasPrefix(r.URL.Path, "/v1/messages") {
				c.turn.surface = surfaceMessages
			}
			c.turn.headers()
			if !s.authorised(r) {
				c.refuse(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided")
				return
			}
			f(c)
		})
	}
}

// batchCall is one request about files or batches.
type batchCall struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	turn *turn
}

func (c *batchCall) refuse(status int, code, msg string) {
	c.turn.refuse(&refusal{status, "", code, msg})
}

func (c *batchCall) gone() { c.refuse(http.StatusNotFound, "not_found", "no such object") }

func (c *batchCall) create() {
	var in struct {
		Input    string          `json:"input_file_id"`
		Endpoint string          `json:"endpoint"`
		Window   string          `json:"completion_window"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if !c.read(&in) {
		return
	}
	f := c.file(in.Input)
	if f == nil {
		c.refuse(http.StatusBadRequest, "invalid_request", "there is no such input file")
		return
	}
	b := &batch{input: in.Input, endpoint: in.Endpoint, window: in.Window, metadata: in.Metadata}
	lines := bufio.NewScanner(bytes.NewReader(f.data))
	lines.Buffer(nil, maxBody)
	for n := 1; lines.Scan(); n++ {
		var l struct {
			Custom string          `json:"custom_id"`
			Method string          `json:"method"`
			URL    string          `json:"url"`
			Body   json.RawMessage `json:"body"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.URL != in.Endpoint || l.Method != http.MethodPost {
			b.invalid = append(b.invalid, obj{"code": "invalid_line", "line": n, "message": "the line is no request of this batch", "param": nil})
			continue
		}
		b.lines = append(b.lines, batchLine{l.Custom, l.URL, l.Body})
	}
	c.begin(b)
}

func (c *batchCall) createMessages() {
	var in struct {
		Requests []struct {
			Custom string          `json:"custom_id"`
			Params json.RawMessage `json:"params"`
		} `json:"requests"`
	}
	if !c.read(&in) {
		return
	}
	if len(in.Requests) == 0 {
		c.refuse(http.StatusBadRequest, "", "requests: at least one is required")
		return
	}
	b := &batch{anthropic: true}
	for _, l := range in.Requests {
		b.lines = append(b.lines, batchLine{l.Custom, "/v1/messages", l.Params})
	}
	c.begin(b)
}

// read reads a small body, or one of messages.
func (c *batchCall) read(into any) bool {
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxUpload))
	if err == nil {
		c.s.remember(c.r, raw)
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		c.refuse(http.StatusBadRequest, "", "the body is no JSON")
	}
	return err == nil
}

// begin has a batch served, unless the script says otherwise.
func (c *batchCall) begin(b *batch) {
	faults, err := ParseBehaviour(c.s.scripted(scriptedBatch))
	if err == nil && faults.Status >= 400 {
		c.refuse(faults.Status, "", "a scripted fault")
		return
	}
	b.id, b.owner, b.at, b.status = "batch_"+c.s.mint(), credentialOf(c.r.Header), time.Now(), batchRunning
	if b.anthropic {
		b.id = "msgbatch_" + c.s.mint()
	}
	all := &c.s.batches
	ctx, stop := context.WithCancel(all.ctx)
	b.stop = stop
	all.mu.Lock()
	if all.all = append(all.all, b); len(all.all) > maxKept {
		all.all[0].stop()
		all.all = slices.Delete(all.all, 0, 1)
	}
	view := b.view(c)
	all.mu.Unlock()
	all.work.Go(func() { c.s.serveBatch(ctx, b, &faults, c.r.Header.Clone()) })
	writeJSON(c.w, http.StatusOK, view)
}

// find is a batch of the caller's in the dialect of its path. mu is held.
func (c *batchCall) find() *batch {
	for _, b := range c.s.batches.all {
		if b.id == c.r.PathValue("id") && b.owner == credentialOf(c.r.Header) && b.anthropic == (c.turn.surface == surfaceMessages) {
			return b
		}
	}
	return nil
}

// mostListed is how many batches a page has.
const mostListed = 100

// list is a page of the caller's batches, newest first.
func (c *batchCall) list() {
	q := c.r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "20"))
	if err != nil || limit < 1 || limit > mostListed {
		c.refuse(http.StatusBadRequest, "invalid_request", "limit must be from 1 to 100")
		return
	}
	all := &c.s.batches
	all.mu.Lock()
	defer all.mu.Unlock()
	page, more, after := []obj{}, false, q.Get("after")+q.Get("after_id")
	for _, b := range slices.Backward(all.all) {
		switch {
		case b.owner != credentialOf(c.r.Header) || b.anthropic != (c.turn.surface == surfaceMessages):
		case after != "":
			if b.id == after {
				after = ""
			}
		case len(page) == limit:
			more = true
		default:
			page = append(page, b.view(c))
		}
	}
	o := obj{"object": "list", "data": page, "has_more": more, "first_id": nil, "last_id": nil}
	if len(page) > 0 {
		o["first_id"], o["last_id"] = page[0]["id"], page[len(page)-1]["id"]
	}
	writeJSON(c.w, http.StatusOK, o)
}

func (c *batchCall) show() {
	c.s.batches.mu.Lock()
	defer c.s.batches.mu.Unlock()
	if b := c.find(); b != nil {
		writeJSON(c.w, http.StatusOK, b.view(c))
		return
	}
	c.gone()
}

func (c *batchCall) cancel() {
	c.s.batches.mu.Lock()
	defer c.s.batches.mu.Unlock()
	b := c.find()
	if b == nil {
		c.gone()
		return
	}
	if b.status == batchRunning {
		b.status, b.cancelled = batchCancelling, time.Now()
		b.stop()
	}
	writeJSON(c.w, http.StatusOK, b.view(c))
}

func (c *batchCall) results() {
	c.s.batches.mu.Lock()
	b := c.find()
	var out []byte
	if b != nil && !b.ended.IsZero() {
		out = slices.Clone(b.output.Bytes())
	}
	c.s.batches.mu.Unlock()
	if out == nil {
		c.gone()
		return
	}
	c.w.Header().Set("Content-Type", "application/x-jsonl")
	_, _ = c.w.Write(out)
}

func (c *batchCall) deleteMessages() {
	all := &c.s.batches
	all.mu.Lock()
	defer all.mu.Unlock()
	b := c.find()
	switch {
	case b == nil:
		c.gone()
	case b.ended.IsZero():
		c.refuse(http.StatusBadRequest, "", "the batch has not ended")
	default:
		all.all = slices.DeleteFunc(all.all, func(o *batch) bool { return o == b })
		writeJSON(c.w, http.StatusOK, obj{"id": b.id, "type": "message_batch_deleted"})
	}
}
