package exchange

import (
	"net/http"
	"time"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/scrape"
	"sluice/internal/upstream"
	"sluice/internal/wire"
)

// hLoad is the header in which an engine tells of its load, in canonical form.
const hLoad = "Endpoint-Load-Metrics"

// hints is what an answer's headers tell of the backend beside the answer: what is
// left of its rates, and its load where it is asked for that.
func (t *turn) hints(a *attempt, ans *upstream.Answer) engine.Signal {
	now := time.Now()
	s := engine.Signal{Backend: a.place.Backend.ID, Key: a.place.Key, Rates: wire.RateHints(a.said.Op.Dialect(), ans.Header, a.times.sent, now)}
	if v := ans.Header[hLoad]; len(v) > 0 && a.target.MetricsEvery > 0 {
		if l, ok := scrape.Report(v[0]); ok {
			l.At, l.Every = now, a.target.MetricsEvery
			s.Load = &l
		}
	}
	return s
}

// tell hands the hints of an answer on.
func (t *turn) tell(s engine.Signal) {
	if len(s.Rates) > 0 || s.Load != nil || s.Limited || s.Overloaded || s.Refused || s.Spent {
		t.x.o.Gate.Observe(s)
	}
}

// refused adds what a refusal says of the backend's room, or of its credential. A
// credential that is refused as such is (401); one that may not do this here (403) may
// do so elsewhere.
func refused(s engine.Signal, ref *wire.Refusal) engine.Signal {
	switch {
	case ref.Park && ref.Reason == sluice.UpstreamRefused:
		s.Refused, s.Everywhere = true, ref.Status == http.StatusUnauthorized
	case ref.Park:
		s.Spent, s.Pause = true, ref.RetryAfter
	case ref.Overload:
		s.Overloaded = true
	case ref.Reason == sluice.UpstreamLimited:
		s.Limited, s.Pause = true, ref.RetryAfter
	}
	return s
}
