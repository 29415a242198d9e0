package ledger

import (
	"time"

	"sluice"
)

// Reserve is the record of a request that has been admitted: who, what for and
// what it may cost. It is written before the request waits or is dispatched.
type Reserve struct {
	Request   sluice.RequestID
	At        time.Time        // arrival
	Principal sluice.Principal // Policy is not recorded
	Task      string
	Labels    []sluice.Label
	Class     sluice.Class
	Model     sluice.ModelID
	Stream    bool
	Operation string // as in Entry
	Dialect   string
	Policy    string           // routing table version
	ShadowOf  sluice.RequestID // as in Entry

	EstimatedInput sluice.Tokens
	OutputBound    sluice.Tokens
	HeldSpend      sluice.Nano
}

// Dispatch is the record of one attempt, written before its dial.
type Dispatch struct {
	Request       sluice.RequestID
	Attempt       int // from 1
	At            time.Time
	Pool          sluice.PoolID
	Backend       sluice.BackendID
	Provider      sluice.ProviderID
	UpstreamModel string
	PriceVersion  string

	// What the attempt is charged if nothing more is ever known of it.
	Estimate sluice.Usage // its Source is UsageEstimated, or UsageNone where nothing is charged
	Cost     sluice.Nano
	CostHigh sluice.Nano // what a hard budget is charged; taken as Cost where it is less
}

// Checkpoint is what an attempt has taken so far. Each replaces the one before.
type Checkpoint struct {
	Request  sluice.RequestID
	Attempt  int
	At       time.Time
	Usage    sluice.Usage
	Cost     sluice.Nano
	CostHigh sluice.Nano // as in Dispatch
}

// Open is an attempt, or a request between attempts, that has no end in the
// journal.
type Open struct {
	Reserve    Reserve // only Request is set if the record was lost to power failure
	Dispatch   Dispatch
	Checkpoint Checkpoint // Attempt is 0 if there was none
	Final      bool       // Lost closes the request: no other attempt of it is open
}

// Attempt is the number of the attempt, 0 if no attempt was running.
func (o Open) Attempt() int { return o.Dispatch.Attempt }

// Charge is what a lost attempt is charged: of the last checkpoint and the
// estimate the dearer, as (usage, cost, high cost), so that usage and cost
// belong together. At equal cost the one with more tokens counts. Without an
// attempt nothing is charged.
func (o Open) Charge() (sluice.Usage, sluice.Nano, sluice.Nano) {
	if o.Attempt() == 0 {
		return sluice.Usage{}, 0, 0
	}
	d, c := o.Dispatch, o.Checkpoint
	usage, cost := d.Estimate, d.Cost
	usage.Source = min(usage.Source, sluice.UsageEstimated)
	if c.Attempt != 0 && (c.Cost > d.Cost || c.Cost == d.Cost && c.Usage.Total() > d.Estimate.Total()) {
		usage, cost = c.Usage, c.Cost
		usage.Source = min(max(usage.Source, sluice.UsageEstimated), sluice.UsageCounted)
	}
	return usage, cost, max(cost, d.Cost, d.CostHigh, c.Cost, c.CostHigh)
}

// Lost is the entry of an attempt whose process died, as of now: outcome
// expired, reason lost, at what Charge says. Where no attempt was running it is
// an entry with Attempt 0 and no cost.
func (o Open) Lost(now time.Time) Entry {
	r, d := o.Reserve, o.Dispatch
	usage, cost, high := o.Charge()
	at := r.At
	if at.IsZero() {
		at = d.At
	}
	return Entry{
		Request: r.Request, Attempt: d.Attempt, At: at, Ended: now,
		Tenant: r.Principal.Tenant, Project: r.Principal.Project, Key: r.Principal.Key, User: r.Principal.User, Run: r.Principal.Run,
		Task: r.Task, Labels: r.Labels, Class: r.Class, Model: r.Model, ShadowOf: r.ShadowOf,
		Pool: d.Pool, Backend: d.Backend, Provider: d.Provider, UpstreamModel: d.UpstreamModel, Policy: r.Policy,
		Final: o.Final, Outcome: sluice.Expired, Reason: sluice.Lost,
		Stream: r.Stream, Operation: r.Operation, Dialect: r.Dialect,
		Usage: usage, Cost: cost, CostHigh: high, PriceVersion: d.PriceVersion,
		EstimatedInput: r.EstimatedInput, OutputBound: r.OutputBound, HeldSpend: r.HeldSpend,
		Duration: now.Sub(at),
	}
}
