package route

import (
	"slices"
	"strings"

	"sluice"
)

// StateKind sorts what a backend keeps between requests.
type StateKind uint8

// The kinds.
const (
	StateContainer    StateKind = iota // a sandbox in which a provider runs code
	StateFile                          // a file that was uploaded, or that a provider's tool has written
	StateResponse                      // a stored answer, from which another request goes on
	StateConversation                  // to which stored answers are added
	StateAudio                         // an answer's audio, which a later turn refers to
	StateCache                         // a prompt that was put into a provider's cache by itself
	StateStore                         // what a provider's tool searches: a vector store, a corpus
	StateSkill                         // instructions and files for a container
	StatePrompt                        // a prompt that a provider has by an id
	StateResource                      // whatever else a provider's tool is given by an id
	StateItem                          // a part of a stored answer, such as its message or its reasoning
	NumStateKinds     = iota
)

var stateKindNames = [NumStateKinds]string{"container", "file", "response", "conversation", "audio", "cache", "store", "skill", "prompt", "resource", "item"}

// String is the word in messages, records and metrics.
func (k StateKind) String() string {
	if int(k) < len(stateKindNames) {
		return stateKindNames[k]
	}
	return "unknown"
}

// Noun is the word behind its article.
func (k StateKind) Noun() string {
	if s := k.String(); strings.ContainsRune("aeiou", rune(s[0])) {
		return "an " + s
	}
	return "a " + k.String()
}

// State is something that a backend keeps between requests, by the id that it has given.
type State struct {
	Kind StateKind
	ID   string
}

// Pin is the place where state is kept: the only one to which a request that refers to it
// may go. An engine's replica keeps what it made by itself. A hosted provider keeps it for
// an account: a credential at a site, since those that tie state to a region have an
// address for each. Every backend of that account will do, whatever its pool or model.
type Pin struct {
	Backend  sluice.BackendID  `json:"backend,omitempty"` // the replica; empty where an account keeps it
	Provider sluice.ProviderID `json:"provider"`
	Site     string            `json:"site,omitempty"` // of the account
	Key      string            `json:"key,omitempty"`  // the account's credential; empty where it has none, and of a replica
}

// PinOf is the place where a backend keeps what it makes for a request that came with a
// credential.
func PinOf(b *Backend, key string) Pin {
	if b.Replica {
		return Pin{Backend: b.ID, Provider: b.Provider}
	}
	if !b.hasKey(key) { // what stands for no credential
		key = ""
	}
	return Pin{Provider: b.Provider, Site: b.Site, Key: key}
}

// Holds reports whether a backend has what is kept at the place.
func (p *Pin) Holds(b *Backend) bool {
	switch {
	case p.Provider != b.Provider, b.Replica != (p.Backend != ""):
		return false
	case b.Replica:
		return p.Backend == b.ID
	case p.Key == "":
		return p.Site == b.Site && len(b.Keys) == 0
	}
	return p.Site == b.Site && b.hasKey(p.Key)
}

func (b *Backend) hasKey(id string) bool {
	return slices.ContainsFunc(b.Keys, func(k Key) bool { return k.ID == id })
}

// String names the place to operators: a backend, or provider, credential and site.
func (p *Pin) String() string {
	if p.Backend != "" {
		return "backend " + string(p.Backend)
	}
	s := "provider " + string(p.Provider)
	if p.Key != "" {
		s += ", credential " + p.Key
	}
	if p.Site != "" {
		s += ", at " + p.Site
	}
	return s
}
