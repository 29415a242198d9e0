package engine

import (
	"slices"
	"time"

	"sluice"
	"sluice/internal/ladder"
	"sluice/internal/price"
	"sluice/internal/quota"
	"sluice/internal/route"
	"sluice/internal/sched"
)

// request is one open or expired request. By the time of its turn what has waited is in
// no cache, and every line of it is a miss: so what is asked for from then on, to its end,
// lies together, in the middle of course and call, and the item begins with a line of its
// own. See TestLayout.
type request struct {
	course
	call call
	item sched.Item
	left time.Duration // its client has, and its backend may go on for as long; else 0
	res  quota.Reservation
}

// course is what of a request begins anew when its memory is used again, but for
// ranking.
type course struct {
	// When it comes, and when something is the matter.

	maxSpend  sluice.Nano                   // the model's MaxSpend
	risks     map[sluice.PoolID]sluice.Risk // the model's MaxRisk
	region    string                        // in which it is to be served, of a model with a locality
	number    uint64                        // it has, and no other has had; see fit
	predicted time.Duration                 // wait, at arrival
	tried     []sluice.BackendID
	failed    []string // the failure domains in which attempts failed
	lessener  *pool    // whose ladder has lowered bound
	felt      *Felt    // of the ladder that tier is of; nil if it was on the ground
	ranking   *ranking // nil where it never had one

	// When its turn comes, and at its end.

	hash     uint64   // of its id, in the engine's index
	other    *request // that it races with: of a hedge the one it is beside, of that one its hedge
	phase    phase
	tier     ladder.Tier  // of the pool that it joined, or that did not take it
	prefer   route.Prefer // the model's
	shadowed Effect       // what a ladder in shadow would have done
	sticky   bool         // the model keeps sessions together
	hard     bool         // spend is held by bounds and never exceeded
	away     bool         // region is not its home
	roam     bool         // any region will do
	declined bool         // its home, coming back, has not taken it: its turn was another's
	avoid    bool         // the failure domains in failed are left out: another can serve it
	billed   bool         // something was posted
	beside   bool         // it is a hedge, which is no request of its caller's
	hedged   bool         // it has had one
	begun    bool         // its content has come
	clamped  bool         // felt has lowered bound
	partly   bool         // what keeps it out of a queue is its tenant's part of it
	attempt  int
	worked   int64        // cost of attempts that have ended
	pool     *pool        // where it waits or runs
	place    *route.Place // where it runs

	taken    *route.Taken // what it takes of the place
	started  int64        // of this attempt, in nanoseconds from the engine's base, as the two that follow
	arrived  int64
	expires  int64
	spot     sched.Spot[request] // of expiry, by when that is looked at, which is never later, or of expired
	cached   sluice.Tokens       // of its input, believed to be in the place's prefix cache
	lessened sluice.Tokens       // by how much a ladder has lowered bound, or in shadow would have, until the request has a place

	covers
	table *route.Table  // in which model was looked up
	model *route.Model  // nil if the table has none
	asked sluice.Tokens // the output bound by which it is counted of what is offered to its pool, or uncounted
}

// call is what of a Call is asked for after its arrival. Whose it is, and for which model,
// is the item's flow.
type call struct {
	Shadow    *route.Shadow
	ID        sluice.RequestID
	Class     sluice.Class
	Risk      sluice.Risk // as the policy raises it
	Billing   price.Billing
	Free      bool
	Owed      bool
	Streaming bool
	Single    bool
	Whole     bool
	Counted   bool
	Versed    bool // Others are any: most often there are none
	Needs     route.Needs
	Pin       *route.Pin
	Choices   int64
	Work      sluice.Work

	// When it comes.

	Policy  *sluice.Policy
	Dialect string
	Others  []route.Translation
	Prefix  route.Prefix
	Session route.Session
	User    sluice.UserID
	Run     sluice.RunID
	Least   sluice.Tokens
	MaxWait time.Duration
}

// covers is what a request's hold on budgets is for.
type covers struct {
	bound  sluice.Tokens // of its output, perhaps clamped
	heldTo sluice.Tokens // output that spend is held for, where that is done in steps; else 0
	spend  sluice.Nano   // what is held of it
	row    *price.Row    // what that covers without a look at the price: most often there is one
}

// phase is what an open request does. Every request leaves by drop, once.
type phase uint8

const (
	arriving phase = iota
	waiting        // in a queue, holding rates and spend
	running        // on a place, holding gauges too
	idle           // its wait ended after an attempt: its owner is to settle it
	expired        // charged what it held: its owner may settle it late
	ended          // its memory is for another
)

// spareRequests bounds the memory kept for requests to come.
const spareRequests = 4096

