package config

import (
	"net/url"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"sluice/internal/hook"
)

// Hook looks into requests and answers: a service that is called, or the built-in
// redaction.
type Hook struct {
	Redact Redact      `json:"redact,omitempty" jsonschema:"the built-in redaction, of these kinds: private_key, jwt, secret (API keys and tokens of well-known shapes), email, iban, card, ssn, phone, ip; or all"`
	At     []HookStage `json:"at,omitempty" jsonschema:"when it looks: request (before anything is reserved or sent), commit (before the first content of a stream, or a whole answer, is delivered), event (the text of a stream as it comes; a whole answer too), answer (commit and event). A redaction looks at request and answer if left out; a service must say"`

	URL          string    `json:"url,omitempty" jsonschema:"the service that is called, in place of redact"`
	Secret       *Secret   `json:"secret,omitempty" jsonschema:"calls are signed with it; a service needs one"`
	AllowPrivate bool      `json:"allow_private,omitempty" jsonschema:"let the service's name resolve to private addresses"`
	Deadline     Duration  `json:"deadline,omitempty" jsonschema:"of one call, with the wait for its turn; 1s if left out, at most 30s"`
	OnFailure    OnFailure `json:"on_failure,omitempty" jsonschema:"what no verdict in time means: refuse, or allow"`
	MaxBody      Bytes     `json:"max_body,omitempty" jsonschema:"largest call, and largest answer; a request whose texts are more gets no verdict. 1MiB if left out, at most 32MiB"`
	Concurrency  Count     `json:"concurrency,omitempty" jsonschema:"calls at a time; 64 if left out"`
	Window       Window    `json:"window,omitzero" jsonschema:"how the text of a stream is put together for calls at event"`
}

func (h *Hook) setDefaults() { h.OnFailure = failClosed }

// Window is how the text of a stream is put together for calls.
type Window struct {
	Bytes   Bytes    `json:"bytes,omitempty" jsonschema:"new text that is enough for a call; 512B if left out, at most 64KiB"`
	Time    Duration `json:"time,omitempty" jsonschema:"how long text waits for more; 250ms if left out, at most 10s"`
	Overlap Bytes    `json:"overlap,omitempty" jsonschema:"text that is held back and shown again with what follows, so that nothing shorter is missed for being cut; 128B if left out, at most 4KiB"`
}

// HookStage is when a hook looks.
type HookStage string

func (HookStage) words() []string { return append(hook.StageNames(), "answer") }

// OnFailure is what no verdict means.
type OnFailure string

const (
	failClosed OnFailure = "refuse"
	failOpen   OnFailure = "allow"
)

func (OnFailure) words() []string { return []string{string(failClosed), string(failOpen)} }

// Redact is kinds of what is redacted: all, or a list.
type Redact []string

func redactKinds() []string { return hook.KindNames() }

func (r *Redact) decodeNode(d *decoder, n node, path string) {
	items := []node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		items = seq.Values
		if len(items) == 0 {
			d.report(nodePos(n), path, "name kinds, or write all", "nothing would be redacted")
		}
	}
	for i, item := range items {
		at := path
		if len(items) > 1 || item != n {
			at = index(path, i)
		}
		text, ok := d.scalar(item, at)
		switch {
		case !ok:
		case text == "all" && item == n, slices.Contains(redactKinds(), text) && !slices.Contains(*r, text):
			*r = append(*r, text)
		case slices.Contains(*r, text):
			d.report(nodePos(item), at, "remove it", "%q stands twice", text)
		default:
			d.report(nodePos(item), at, suggest(text, append(redactKinds(), "all")), "%q is no kind of what is redacted", text)
		}
	}
}

// The bounds of a hook's figures.
const (
	maxHookDeadline = Duration(30 * time.Second)
	maxHookBody     = Bytes(32 << 20)
	maxHookCalls    = Count(10_000)
	maxWindow       = Bytes(64 << 10)
	maxWindowTime   = Duration(10 * time.Second)
	maxOverlap      = Bytes(4 << 10)
)

