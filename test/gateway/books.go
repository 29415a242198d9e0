package gateway

import (
	"database/sql"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver
)

// Entry is one row of the ledger, read from the database as any other program
// would read it.
type Entry struct {
	Request      string
	Attempt      int
	AtMicros     int64
	Tenant, User string
	Backend      string
	Upstream     string // model that was asked for there
	UpstreamID   string // the provider's id of the request
	Final        bool
	Outcome      string
	Reason       string
	Status       int
	Source       string
	Input        int64 // all classes
	Output       int64 // all classes
	Cost         int64 // nano-dollars
	CostHigh     int64
}

// Entries reads the whole ledger, running gateway or not.
func (g *Gateway) Entries() []Entry {
	g.tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(g.Dir, "sluice.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		g.tb.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT request_id, attempt, at_us, tenant, user_id, backend, upstream_model, upstream_request_id,
		final, outcome, reason, status, usage_source, input + cache_read + cache_write + cache_write_1h + audio_input,
		output + reasoning + audio_output, cost, cost_high FROM entries ORDER BY request_id, attempt`)
	if err != nil {
		g.tb.Fatal(err)
	}
	defer rows.Close()
	var all []Entry
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.Request, &e.Attempt, &e.AtMicros, &e.Tenant, &e.User, &e.Backend, &e.Upstream, &e.UpstreamID,
			&e.Final, &e.Outcome, &e.Reason, &e.Status, &e.Source, &e.Input, &e.Output, &e.Cost, &e.CostHigh); err != nil {
			g.tb.Fatal(err)
		}
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		g.tb.Fatal(err)
	}
	return all
}

// Verify wants the ledger's roll-ups to be the sums of its entries, asked of the
// running gateway by the command line.
func (g *Gateway) Verify() {
	g.tb.Helper()
	if out, err := g.Run("ledger", "verify"); err != nil {
		g.tb.Errorf("sluice ledger verify: %v: %s", err, out)
	}
}
