package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice"
)

// Run is the hooks of one request. It belongs to the request's goroutine.
type Run struct {
	Subject
	x     *Inspector
	plan  *plan
	hooks []*entry
	reply Reply // that is looked into
	log   []Decision
}

// Reply is what is known of an answer beside its texts.
type Reply struct {
	Status  int
	Backend sluice.BackendID
}

// At is the hooks of a stage, nil if there are none.
func (r *Run) at(stages Stages) (out []*entry) {
	for _, h := range r.hooks {
		if h.spec.At&stages != 0 {
			out = append(out, h)
		}
	}
	return out
}

// Request asks the hooks of the request's stage about its body and returns what is to be
// sent in its place: the body itself where nothing was redacted. The error is a
// *sluice.Error: the request is refused. The label that Risk tells may have risen.
func (r *Run) Request(ctx context.Context, body []byte) ([]byte, error) {
	hooks := r.at(1 << AtRequest)
	if len(hooks) == 0 {
		return body, nil
	}
	if r.plan == nil {
		return nil, r.unread(AtRequest)
	}
	return r.document(ctx, AtRequest, hooks, r.plan.request, body)
}

// Answers reports whether hooks look into the answer.
func (r *Run) Answers() bool { return r != nil && len(r.at(AnswerStages)) > 0 }

// Altered reports whether an answer was redacted, or a request or an answer was let pass
// without the verdict of a hook that could not be asked.
func (r *Run) Altered() bool {
	for _, d := range r.Decisions() {
		if d.Verdict == Failed || d.Verdict == Redact && d.Stage != AtRequest {
			return true
		}
	}
	return r != nil && len(r.log) == maxDecisions // there may be more than is recorded
}

// Answer asks the hooks of an answer in one piece, those of streams' events too: there
// are none. It is as Request is.
func (r *Run) Answer(ctx context.Context, about Reply, body []byte) ([]byte, error) {
	hooks := r.at(AnswerStages)
	if len(hooks) == 0 {
		return body, nil
	}
	r.reply = about
	if r.plan == nil {
		return nil, r.unread(AtCommit)
	}
	if len(r.plan.answer.kids) == 0 { // there is no text in it, and it may be no JSON
		return body, nil
	}
	return r.document(ctx, AtCommit, hooks, r.plan.answer, body)
}

// Try asks about a document by itself, of a request or of an answer in one piece, whatever
// the stages of the hooks.
func (r *Run) Try(ctx context.Context, at Stage, body []byte) ([]byte, error) {
	if r.plan == nil {
		return nil, r.unread(AtEvent)
	}
	tree := r.plan.request
	if at != AtRequest {
		tree, r.reply = r.plan.answer, Reply{Status: 200}
	}
	return r.document(ctx, at, r.hooks, tree, body)
}

// Commits reports whether a service is asked before a stream's first content is
// delivered.
func (r *Run) Commits() bool {
	for _, h := range r.at(1 << AtCommit) {
		if h.caller != nil {
			return true
		}
	}
	return false
}

// Commit asks about a stream's first content, before it is delivered: events as they
// are. They cannot be redacted.
func (r *Run) Commit(ctx context.Context, about Reply, events []byte) error {
	r.reply = about
	if r.plan == nil {
		return r.unread(AtCommit)
	}
	texts, ok := firstTexts(r.plan, events)
	if !ok {
		return r.unread(AtCommit)
	}
	for _, h := range r.at(1 << AtCommit) {
		if h.caller == nil {
			continue
		}
		if _, err := r.ask(ctx, h, AtCommit, texts, false); err != nil {
			return err
		}
	}
	return nil
}

// Events is the hooks of a stream's events, nil if there are none.
func (r *Run) Events(about Reply) *Stream {
	if r == nil {
		return nil
	}
	hooks := r.at(1 << AtEvent)
	if len(hooks) == 0 || r.plan == nil {
		return nil
	}
	r.reply = about
	return newStream(r, hooks)
}

// document takes a document through hooks, each seeing what the one before made of it.
func (r *Run) document(ctx context.Context, at Stage, hooks []*entry, tree *node, body []byte) ([]byte, error) {
	var w whole
	read := false
	for _, h := range hooks {
		if !read && !w.read(body, tree, true) {
			return nil, r.unread(at)
		}
		read = true
		edits, cut, err := r.edits(ctx, at, h, &w)
		if err != nil {
			return nil, err
		}
		if edits != nil {
			body, read = w.apply(edits, cut), false
		}
	}
	return body, nil
}

// edits is what one hook changes of a document, by text; nil if nothing.
func (r *Run) edits(ctx context.Context, at Stage, h *entry, w *whole) (edits [][]Edit, cut bool, err error) {
	if h.finder == nil {
		edits, err = r.ask(ctx, h, at, w.asked(), true)
		return w.placed(edits), at != AtRequest, err
	}
	var counts Counts
	edits = make([][]Edit, len(w.text))
	for i := range w.text {
		edits[i] = w.find(h.finder, i, &counts)
	}
	if counts.sum() == 0 {
		return nil, false, nil
	}
	r.redacted(h, at, &counts)
	return edits, at != AtRequest, nil
}

