package batch

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"sluice"
	"sluice/internal/idempotency"
	"sluice/internal/jobs"
	"sluice/internal/wire"
)

// The bounds of what a client sends.
const (
	maxUpload   = 513 << 20 // bytes of an upload, with its form; jobs.Bounds.FileBytes bounds the file
	maxMessages = 256 << 20 // bytes of a message batch
	maxSmall    = 64 << 10  // bytes of any other body
	maxID       = 80        // bytes of an id
)

// Caller is who asks.
type Caller struct {
	ID        sluice.RequestID
	Principal sluice.Principal
	Dialect   wire.Dialect
	Task      string
	Labels    []sluice.Label
	Risk      sluice.Risk
	Key       string // of what is to be made once, checked; empty is none
}

// Route is one path that the face serves.
type Route struct {
	Pattern   string // of http.ServeMux, with its method
	Operation string // its word in logs and metrics
	Dialect   wire.Dialect
	MaxBody   int64 // bytes
	Once      bool  // an Idempotency-Key has an effect: it makes something
	Serve     func(w http.ResponseWriter, r *http.Request, by Caller) error
}

// Options is what a Face works with.
type Options struct {
	Desk *jobs.Desk
	// PublicURL is what clients call the gateway by, such as https://llm.example.com; it
	// begins the results_url of message batches. Empty makes those paths, which client
	// libraries resolve against their own base URL.
	PublicURL string
	// Keys is where keys come from; nil makes everything anew.
	Keys *idempotency.Keeper
}

// Face serves files and batches.
type Face struct{ o Options }

// New makes a Face.
func New(o Options) *Face {
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	return &Face{o}
}

// The words of what it serves.
const ofFiles, ofBatches, ofMessages, ofAnswers = "files", "batches", "message_batches", "answers"

// Routes is what it serves.
func (f *Face) Routes() []Route {
	return []Route{
		{"POST /v1/files", ofFiles, wire.OpenAI, maxUpload, true, f.upload},
		{"GET /v1/files", ofFiles, wire.OpenAI, maxSmall, false, f.listFiles},
		{"GET /v1/files/{id}", ofFiles, wire.OpenAI, maxSmall, false, f.showFile},
		{"DELETE /v1/files/{id}", ofFiles, wire.OpenAI, maxSmall, false, f.deleteFile},
		{"GET /v1/files/{id}/content", ofFiles, wire.OpenAI, maxSmall, false, f.content},

		{"POST /v1/batches", ofBatches, wire.OpenAI, maxSmall, true, f.createBatch},
		{"GET /v1/batches", ofBatches, wire.OpenAI, maxSmall, false, f.listBatches},
		{"GET /v1/batches/{id}", ofBatches, wire.OpenAI, maxSmall, false, f.showBatch},
		{"POST /v1/batches/{id}/cancel", ofBatches, wire.OpenAI, maxSmall, false, f.cancelBatch},

		{"POST /v1/messages/batches", ofMessages, wire.Anthropic, maxMessages, true, f.createMessages},
		{"GET /v1/messages/batches", ofMessages, wire.Anthropic, maxSmall, false, f.listMessages},
		{"GET /v1/messages/batches/{id}", ofMessages, wire.Anthropic, maxSmall, false, f.showMessages},
		{"DELETE /v1/messages/batches/{id}", ofMessages, wire.Anthropic, maxSmall, false, f.deleteMessages},
		{"POST /v1/messages/batches/{id}/cancel", ofMessages, wire.Anthropic, maxSmall, false, f.cancelMessages},
		{"GET /v1/messages/batches/{id}/results", ofMessages, wire.Anthropic, maxSmall, false, f.results},

		{"GET " + answerPath + "{id}", ofAnswers, "", maxSmall, false, f.showAnswer},
		{"DELETE " + answerPath + "{id}", ofAnswers, "", maxSmall, false, f.dropAnswer},
	}
}

// write answers with JSON.
func write(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// isID reports whether s can be an id of files and jobs: others are not looked up.
func isID(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// gone is what is said of every id that is not the caller's, whatever it is.
func gone(param, what string) *sluice.Error {
	return &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Param: param, Msg: "names no " + what + " of this project",
		Hint: "an id is known to keys of the project that it was given to, until what it names is deleted or expires",
	}
}

// notFound reports whether an error is that there is no such thing.
func notFound(err error) bool { return err != nil && sluice.AsError(err).Kind == sluice.KindNotFound }

// find is a job of the caller's project.
func (f *Face) find(r *http.Request, by *Caller, kind jobs.Kind, what string) (jobs.Job, error) {
	id := r.PathValue("id")
	if !isID(id) {
		return jobs.Job{}, gone("id", what)
	}
	j, err := f.o.Desk.Job(r.Context(), by.Principal.Tenant, jobs.JobID(id))
	if notFound(err) || err == nil && (j.Caller.Project != by.Principal.Project || j.Kind != kind) {
		return jobs.Job{}, gone("id", what)
	}
	return j, err
}

// terms are what each line of a job is run with. A batch is no step of a run: what names
// one is refused, since the run's bounds would be lost in silence.
func terms(r *http.Request, by *Caller) (jobs.Terms, error) {
	for _, name := range [...]string{"Sluice-Run", "Sluice-Run-Limits"} {
		if len(r.Header[name]) > 0 {
			e := sluice.Invalid(strings.ToLower(name), "is for single requests: a batch is not part of a run")
			e.Hint = "leave it out, or send the requests of the run one by one"
			return jobs.Terms{}, e
		}
	}
	return jobs.Terms{Task: by.Task, Labels: by.Labels, Risk: by.Risk, Header: r.Header}, nil
}

// unix is a moment as the OpenAI dialect has it, null for none.
func unix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	s := t.Unix()
	return &s
}

// text is a text that may be null.
func text[T ~string](s T) *string {
	if s == "" {
		return nil
	}
	t := string(s)
	return &t
}
