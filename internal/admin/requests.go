package admin

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"sluice"
	"sluice/internal/ledger"
)

// Request is one request that has ended, as lists show it.
type Request struct {
	ID              string        `json:"id"`
	At              time.Time     `json:"at" doc:"Arrival"`
	Tenant          string        `json:"tenant"`
	Project         string        `json:"project"`
	Key             string        `json:"key"`
	User            string        `json:"user,omitempty"`
	Run             string        `json:"run,omitempty" doc:"The run that it was a step of"`
	Task            string        `json:"task,omitempty"`
	Class           string        `json:"class"`
	Operation       string        `json:"operation"`
	Model           string        `json:"model"`
	Backend         string        `json:"backend,omitempty" doc:"Of the last attempt"`
	UpstreamID      string        `json:"upstream_request_id,omitempty" doc:"The provider's own id, of the last attempt"`
	Attempts        int           `json:"attempts"`
	Outcome         string        `json:"outcome"`
	Reason          string        `json:"reason,omitempty"`
	Status          int           `json:"status" doc:"HTTP status the client got; 499 if it had left"`
	Input           sluice.Tokens `json:"input_tokens" doc:"Over all attempts, cached or not"`
	Output          sluice.Tokens `json:"output_tokens" doc:"Over all attempts, reasoning included"`
	UsageSource     string        `json:"usage_source" doc:"Of the least trusted attempt that took anything"`
	Cost            string        `json:"cost" doc:"Over all attempts"`
	CostNanodollars int64         `json:"cost_nanodollars"`
	Voided          bool          `json:"voided_dup,omitempty" doc:"Another attempt ran or runs this line of its batch, or this one was refused and the line waited: the cost is shown, and it is in no tenant's usage"`
	QueuedSeconds   float64       `json:"queued_seconds"`
	FirstSeconds    float64       `json:"first_token_seconds,omitempty"`
	Seconds         float64       `json:"duration_seconds"`
}

// requestView tells a request by its final entry and what it took in all.
func requestView(e *ledger.Entry, whole *ledger.Sum) Request {
	return Request{
		ID: string(e.Request), At: e.At.UTC(), Tenant: string(e.Tenant), Project: string(e.Project), Key: string(e.Key), User: string(e.User), Run: string(e.Run),
		Task: e.Task, Class: e.Class.String(), Operation: e.Operation, Model: string(e.Model), Backend: string(e.Backend), UpstreamID: e.UpstreamRequestID, Attempts: e.Attempt,
		Outcome: e.Outcome.String(), Reason: e.Reason.String(), Status: e.Status,
		Input: whole.Usage.InputTotal(), Output: whole.Usage.OutputTotal(), UsageSource: whole.Usage.Source.String(),
		Cost: whole.Cost.String(), CostNanodollars: int64(whole.Cost), Voided: e.Voided,
		QueuedSeconds: e.Queued.Seconds(), FirstSeconds: e.FirstToken.Seconds(), Seconds: e.Duration.Seconds(),
	}
}

// unseen is a request without entries. It may exist all the same.
func unseen(id string) error {
	return &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no request %q in the ledger", id),
		Hint: "a request appears when it has ended; one that was refused before its caller was known is in the log alone",
	}
}

// The inputs and outputs of the request operations.
type (
	explainIn struct {
		ID     string `path:"request" maxLength:"128"`
		Tenant string `query:"tenant" maxLength:"64" doc:"Restrict to one tenant: another's id is a 404"`
	}
	explainOut struct{ Body Explanation }
	recentIn   struct {
		Filters
		After string `query:"after" maxLength:"200" doc:"What the page before said in next"`
		Limit int    `query:"limit" minimum:"0" maximum:"500" doc:"0: 100"`
	}
	recentOut struct {
		Body struct {
			Requests []Request `json:"requests" doc:"Newest arrival first"`
			Next     string    `json:"next,omitempty" doc:"Pass it as after; empty on the last page"`
		}
	}
	verifyIn  struct{}
	verifyOut struct{ Body Verification }
)

