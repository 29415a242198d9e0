package proxy

import (
	"encoding/json"
	"time"

	"sluice"
	"sluice/internal/engine"
)

// openRequest is what a caller may know of an open request of its own: nothing of
// others, and of what is in its way no more than for how long.
type openRequest struct {
	ID        sluice.RequestID `json:"id"`
	Object    string           `json:"object"` // sluice.request
	State     engine.Phase     `json:"state"`
	Model     sluice.ModelID   `json:"model"`
	Class     sluice.Class     `json:"class"`
	Age       int64            `json:"age_ms"`
	Attempt   int              `json:"attempt"`            // so far, the one that runs included
	Position  *int             `json:"position,omitempty"` // about: requests served before it
	Wait      *int64           `json:"expected_wait_ms,omitempty"`
	Waited    *int64           `json:"waited_ms,omitempty"`
	MaxWait   *int64           `json:"max_wait_ms,omitempty"`
	Predicted *int64           `json:"predicted_wait_ms,omitempty"` // at arrival
}

// openRequest answers where an open request of the caller's project stands. Another
// project's id is as unknown as one that is not open.
func (c *call) openRequest() {
	if !c.known() {
		return
	}
	if c.p.o.Look == nil {
		c.notFound()
		return
	}
	v := c.p.o.Look(engine.Zoom{Request: sluice.RequestID(c.r.PathValue("id"))}, 1)
	if len(v.Requests) == 0 || v.Requests[0].Owner.Tenant != c.principal.Tenant || v.Requests[0].Owner.Project != c.principal.Project {
		c.reject(&sluice.Error{
			Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: "there is no open request with this id",
			Hint: "a request is open until its answer has ended; the id is in the header sluice-request-id",
		})
		return
	}
	body, err := json.Marshal(openRequestOf(&v.Requests[0]))
	if err != nil {
		c.reject(&sluice.Error{Kind: sluice.KindInternal, Reason: sluice.InternalError, Msg: "the answer could not be written", Err: err})
		return
	}
	c.answer(body)
}

func openRequestOf(r *engine.RequestView) openRequest {
	out := openRequest{
		ID: r.ID, Object: "sluice.request", State: r.Phase, Model: r.Model, Class: r.Class, Age: r.Age.Milliseconds(), Attempt: r.Attempt,
		Predicted: known(r.Predicted),
	}
	if r.Phase == engine.Waiting {
		waited, most := r.Waited.Milliseconds(), r.MaxWait.Milliseconds()
		out.Position, out.Wait, out.Waited, out.MaxWait = &r.Position, known(r.Wait), &waited, &most
	}
	return out
}

// known leaves out a wait of which nothing is known.
func known(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := max(1, d.Milliseconds())
	return &ms
}
