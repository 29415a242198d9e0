package fakellm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxContainers bounds the containers that a provider keeps; the oldest goes first.
const maxContainers = 10_000

// containerLife is how long one is kept, as its answers say.
const containerLife = 30 * 24 * time.Hour

// containers are the sandboxes of a provider: each belongs to the credential that it was
// made with.
type containers struct {
	mu    sync.Mutex
	owner map[string]string // credential by id
	order []string
}

// make adds one for a credential.
func (c *containers) make(id, credential string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner == nil {
		c.owner = map[string]string{}
	}
	c.owner[id] = credential
	if c.order = append(c.order, id); len(c.order) > maxContainers {
		delete(c.owner, c.order[0])
		c.order = c.order[1:]
	}
}

// has reports whether a credential has one of that id.
func (c *containers) has(id, credential string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	owner, ok := c.owner[id]
	return ok && owner == credential
}

// credentialOf is what a request came with.
func credentialOf(h http.Header) string { return cmp.Or(h.Get("x-api-key"), h.Get("Authorization")) }

// contain finds the container of a request, or makes one where it has a tool that runs
// code. Such tools are the provider's own: they are not called.
func (s *Server) contain(a *ask, in *body, h http.Header) *refusal {
	runs := slices.ContainsFunc(in.Tools, runsCode)
	in.Tools = slices.DeleteFunc(in.Tools, runsCode)
	id := named(in.Container)
	switch {
	case id != "" && !s.containers.has(id, credentialOf(h)):
		return &refusal{status: http.StatusNotFound, kind: "not_found_error", msg: "container: no container with id " + id}
	case id == "" && runs:
		id = "container_" + s.mint()
		s.containers.make(id, credentialOf(h))
	}
	a.container = id
	return nil
}

// named is the id that a container is referred to by: itself, or in an object.
func named(raw json.RawMessage) (id string) {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		var o struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(raw, &o)
		return o.ID
	}
	_ = json.Unmarshal(raw, &id)
	return id
}

func runsCode(tool json.RawMessage) bool {
	var t struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(tool, &t) == nil && len(t.Type) > len("code_execution") && t.Type[:len("code_execution")] == "code_execution"
}

// contained is what an answer says of its container, nil if it has none.
func (a *ask) contained() any {
	if a.container == "" {
		return nil
	}
	return obj{"id": a.container, "expires_at": time.Now().Add(containerLife).UTC().Format(time.RFC3339)}
}
