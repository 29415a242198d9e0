package proxy

import (
	"sluice"
	"sluice/internal/exchange"
	"sluice/internal/route"
)

const hSession = "Sluice-Session"

// foreignSessions are headers by which clients name a session to whatever stands in
// front of a model, the first that is given first. What of them is not well formed
// was not meant for the gateway, and names none.
var foreignSessions = [...]string{"X-Session-Id", "X-Session-Affinity"}

// session reads the session that the request is part of. Beyond here it is known by a
// hash alone, which is the tenant's own.
func (c *call) session(req *exchange.Request) error {
	h := c.r.Header
	if v := h[hSession]; len(v) > 0 {
		if err := validName("sluice-session", v[0]); err != nil {
			return err
		}
		req.Session = route.SessionOf(c.principal.Tenant, v[0])
		return nil
	}
	for _, name := range foreignSessions {
		if v := h[name]; len(v) == 1 && validName(name, v[0]) == nil {
			req.Session = route.SessionOf(c.principal.Tenant, v[0])
			return nil
		}
	}
	return nil
}

// validName checks an id that a client makes up for what its requests have in common.
func validName(header, id string) error {
	if id == "" || len(id) > sluice.MaxLabel {
		return sluice.Invalid(header, "is %d bytes long: use 1 to %d", len(id), sluice.MaxLabel)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return sluice.Invalid(header, "has %q at byte %d: use letters, digits and punctuation of ASCII, without spaces", id[i], i)
		}
	}
	return nil
}
