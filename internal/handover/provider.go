package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// The bounds of one call.
const (
	callWait = 2 * time.Minute
	readWait = 30 * time.Minute
)

var (
	errGone   = errors.New("the provider does not have it any more")
	errUnset  = errors.New("the backend is not configured any more")
	errNoName = errors.New("the provider named nothing")
)

// unsure is an error after which the provider may have made the batch all the same.
type unsure struct{ error }

func (e unsure) Unwrap() error { return e.error }

// status is an answer that is an error.
type status int

func (s status) Error() string { return "the provider answered " + strconv.Itoa(int(s)) }

// refused reports whether an error is that the provider did nothing.
func refused(err error) bool {
	s, ok := errors.AsType[status](err)
	return ok && s < 500 || err == errGone || err == errUnset
}

// provider is the batch API of an account.
type provider struct {
	a       *Agent
	backend sluice.BackendID
	key     string
	header  http.Header
}

func (p *provider) target() (*upstream.Target, bool) { return p.a.o.Target(p.backend) }

// anthropic reports whether it is a provider of message batches.
func (p *provider) anthropic() bool {
	t, ok := p.target()
	return ok && t.Dialect == wire.Anthropic
}

// batches is the path of all batches.
func (p *provider) batches() string {
	if p.anthropic() {
		return "/messages/batches"
	}
	return "/batches"
}

// token is what sets the lines of a batch apart at the provider.
func token(id string) string {
	id = strings.TrimPrefix(id, idPrefix)
	return id[:min(len(id), 16)] + "-"
}

// create makes a batch of lines, whose bodies are asked for one by one, of requests at a
// path.
func (p *provider) create(ctx context.Context, at *Batch, path string, lines []int, body func(line int) []byte) (ref string, err error) {
	if p.anthropic() {
		return p.made(ctx, messageBatch(at, lines, body))
	}
	form, kind := inputFile(at, path, lines, body)
	var file struct {
		ID string `json:"id"`
	}
	if err := p.call(ctx, http.MethodPost, "/files", form, kind, &file); err != nil {
		return "", err
	}
	if file.ID == "" {
		return "", errNoName
	}
	ask, _ := json.Marshal(map[string]any{ // strings alone: it does not fail
		"input_file_id": file.ID, "endpoint": "/v1" + path, "completion_window": "24h", "metadata": map[string]string{metadataKey: at.ID},
	})
	ref, err = p.made(ctx, ask)
	if refused(err) {
		_ = p.call(ctx, http.MethodDelete, "/files/"+file.ID, nil, "", nil) // it expires else
	}
	return ref, err
}

// metadataKey is under what a batch of OpenAI's says which of ours it is.
const metadataKey = "sluice_handover"

// made makes a batch of what its dialect takes.
func (p *provider) made(ctx context.Context, body []byte) (ref string, err error) {
	var b struct {
		ID string `json:"id"`
	}
	err = p.call(ctx, http.MethodPost, p.batches(), body, "application/json", &b)
	switch e, _ := errors.AsType[*upstream.Error](err); {
	case err == nil && b.ID == "":
		return "", unsure{errNoName}
	case err == nil, refused(err), e != nil && !e.Sent:
		return b.ID, err
	}
	return "", unsure{err}
}

// messageBatch is lines as Anthropic takes them.
func messageBatch(at *Batch, lines []int, body func(int) []byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"requests":[`)
	for i, n := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"custom_id":"%s%d","params":%s}`, token(at.ID), n, body(n))
	}
	b.WriteString("]}")
	return b.Bytes()
}

// inputName is what the input file of a batch is called.
func inputName(at *Batch) string { return at.ID + ".jsonl" }

// inputFile is the form of an input file as OpenAI takes it, and its type.
func inputFile(at *Batch, path string, lines []int, body func(int) []byte) (form []byte, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", "batch") // a buffer takes all
	to, _ := w.CreateFormFile("file", inputName(at))
	for _, n := range lines {
		fmt.Fprintf(to, `{"custom_id":"%s%d","method":"POST","url":"/v1%s","body":%s}`+"\n", token(at.ID), n, path, body(n))
	}
	w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// standing is how a batch stands.
type standing struct {
	ended   bool
	how     string   // Ended, Failed, Expired or Cancelled, where it has
	results []string // paths to read them at
	files   []string // paths of what is deleted once they are read, or the batch's own
}

// ask asks how a batch stands.
func (p *provider) ask(ctx context.Context, ref string) (st standing, err error) {
	path := p.batches() + "/" + ref
	if p.anthropic() {
		var b struct {
			Status    string    `json:"processing_status"`
			Cancelled time.Time `json:"cancel_initiated_at"`
		}
		err = p.call(ctx, http.MethodGet, path, nil, "", &b)
		how := Ended
		if !b.Cancelled.IsZero() {
			how = Cancelled
		}
		return standing{b.Status == "ended", how, []string{path + "/results"}, []string{path}}, err
	}
	var b struct {
		Status string `json:"status"`
		Input  string `json:"input_file_id"`
		Output string `json:"output_file_id"`
		Errors string `json:"error_file_id"`
	}
	err = p.call(ctx, http.MethodGet, path, nil, "", &b)
	st.how = map[string]string{"completed": Ended, "expired": Expired, "cancelled": Cancelled, "failed": Failed}[b.Status]
	st.ended = st.how != ""
	for _, f := range []string{b.Output, b.Errors, b.Input} {
		if f == "" {
			continue
		}
		st.files = append(st.files, "/files/"+f)
		if f != b.Input {
			st.results = append(st.results, "/files/"+f+"/content")
		}
	}
	return st, err
}

// cancel asks the provider to end a batch.
func (p *provider) cancel(ctx context.Context, ref string) error {
	return p.call(ctx, http.MethodPost, p.batches()+"/"+ref+"/cancel", nil, "", nil)
}

// call asks for one thing.
func (p *provider) call(ctx context.Context, method, path string, body []byte, kind string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	r := upstream.Request{Method: method, Path: path, Body: body}
	if kind != "" {
		r.Type = []string{kind}
	}
	ans, err := p.do(ctx, r)
	if err != nil {
		return err
	}
	defer ans.Close()
	raw, err := ans.ReadAll()
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// do asks, and judges the status of the answer.
func (p *provider) do(ctx context.Context, r upstream.Request) (*upstream.Answer, error) {
	t, ok := p.target()
	if !ok {
		return nil, errUnset
	}
	r.Header, r.Key, r.Any = p.header, p.key, true
	ans, err := p.a.o.Upstream.Do(ctx, t, r)
	if err != nil {
		return nil, err
	}
	if ans.Status < 400 {
		return ans, nil
	}
	ans.Close()
	if ans.Status == http.StatusNotFound || ans.Status == http.StatusGone {
		return nil, errGone
	}
	return nil, status(ans.Status)
}
