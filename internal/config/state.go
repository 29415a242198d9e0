package config

import (
	"net/url"
	"time"

	"sluice/internal/upstream"
)

// State bounds what is remembered of what providers keep.
type State struct {
	Keep      Duration `json:"keep,omitempty" jsonschema:"how long an id is remembered from its last use; after that a request that refers to it is refused"`
	PerTenant Count    `json:"per_tenant,omitempty" jsonschema:"ids remembered of each tenant; beyond them the one that was used least recently is forgotten"`
	Total     Count    `json:"total,omitempty" jsonschema:"ids remembered in all, about 150 bytes each"`
}

func (s *State) setDefaults() {
	*s = State{Keep: Duration(30 * 24 * time.Hour), PerTenant: 20_000, Total: 1_000_000}
}

// ForeignIDs is refuse or allow.
type ForeignIDs string

func (ForeignIDs) words() []string { return []string{"refuse", "allow"} }

// StateBounds is State for the process: how much of it is remembered, and for how long.
type StateBounds struct {
	PerTenant, Total int
	Keep             time.Duration
}

func (s *State) bounds() StateBounds {
	return StateBounds{PerTenant: int(s.PerTenant), Total: int(s.Total), Keep: time.Duration(s.Keep)}
}

// replicas reports whether each backend of the provider keeps what it makes by itself.
func (p *Provider) replicas() bool { return p.Engine != "" || p.Simulated }

// site is what of its provider's state a backend sees: what its region has, or, where it
// has another address than the provider, what is there.
func (x *Backend) site(p *Provider, t *upstream.Target) string {
	if t == nil || p.replicas() {
		return ""
	}
	if own, err := url.Parse(p.BaseURL); err == nil && own.Host == t.BaseURL.Host {
		return x.Region
	}
	if x.Region == "" {
		return t.BaseURL.Host
	}
	return x.Region + "@" + t.BaseURL.Host
}

// maxState bounds the memory that ids may be given: 1.5 GB.
const maxState = 10_000_000

func (v *validator) state() {
	s := &v.c.State
	if s.Keep < Duration(time.Minute) {
		v.fail("state.keep", "write a time such as 720h", "an id that is forgotten after %s is of no use to the client that has it", s.Keep)
	}
	if s.Total < 1 || s.Total > maxState {
		v.fail("state.total", "write a number from 1 to 10M", "%d is out of range", s.Total)
	}
	if s.PerTenant < 1 || s.PerTenant > s.Total {
		v.fail("state.per_tenant", "write a number from 1 to that of total", "%d is out of range", s.PerTenant)
	}
}
