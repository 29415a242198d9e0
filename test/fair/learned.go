package fair

import (
	"sluice"
	"sluice/internal/estimate"
)

// Learned predicts as the gateway does, from the answers that it has seen.
type Learned struct{ model *estimate.Model }

// NewLearned knows nothing yet.
func NewLearned() Learned { return Learned{estimate.New(estimate.Options{})} }

func (l Learned) key(tenant sluice.TenantID, task string) estimate.Key {
	return estimate.Key{Tenant: tenant, Model: "m", Task: task}
}

// Output is the mean and the 95th percentile of what is alike.
func (l Learned) Output(tenant sluice.TenantID, task string, bound, _ sluice.Tokens) (expected, hold sluice.Tokens) {
	return l.model.Output(l.key(tenant, task), bound)
}

// Observe learns from an answer.
func (l Learned) Observe(tenant sluice.TenantID, task string, truth sluice.Tokens) {
	l.model.ObserveOutput(l.key(tenant, task), truth)
}