func (e *Engine) newRequest(now time.Time, c *Call) *request {
	var r *request
	if n := len(e.spare); n > 0 {
		r, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		m := new(struct {
			request
			holds quota.Holds
		})
		r = &m.request
		r.res.Use(&m.holds)
	}
	p := &c.Principal
	r.left = 0
	r.course = course{ranking: r.ranking, asked: uncounted}
	r.call = call{
		ID: c.ID, Class: c.Class, Risk: p.Policy.Raise(c.Risk), Billing: c.Billing,
		Free: c.Free, Owed: c.Owed, Streaming: c.Streaming, Single: c.Single, Whole: c.Whole, Counted: c.Counted,
		Needs: c.Needs, Choices: c.Choices, Session: c.Session, Policy: p.Policy, Pin: c.Pin, Shadow: c.Shadow,
		Run: p.Run, Dialect: c.Dialect, Versed: len(c.Others) > 0, Others: c.Others, Prefix: c.Prefix, User: p.User, Least: c.Least, MaxWait: c.MaxWait,
	}
	if !c.Free {
		r.call.Work = c.Work
	}
	r.arrived, r.bound = e.ns, r.call.Work.OutputBound
	e.number(r)
	it := &r.item
	*it = sched.Item{}
	it.Value, it.Class, it.Weight, it.Arrived, it.Since, it.Bytes = r, c.Class, 1, now, now, c.Bytes
	it.Flow = sched.Flow{Tenant: p.Tenant, Project: p.Project, Key: p.Key, Model: c.Model}
	it.Work = r.call.Work.Input + r.call.Work.OutputHold
	if p := p.Policy; p != nil {
		r.hard, it.Weight = p.HardSpend, max(p.Weight, 1)
	}
	return r
}

// number makes the request another than any that was seen, so that what is for it is
// found anew.
func (e *Engine) number(r *request) {
	e.numbers++
	r.number = e.numbers
}

// principal is whose the request is.
func (r *request) principal() sluice.Principal {
	f := &r.item.Flow
	return sluice.Principal{Tenant: f.Tenant, Project: f.Project, Key: f.Key, User: r.call.User, Run: r.call.Run, Policy: r.call.Policy}
}

// drop forgets a request that holds nothing any more.
func (e *Engine) drop(r *request) {
	e.requests.RemoveHashed(r, r.hash)
	e.part(r)
	e.reuse(r)
}

// reuse keeps the memory of a request that is not in the index.
func (e *Engine) reuse(r *request) {
	r.phase = ended
	r.call.Prefix, r.call.Others = route.Prefix{}, nil
	if r.ranking != nil {
		r.ranking.model, r.ranking.figures = nil, r.ranking.figures[:0]
	}
	if len(e.spare) < spareRequests {
		e.spare = append(e.spare, r)
	}
}

// ownFirst leaves places of other dialects to requests that find none of their own:
// what passes as it is loses nothing.
func (r *request) ownFirst(places []*route.Place, left []route.Left) {
	if !r.call.Versed { // none of another can take it
		return
	}
	ask := r.spoken()
	own := func(i int) bool { return ask.Own(places[i].Backend) }
	found := false
	for i := range left {
		found = found || left[i] == route.Chosen && own(i)
	}
	for i := range left {
		if found && left[i] == route.Chosen && !own(i) {
			left[i] = route.LeftOther
		}
	}
}

// spoken is what the request asks of a backend's dialect, whatever its pool.
func (r *request) spoken() route.Ask {
	return route.Ask{Dialect: r.call.Dialect, Others: r.call.Others, Needs: r.call.Needs}
}

// under is what the model says of each of its requests, which holds as soon as it is
// said.
func (r *request) under(m *route.Model) {
	r.maxSpend, r.risks, r.prefer, r.sticky = m.MaxSpend, m.MaxRisk, m.Prefer, m.Sticky == route.BySession
	r.located(m)
}

// ask is what the request asks of the backends of a pool.
func (r *request) ask(p *pool) route.Ask {
	return route.Ask{
		Dialect: r.call.Dialect, Others: r.call.Others, Needs: r.call.Needs, Policy: r.call.Policy, Work: r.call.Work, Billing: r.call.Billing, Free: r.call.Free,
		Risk: r.call.Risk, MaxRisk: r.maxRisk(p), Pin: r.call.Pin,
	}
}

// maxRisk is the highest label that the pool takes of the request's model.
func (r *request) maxRisk(p *pool) sluice.Risk {
	if r.risks == nil {
		return sluice.RiskNone
	}
	return r.risks[p.id]
}

// modelOf is the request's model in the table in force, nil if that has none.
func (e *Engine) modelOf(r *request) *route.Model {
	if r.table != e.table {
		r.table, r.model = e.table, e.modelNamed(r.item.Flow.Model)
	}
	return r.model
}

