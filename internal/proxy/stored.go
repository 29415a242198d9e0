package proxy

import (
	"net/http"

	"sluice/internal/auth"
	"sluice/internal/wire"
)

// Answers that a provider has stored are asked for by their ids, with no body.

// storedPaths are what is asked of them, by path.
var storedPaths = []struct {
	path  string
	ops   []wire.Operation
	allow string // other methods
}{
	{"/v1/responses/{id}", []wire.Operation{wire.ResponseGet, wire.ResponseDelete}, "GET, DELETE"},
	{"/v1/responses/{id}/cancel", []wire.Operation{wire.ResponseCancel}, "POST"},
	{"/v1/responses/{id}/input_items", []wire.Operation{wire.ResponseItems}, "GET"},
}

func (p *Proxy) serveStored(mux *http.ServeMux) {
	for _, s := range storedPaths {
		for _, op := range s.ops {
			mux.HandleFunc(op.Method()+" "+s.path, func(w http.ResponseWriter, r *http.Request) {
				p.handle(w, r, op, auth.PreferAuthorization, (*call).stored)
			})
		}
		mux.HandleFunc(s.path, func(w http.ResponseWriter, r *http.Request) {
			p.handle(w, r, s.ops[0], auth.PreferAuthorization, wrongMethod(s.allow))
		})
	}
}

// stored serves what is asked of a stored answer: it has no body that counts.
func (c *call) stored() {
	if err := c.identify(); err != nil {
		c.reject(err)
		return
	}
	var err error
	if c.head, err = wire.ScanStored(c.op, c.r.PathValue("id"), c.r.URL.RawQuery); err != nil {
		c.reject(err)
		return
	}
	req, err := c.request(nil)
	if err != nil {
		c.reject(err)
		return
	}
	c.sink.watch(c.head.Stream)
	c.deliver(c.p.o.Run(c.r.Context(), req, &c.sink))
}
