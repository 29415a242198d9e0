package answer

import (
	"bytes"
	"net/http"

	"sluice"
	"sluice/internal/engine"
	"sluice/internal/exchange"
	"sluice/internal/route"
)

// Answer is an answer as it is kept. It is not changed once it is made.
type Answer struct {
	Status int
	Type   string // of an answer in one piece; empty is JSON
	Stream bool   // Body is the events of a stream
	Body   []byte // exactly what the client got

	Header  http.Header      // of the backend's answer, those that clients get
	Backend sluice.BackendID // that answered; empty if none did
	Policy  string           // version of the routing table that chose it
	Dropped string           // for sluice-dropped
}

// Head is what is told of the answer when it is replayed: what was told of it then. Its
// limits are empty: set those of now.
func (a *Answer) Head() *exchange.Head {
	h := &exchange.Head{Status: a.Status, Upstream: a.Header, Type: a.Type, Dropped: a.Dropped, Grant: engine.Grant{Policy: a.Policy}}
	if a.Backend != "" {
		h.Grant.Backend = &route.Backend{ID: a.Backend}
	}
	return h
}

// replayPart is about how much of a stream is written at once: each part has a write
// deadline of its own.
const replayPart = 32 << 10

// Replay delivers the answer with a head, which may be that of Head or say more. The
// error is the client's.
func (a *Answer) Replay(h *exchange.Head, c exchange.Client) error {
	if !a.Stream {
		return c.Answer(h, a.Body)
	}
	for rest := a.Body; ; {
		n := whole(rest)
		if err := c.Events(h, rest[:n:n]); err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) == 0 {
			return nil
		}
	}
}

// whole is how much of events is a part that ends where an event does.
func whole(events []byte) int {
	if len(events) <= replayPart {
		return len(events)
	}
	for _, end := range [...]string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(events[replayPart:], []byte(end)); i >= 0 {
			return replayPart + i + len(end)
		}
	}
	return len(events)
}