// eligible is route.Eligible without the backends that failed this request and, as
// long as another can serve it, without their failure domains.
func (r *request) eligible(b *route.Backend, ask *route.Ask) route.Left {
	if slices.Contains(r.tried, b.ID) {
		return route.LeftTried
	}
	if r.avoid && b.Domain != "" && slices.Contains(r.failed, b.Domain) {
		return route.LeftDomain
	}
	left := route.Eligible(b, ask)
	if left == route.Chosen && r.tooDear(b) {
		left = route.LeftTooDear
	}
	if left == route.Chosen && !r.roam && b.Region != r.region {
		left = route.LeftLocality
	}
	return left
}

// work is the request's shape with its output bound as it is now.
func (r *request) work(bound sluice.Tokens) sluice.Work {
	w := r.call.Work
	w.OutputBound = bound
	w.OutputHold = min(w.OutputHold, bound)
	return w
}

// least is the smallest output bound that is worth the request.
func (r *request) least() sluice.Tokens {
	if n := r.call.Least; n > 0 {
		return n
	}
	return MinOutput
}

// needOfPlace is what the request asks of a place: what that holds of its prompt is not
// prefilled.
func (r *request) needOfPlace() route.Need {
	w := &r.call.Work
	n := route.NeedOf(w.Input, max(w.CachedInput, r.cached), min(w.OutputHold, r.bound))
	n.Only = r.only()
	return n
}

// only is the credential that the request must go with, empty if any will do.
func (r *request) only() string {
	if r.call.Pin == nil {
		return ""
	}
	return r.call.Pin.Key
}

// shape is its work where it runs: what the place holds of its prompt is not
// prefilled.
func (r *request) shape() sluice.Work {
	w := r.work(r.bound)
	w.CachedInput = max(w.CachedInput, r.cached)
	return w
}

// asking is what a place is chosen for.
func (r *request) asking() route.Asking {
	w := &r.call.Work
	session := r.call.Session
	if session == 0 && r.call.Run != "" {
		session = route.SessionOf(r.item.Flow.Tenant, string(r.call.Run))
	}
	return route.Asking{
		ID: r.call.ID, Attempt: r.attempt, Tenant: r.item.Flow.Tenant, Session: session, Sticky: r.sticky && r.call.Session != 0,
		Input: w.Input, KV: w.Input + min(w.OutputHold, r.bound), Prefix: r.call.Prefix,
	}
}

// price is what the request holds of spend for a row.
func (r *request) price(row *price.Row, bound sluice.Tokens) sluice.Nano {
	if row == nil {
		return 0
	}
	if r.hard {
		return row.HardHold(r.work(bound))
	}
	return row.SoftHold(r.work(bound))
}

// pays reports whether what is held of spend is for the prices of a row.
func (c *covers) pays(row *price.Row) bool { return row != nil && row == c.row }

// dearer reports whether a backend costs more than the request holds, since a
// table with other prices came into force.
func (r *request) dearer(b *route.Backend) bool {
	if r.pays(b.Row()) {
		return false
	}
	bound := r.spendBound(r.bound)
	if !b.StopsOnCancel {
		bound = r.bound
	}
	return !r.call.Free && r.price(b.Row(), bound) > r.spend
}

// maxWait is how long the request may wait in the queue that it joined last.
func (r *request) maxWait() time.Duration { return r.item.Deadline.Sub(r.item.Since) }

// maxWaitOf is the longest wait of a request in a pool: its own, or what it may be.
func (e *Engine) maxWaitOf(r *request, p *pool) time.Duration {
	if r.call.MaxWait >= 0 {
		return r.call.MaxWait
	}
	return e.mostWait(r.call.Policy, p)
}

// mostWait is the longest wait of one that says nothing itself: the policy's, the pool's
// or the engine's.
func (e *Engine) mostWait(policy *sluice.Policy, p *pool) time.Duration {
	switch {
	case policy != nil && policy.MaxWait > 0:
		return time.Duration(policy.MaxWait)
	case p != nil && p.spec.Queue.MaxWait > 0:
		return p.spec.Queue.MaxWait
	}
	return e.opts.MaxWait
}

// amounts is usage as limits count it; a hedge is no request of its own.
func (r *request) amounts(u *sluice.Usage, cost sluice.Nano) quota.Amounts {
	a := amounts(u, cost)
	a[sluice.Requests] = r.requests()
	return a
}

// requests is how many of its caller's it counts as.
func (r *request) requests() int64 {
	if r.beside {
		return 0
	}
	return 1
}

// amounts is usage as limits count it: input whether cached or not, all billed
// output, one request.
func amounts(u *sluice.Usage, cost sluice.Nano) (a quota.Amounts) {
	a[sluice.Requests] = 1
	a[sluice.InputTokens] = int64(max(0, u.InputTotal()))
	a[sluice.OutputTokens] = int64(max(0, u.OutputTotal()))
	a[sluice.Spend] = int64(max(0, cost))
	a[sluice.AllTokens] = a[sluice.InputTokens] + a[sluice.OutputTokens]
	return a
}
