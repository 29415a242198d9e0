package hook

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice"
	"sluice/internal/egress"
	"sluice/internal/wire"
)

// Event is one verdict, or the lack of one, for metrics.
type Event struct {
	Hook    string
	Stage   Stage
	Verdict Verdict
	Cause   Cause         // of Failed
	Took    time.Duration // of a call; 0 of the built-in redaction
	Counts  Counts        // of what the built-in redaction found
}

// Options is what an Inspector works with.
type Options struct {
	Dialer *egress.Dialer
	Told   func(Event) // of each verdict, from any goroutine; nil is silent
}

// Inspector has the hooks that are configured and what is known of their services.
type Inspector struct {
	o       Options
	entries atomic.Pointer[map[string]*entry]

	mu         sync.Mutex
	transports map[bool]*http.Transport // by whether private addresses may be dialled; guarded by mu
}

// entry is one hook.
type entry struct {
	spec    Spec
	finder  *Finder // of the built-in redaction
	caller  *caller // of a service
	retired bool    // it is configured no more
}

// New makes an Inspector without hooks.
func New(o Options) *Inspector {
	if o.Told == nil {
		o.Told = func(Event) {}
	}
	x := &Inspector{o: o, transports: make(map[bool]*http.Transport)}
	x.entries.Store(&map[string]*entry{})
	return x
}

// Use puts hooks in force. What did not change keeps its breaker and its turns. A hook
// that is gone serves the requests of policies that still name it until Use is called
// again: they change a moment later.
func (x *Inspector) Use(specs []Spec) {
	before := *x.entries.Load()
	next := make(map[string]*entry, len(specs))
	for _, s := range specs {
		s = s.withDefaults()
		if old := before[s.Name]; old != nil && old.spec == s {
			old := *old
			old.retired = false
			next[s.Name] = &old
			continue
		}
		e := &entry{spec: s}
		if s.URL == "" {
			e.finder = NewFinder(s.Redact)
		} else {
			e.caller = newCaller(s, x.transport(s.AllowPrivate || egress.NamesPrivate(s.host())))
		}
		next[s.Name] = e
	}
	for name, old := range before {
		if next[name] == nil && !old.retired {
			gone := *old
			gone.retired = true
			next[name] = &gone
		}
	}
	x.entries.Store(&next)
}

func (x *Inspector) transport(private bool) *http.Transport {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.transports[private]
	if t == nil {
		t = x.o.Dialer.Transport(egress.TransportOptions{AllowPrivate: private})
		x.transports[private] = t
	}
	return t
}

// Close ends idle connections. Calls belong to their requests.
func (x *Inspector) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.transports {
		t.CloseIdleConnections()
	}
	return nil
}

// Subject is the request that hooks look into.
type Subject struct {
	ID      sluice.RequestID
	Tenant  sluice.TenantID
	Project sluice.ProjectID
	Model   sluice.ModelID
	Op      wire.Operation
	Stream  bool
	Task    string
	Risk    sluice.Risk // label so far
}

// Begin is the hooks of a request: those that its policy names, then those of its model,
// each once. It is nil where there are none.
func (x *Inspector) Begin(s Subject, lists ...[]string) *Run {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	if n == 0 {
		return nil
	}
	r := &Run{Subject: s, x: x, plan: planOf(s.Op)}
	entries := *x.entries.Load()
	for _, list := range lists {
		for _, name := range list {
			e := entries[name]
			if e == nil { // a safety that is named and not there is none that passes
				e = &entry{spec: Spec{Name: name, At: 1<<AtRequest | AnswerStages}, caller: &caller{}}
			}
			if !slices.ContainsFunc(r.hooks, func(have *entry) bool { return have.spec.Name == name }) {
				r.hooks = append(r.hooks, e)
			}
		}
	}
	return r
}