// asked is the texts that a service is shown: numbers and what is cut are not.
func (w *whole) asked() (out []Text) {
	for i := range w.doc.texts {
		if t := &w.doc.texts[i]; t.shown() {
			out = append(out, Text{Path: t.path, Text: string(w.text[i]), JSON: t.rule.treat == asJSON && isJSON(w.text[i]), Fixed: t.rule.treat == asFixed})
		}
	}
	return out
}

func (t *text) shown() bool { return t.str && t.rule.treat != asCut && t.rule.treat != asEnd }

// placed puts edits of what was asked in the places of all texts.
func (w *whole) placed(edits [][]Edit) [][]Edit {
	if edits == nil {
		return nil
	}
	out := make([][]Edit, len(w.text))
	n := 0
	for i := range w.doc.texts {
		if w.doc.texts[i].shown() {
			out[i] = edits[n]
			n++
		}
	}
	return out
}

// ask calls a hook about texts and does what its verdict says. Edits are by text, nil if
// there are none.
func (r *Run) ask(ctx context.Context, h *entry, at Stage, texts []Text, final bool) ([][]Edit, error) {
	if h.caller.rt == nil {
		return nil, r.failedCall(h, at, CauseUnknown, 0, fmt.Errorf("no hook %q is configured", h.spec.Name))
	}
	q := &Question{
		Version: Version, ID: r.ID, Hook: h.spec.Name, Stage: at.String(), Tenant: r.Tenant, Project: r.Project, Model: r.Model,
		Operation: r.Op.String(), Stream: r.Stream, Task: r.Task, Risk: r.Risk, Status: r.reply.Status, Backend: r.reply.Backend, Final: final, Texts: texts,
	}
	begun := time.Now()
	ruled, err := h.caller.ask(ctx, q)
	took := time.Since(begun)
	if e, ok := errors.AsType[*callError](err); ok {
		return nil, r.failedCall(h, at, e.cause, took, e)
	}
	if err != nil { // the request ended meanwhile
		return nil, err
	}
	r.Risk = max(r.Risk, ruled.risk)
	r.note(h, at, ruled.verdict, ruled.why, took)
	r.x.o.Told(Event{Hook: h.spec.Name, Stage: at, Verdict: ruled.verdict, Took: took})
	if ruled.verdict == Refuse {
		return nil, refusal(at, &ruled)
	}
	return ruled.edits, nil
}

// askText asks about one text of a stream.
func (r *Run) askText(ctx context.Context, h *entry, t Text, final bool) ([]Edit, error) {
	edits, err := r.ask(ctx, h, AtEvent, []Text{t}, final)
	if err != nil || len(edits) == 0 {
		return nil, err
	}
	return edits[0], nil
}

// failedCall notes a call that brought no verdict. It is nil where the hook fails open.
func (r *Run) failedCall(h *entry, at Stage, cause Cause, took time.Duration, err error) error {
	r.note(h, at, Failed, string(cause), took)
	r.x.o.Told(Event{Hook: h.spec.Name, Stage: at, Verdict: Failed, Cause: cause, Took: took})
	if h.spec.FailOpen {
		return nil
	}
	return r.failure(at, fmt.Errorf("hook %s: %w", h.spec.Name, err))
}

// refusal is the error of what a hook refused. What the hook says to the client is the
// hint: it is written into no record.
func refusal(at Stage, ruled *ruling) *sluice.Error {
	e := &sluice.Error{Kind: sluice.KindInvalid, Reason: sluice.HookRefused, Msg: "a safety hook refused the request", Hint: ruled.message}
	if ruled.status == 403 {
		e.Kind = sluice.KindForbidden
	}
	if at != AtRequest {
		e.Msg = "a safety hook refused the answer"
	}
	return e
}

// retryAfter is when a client may ask again after a hook that is to be asked before
// anything is sent could not be.
const retryAfter = 2 * time.Second

// failure is the error of a hook that could not be asked and fails closed. A request may
// be tried again; an answer would be generated, and paid for, again.
func (r *Run) failure(at Stage, err error) *sluice.Error {
	if at == AtRequest {
		return &sluice.Error{
			Kind: sluice.KindOverloaded, Reason: sluice.HookFailed, RetryAfter: retryAfter,
			Msg: "the request could not be checked by a safety hook", Hint: "try again shortly", Err: err,
		}
	}
	return &sluice.Error{Kind: sluice.KindUpstream, Reason: sluice.HookFailed, Msg: "the answer could not be checked by a safety hook", Err: err}
}

// redacted notes what the built-in redaction found.
func (r *Run) redacted(h *entry, at Stage, counts *Counts) {
	d := r.note(h, at, Redact, "", 0)
	if d != nil {
		d.Counts.add(counts)
	}
	r.x.o.Told(Event{Hook: h.spec.Name, Stage: at, Verdict: Redact, Counts: *counts})
}
