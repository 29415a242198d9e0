package sluice

import "fmt"

// Names of the things that configuration and requests refer to. Distinct types keep a pool from being passed where
// a backend is meant.
type (
	TenantID   string // a tenant holds projects
	ProjectID  string // a project holds keys; unique within its tenant
	KeyID      string // the public id of a key, as it stands between the underscores of the credential
	UserID     string // the caller's own end-user label, untrusted, bounded by MaxLabel
	RunID      string // an agent's run of many requests, untrusted, bounded by MaxLabel
	PlanID     string // the limits and class a tenant has
	ModelID    string // the public name that a client asks for
	PoolID     string // backends that share a queue
	BackendID  string // one upstream model at one provider account or engine replica
	ProviderID string // an account at a provider, or a family of engines
	RequestID  string // minted here for every request, never taken from a client
)

// MaxLabel bounds a client's free-form label (user, run) in bytes.
const MaxLabel = 128

// MaxTask bounds a task label in bytes.
const MaxTask = 64

// MaxLabels bounds how many cost labels a request may carry.
const MaxLabels = 8

// DefaultProject is the project of keys that name none.
const DefaultProject ProjectID = "default"

// ParseTask validates a task label: at most MaxTask of [a-z0-9._-]. The empty string is valid and means that the
// request has no task.
func ParseTask(s string) (string, error) {
	if len(s) > MaxTask {
		return "", Invalid("sluice-task", "is %d bytes long, the bound is %d", len(s), MaxTask)
	}
	for i := range len(s) {
		if !isLabelByte(s[i]) {
			return "", Invalid("sluice-task", "has %q at byte %d: use a-z, 0-9, dot, underscore and hyphen", s[i], i)
		}
	}
	return s, nil
}

// Label is one key and value of sluice-labels.
type Label struct{ Key, Value string }

// ValidName reports, as an error that says how to mend it, whether s may name a tenant, project, plan, pool,
// backend or provider: 1 to 64 of [a-z0-9._-], starting with a letter or digit.
func ValidName(s string) error {
	if s == "" || len(s) > MaxTask {
		return fmt.Errorf("a name has 1 to %d bytes, this one has %d", MaxTask, len(s))
	}
	if s[0] == '.' || s[0] == '_' || s[0] == '-' {
		return fmt.Errorf("name %q must start with a letter or a digit", s)
	}
	for i := range len(s) {
		if !isLabelByte(s[i]) {
			return fmt.Errorf("name %q has %q: use a-z, 0-9, dot, underscore and hyphen", s, s[i])
		}
	}
	return nil
}

func isLabelByte(b byte) bool {
	return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
}
