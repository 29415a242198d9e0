package config

import (
	"net/http"
	"net/url"
	"time"

	"sluice/internal/upstream"
	"sluice/internal/wire"
)

func (b *builder) target(path string, x *Backend, p *Provider) *upstream.Target {
	base, at := p.BaseURL, path
	switch {
	case p.Simulated:
		base, at = b.o.SimulatedURL, join(path, "provider")
		if base == "" {
			b.problem(at, "run it with a simulated fleet, or give the provider a base_url", "provider "+x.Provider+" is simulated, and there is no simulated fleet")
			return nil
		}
	case x.BaseURL != "":
		base = x.BaseURL
	case base == "":
		base = x.base(p)
	}
	u, err := url.Parse(base)
	if err != nil {
		b.problem(at, "write one such as https://api.openai.com/v1", "the address is malformed")
		return nil
	}
	t := &upstream.Target{
		BaseURL: u, Dialect: wire.Dialect(p.Dialect), Engine: string(p.Engine), MetricsEvery: p.metricsEvery(), AllowPrivate: p.AllowPrivate || p.Simulated,
		Header: make(http.Header), Timeouts: p.Timeouts.upstream(), Drain: x.drain(p), HandOver: p.Batch.handOver(), LostBound: p.LostCharge == LostBound, ChargeReported: p.Charge == ChargeReported,
		Quirks: upstream.QuirksOf(x.known(p)), Served: b.served(x, p),
	}
	t.Service, t.Project, t.Location, t.APIVersion = p.service(), p.Project, x.location(p), p.APIVersion
	c := x.credentials(p)
	t.Probe, t.Keys, t.Logins = x.probe(p), c.secrets, c.logins
	if len(c.keys) > 0 { // for what is asked beside requests
		t.APIKey, t.Login = c.secrets[c.keys[0].ID], c.logins[c.keys[0].ID]
	}
	for name, v := range p.Headers {
		t.Header.Set(name, v.Reveal())
	}
	if err := t.Validate(); err != nil {
		b.problem(at, "", err.Error())
		return nil
	}
	return t
}

func (t Timeouts) upstream() upstream.Timeouts {
	return upstream.Timeouts{
		Connect: time.Duration(t.Connect), Headers: time.Duration(t.Headers), FirstToken: time.Duration(t.FirstToken),
		Idle: time.Duration(t.Idle), Total: time.Duration(t.Total), Rate: int64(t.MinRate),
	}
}