// Verification compares the roll-ups that usage is answered from with the
// entries.
type Verification struct {
	OK          bool     `json:"ok"`
	Entries     int64    `json:"entries" doc:"Entries that were summed"`
	Rows        int64    `json:"rows" doc:"Roll-up rows that were compared"`
	Differences []string `json:"differences" doc:"Bounded"`
}

func (a *API) registerRequests(api huma.API) {
	tags := []string{"ledger"}
	register(a, api, huma.Operation{OperationID: "list-requests", Method: http.MethodGet, Path: "/admin/v1/requests", Summary: "Requests that have ended, newest first", Tags: tags}, a.recent)
	register(a, api, huma.Operation{OperationID: "explain-request", Method: http.MethodGet, Path: "/admin/v1/requests/{request}", Summary: "Why a request went as it did", Tags: tags, Errors: []int{404}}, a.explain)
	register(a, api, huma.Operation{OperationID: "verify-ledger", Method: http.MethodPost, Path: "/admin/v1/ledger/verify", Summary: "Compare the roll-ups with the entries; changes nothing", Tags: tags}, a.verify)
}

func (a *API) explain(ctx context.Context, in *explainIn) (*explainOut, error) {
	owner := ledger.Everyone()
	if in.Tenant != "" {
		owner = ledger.Of(sluice.TenantID(in.Tenant))
	}
	entries, err := a.o.Ledger.Explain(ctx, owner, sluice.RequestID(in.ID))
	if sluice.AsError(err).Kind == sluice.KindNotFound || err == nil && len(entries) == 0 {
		a.flush(ctx) // it may have ended a moment ago
		entries, err = a.o.Ledger.Explain(ctx, owner, sluice.RequestID(in.ID))
	}
	switch {
	case err == nil && len(entries) == 0, err != nil && sluice.AsError(err).Kind == sluice.KindNotFound:
		return nil, unseen(in.ID)
	case err != nil:
		return nil, err
	}
	copies, err := a.o.Ledger.Shadows(ctx, owner, sluice.RequestID(in.ID))
	if err != nil {
		return nil, err
	}
	x := explanationOf(entries)
	x.Copies = copiesOf(&entries[len(entries)-1], copies)
	return &explainOut{Body: x}, nil
}

func (a *API) recent(ctx context.Context, in *recentIn) (*recentOut, error) {
	owner, where := in.where()
	before, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	a.flush(ctx)
	page, err := a.o.Ledger.Recent(ctx, ledger.RecentQuery{Owner: owner, Where: where, Before: before, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &recentOut{}
	out.Body.Requests = make([]Request, 0, len(page.Entries))
	for i := range page.Entries {
		out.Body.Requests = append(out.Body.Requests, requestView(&page.Entries[i], &page.Whole[i]))
	}
	out.Body.Next = cursorText(page.Next)
	return out, nil
}

func (a *API) verify(ctx context.Context, _ *verifyIn) (*verifyOut, error) {
	a.flush(ctx)
	audit, err := a.o.Ledger.Verify(ctx)
	if err != nil {
		return nil, err
	}
	out := &verifyOut{Body: Verification{OK: audit.OK(), Entries: audit.Entries, Rows: audit.Rows, Differences: audit.Differences}}
	if out.Body.Differences == nil {
		out.Body.Differences = []string{}
	}
	return out, nil
}

// cursorText makes a cursor opaque.
func cursorText(c ledger.Cursor) string {
	if c.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At.UnixNano(), 10) + " " + string(c.Request)))
}

func parseCursor(s string) (c ledger.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	bad := sluice.Invalid("after", "is not a cursor of this API")
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return c, bad
	}
	at, id, ok := strings.Cut(string(raw), " ")
	nanos, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || id == "" {
		return c, bad
	}
	return ledger.Cursor{At: time.Unix(0, nanos).UTC(), Request: sluice.RequestID(id)}, nil
}
