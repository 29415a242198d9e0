package telemetry

import "sync"

// The caps of the label values that come from the routing table. Names beyond
// a cap share the value Other.
const (
	MaxModels   = 100
	MaxBackends = 500
	MaxPools    = 100
)

// Other is the label value of every name that has none of its own.
const Other = "other"

// names is a bounded set of label values. Names are declared by configuration,
// never learnt from traffic.
type names struct {
	cap int

	mu    sync.RWMutex
	known map[string]struct{}
}

func newNames(limit int) *names {
	return &names{cap: limit, known: make(map[string]struct{}, limit)}
}

// declare adds a name while there is room. Names are kept for the life of the
// process: a counter that a reload has made obsolete must not start anew when
// the name comes back.
func (n *names) declare(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < n.cap {
		n.known[name] = struct{}{}
	}
}

// label is the value to use for a name. The empty name stays empty: it means
// that there was none, such as the backend of a request that reached none.
func (n *names) label(name string) string {
	if name == "" {
		return ""
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if _, ok := n.known[name]; ok {
		return name
	}
	return Other
}
