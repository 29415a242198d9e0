package acceptance

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/egress"
	"sluice/internal/replay"
)

// scale is how many times as long the runs are, from the environment.
func scale(t *testing.T) int {
	t.Helper()
	v := os.Getenv("SLUICE_ACCEPTANCE_SCALE")
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_ACCEPTANCE_SCALE is %q: write a whole number from 1", v)
	}
	return n
}

// trace reads the rows of a recorded trace where it is, else makes some of the
// same shape.
func trace(t *testing.T, file, shape string, o replay.ReadOptions) []replay.Row {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "traces", file)
	rows, err := replay.Open(path, o)
	if errors.Is(err, fs.ErrNotExist) {
		rows, err = replay.Open("synthetic:"+shape, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// wire sends requests and counts those of which anything was written: only of
// these the gateway can know.
type wire struct {
	*http.Transport
	t      *testing.T
	sent   atomic.Int64
	failed atomic.Int64
}

func newWire(t *testing.T, dial egress.DialFunc) *wire {
	w := &wire{t: t, Transport: egress.New(egress.Options{Dial: dial}).Transport(egress.TransportOptions{AllowPrivate: true, Connect: time.Minute})}
	t.Cleanup(w.CloseIdleConnections)
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var on net.Conn
	var before int64
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		on, before = i.Conn, egress.Writes(i.Conn)
	}})
	res, err := w.Transport.RoundTrip(r.WithContext(ctx))
	if on != nil && egress.Writes(on) > before {
		w.sent.Add(1)
	}
	if err != nil && r.Context().Err() == nil && w.failed.Add(1) <= 5 {
		w.t.Logf("a request failed: %v", err)
	}
	return res, err
}

// run replays rows and wants each of them to come to an end.
func (g *gateway) run(w *wire, o replay.Options) *replay.Report {
	t := g.t
	t.Helper()
	o.Target, o.Keys, o.Transport, o.Model = "http://"+g.app.Addr(), g.keys, w, "fast"
	o.Timeout = 5 * time.Minute
	r, err := replay.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 0 || r.Overrun != 0 || r.Cut || r.Sent != int64(len(o.Rows)) {
		t.Errorf("%d of %d rows sent, %d overrun, %d lost", r.Sent, len(o.Rows), r.Overrun, r.Lost)
	}
	if r.Rejected != 0 || r.Failed != 0 {
		t.Errorf("%d rejected and %d failed: %v", r.Rejected, r.Failed, r.Reasons)
	}
	return r
}

// clientsOf is the clients of a trace in order of their first request.
func clientsOf(rows []replay.Row) (clients []string) {
	seen := map[string]bool{}
	for i := range rows {
		if c := rows[i].Client; !seen[c] {
			seen[c] = true
			clients = append(clients, c)
		}
	}
	return clients
}

// repeated is n rows: those of the trace, again and again.
func repeated(rows []replay.Row, n int) []replay.Row {
	out := make([]replay.Row, 0, n)
	for span := rows[len(rows)-1].At; len(out) < n; {
		begin := span * time.Duration(len(out)/len(rows))
		for _, row := range rows[:min(len(rows), n-len(out))] {
			row.At += begin
			out = append(out, row)
		}
	}
	return out
}

// since is rows as if their first came at once.
func since(rows []replay.Row) []replay.Row {
	begin := rows[0].At
	for i := range rows {
		rows[i].At -= begin
	}
	return rows
}