func (v *validator) hook(path, name string, h *Hook) {
	v.name(path, "hook", name)
	if h.URL == "" && len(h.Redact) == 0 {
		if !v.given(join(path, "redact")) { // else that has been reported
			v.fail(path, "add url: https://…, or redact: all", "the hook neither calls a service nor redacts")
		}
		return
	}
	if h.URL == "" {
		v.redaction(path, h)
		return
	}
	if len(h.Redact) > 0 {
		v.fail(join(path, "redact"), "make two hooks of it", "a hook calls a service or redacts by itself, not both")
	}
	v.hookURL(join(path, "url"), h.URL)
	if h.Secret == nil || h.Secret.Empty() {
		v.fail(join(path, "secret"), "add secret: ${NAME}, and let the service check "+hook.SignatureHeader, "without it anyone could call the service in the gateway's name")
	}
	if len(h.At) == 0 {
		v.fail(join(path, "at"), "write some of at: [request, commit, event]", "the hook is asked at no stage")
	}
	v.atMost(join(path, "deadline"), h.Deadline > maxHookDeadline, h.Deadline, maxHookDeadline)
	v.atMost(join(path, "max_body"), h.MaxBody > maxHookBody, h.MaxBody, maxHookBody)
	v.atMost(join(path, "concurrency"), h.Concurrency > maxHookCalls, h.Concurrency, maxHookCalls)
	at := join(path, "window")
	v.atMost(join(at, "bytes"), h.Window.Bytes > maxWindow, h.Window.Bytes, maxWindow)
	v.atMost(join(at, "time"), h.Window.Time > maxWindowTime, h.Window.Time, maxWindowTime)
	v.atMost(join(at, "overlap"), h.Window.Overlap > maxOverlap, h.Window.Overlap, maxOverlap)
	if v.given(at) && !slices.Contains(h.At, "event") && !slices.Contains(h.At, "answer") {
		v.fail(at, "add event to at, or remove it", "the hook does not look into streams as they come")
	}
}

func (v *validator) atMost(path string, more bool, is, most any) {
	if more {
		v.fail(path, "write less", "%v is more than %v", is, most)
	}
}

// redaction reports what means nothing at the built-in redaction.
func (v *validator) redaction(path string, h *Hook) {
	for _, field := range []string{"secret", "allow_private", "deadline", "on_failure", "max_body", "concurrency", "window"} {
		if at := join(path, field); v.given(at) {
			v.fail(at, "remove it, or add url", "the built-in redaction calls nothing")
		}
	}
}

func (v *validator) hookURL(path, s string) {
	const fix = "write one such as https://hooks.example.com/sluice"
	u, err := url.Parse(s)
	switch {
	case err != nil:
		v.fail(path, fix, "is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		v.fail(path, fix, "scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		v.fail(path, fix, "the host is missing")
	case u.User != nil:
		v.fail(path, "remove it: calls are signed with secret", "holds a credential")
	case u.Fragment != "":
		v.fail(path, fix, "has a fragment")
	}
}

// hookNames reports names of hooks that there are not.
func (v *validator) hookNames(path string, names []string) {
	for i, name := range names {
		at := index(join(path, "hooks"), i)
		switch {
		case v.c.Hooks[name] == nil:
			v.fail(at, suggest(name, sorted(v.c.Hooks)), "hook %q is not declared", name)
		case slices.Index(names, name) < i:
			v.fail(at, "remove it", "%q stands twice", name)
		}
	}
}

// hooks warns of those that look into nothing, and of calls that others could read.
func (l *linter) hooks() {
	used := make(map[string]bool)
	use := func(names []string) {
		for _, n := range names {
			used[n] = true
		}
	}
	for _, p := range l.c.Plans {
		use(p.Hooks)
	}
	for _, t := range l.c.Tenants {
		use(t.Hooks)
		for _, p := range t.Projects {
			use(p.Hooks)
		}
	}
	for _, m := range l.c.Models {
		use(m.Hooks)
	}
	for _, name := range sorted(l.c.Hooks) {
		path := join("hooks", name)
		if !used[name] {
			l.warn(path, "name it in hooks of a plan, tenant, project or model, here or through the API, or remove it", "nothing in this file names the hook")
		}
		if u, err := url.Parse(l.c.Hooks[name].URL); err == nil && u.Scheme == "http" && !private(u.Hostname()) {
			l.warn(join(path, "url"), "write https://", "the texts of requests and answers travel unencrypted")
		}
	}
}

// HookSpecs are the hooks as they are put in force, by name.
func (c *Config) HookSpecs() (out []hook.Spec) {
	for _, name := range sorted(c.Hooks) {
		out = append(out, c.Hooks[name].spec(name))
	}
	return out
}

// spec is the hook as it is put in force.
func (h *Hook) spec(name string) hook.Spec {
	s := hook.Spec{
		Name: name, URL: h.URL, AllowPrivate: h.AllowPrivate, Deadline: time.Duration(h.Deadline), FailOpen: h.OnFailure == failOpen,
		MaxBody: int64(h.MaxBody), Concurrency: int(h.Concurrency),
		Window: hook.Window{Bytes: int(h.Window.Bytes), Time: time.Duration(h.Window.Time), Overlap: int(h.Window.Overlap)},
	}
	if h.Secret != nil {
		s.Secret = h.Secret.Secret
	}
	s.Redact, _ = hook.ParseKinds(h.Redact) // checked as the file was read
	words := make([]string, len(h.At))
	for i, w := range h.At {
		words[i] = string(w)
	}
	if s.At = hook.ParseStages(words); len(words) == 0 {
		s.At = 1<<hook.AtRequest | hook.AnswerStages
	}
	return s
}
