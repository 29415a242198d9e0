package acceptance

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/ledger"
	"sluice/internal/price"
	"sluice/internal/replay"
	"sluice/internal/store"
)

// books are the ledger and the provider's book after all runs.
type books struct {
	*replay.Books
	entries []ledger.Entry
	served  []fakellm.Served
	total   fakellm.Total
}

// close takes the gateway down, wants what must hold after any run, and compares
// the books.
func (g *gateway) close(w *wire) *books {
	t := g.t
	t.Helper()
	status := g.quiet()
	if status.Open != 0 || status.Running != 0 || status.Expired != 0 {
		t.Errorf("%d holds are open, %d running, %d expired", status.Open, status.Running, status.Expired)
	}
	if status.Journal.Open != 0 || status.Journal.LagEntries != 0 {
		t.Errorf("the journal has %d requests open, %d entries not in the store", status.Journal.Open, status.Journal.LagEntries)
	}
	if err := g.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	account := g.fleet.Account(fakellm.Filter{})
	if int64(account.Kept) != account.Total.Requests {
		t.Fatalf("the provider's book has %d of %d requests: make it larger", account.Kept, account.Total.Requests)
	}
	b := &books{entries: g.entries(), served: account.Served, total: account.Total}
	g.finals(b.entries, w.sent.Load())
	b.Books = compared(b)
	if b.Unknown != 0 || b.Missing != 0 || b.Twice != 0 {
		t.Errorf("%d entries are on no invoice, %d invoiced requests have no entry, %d have two", b.Unknown, b.Missing, b.Twice)
	}
	return b
}

// entries reads the ledger whole, and audits it.
func (g *gateway) entries() []ledger.Entry {
	t := g.t
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(g.data, "data", "sluice.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	audit, err := db.Verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range audit.Differences {
		t.Errorf("roll-up: %s", d)
	}
	var entries []ledger.Entry
	q := ledger.RecentQuery{Owner: ledger.Everyone(), Limit: ledger.MaxRecent}
	for {
		page, err := db.Recent(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			if e.Attempt <= 1 {
				entries = append(entries, *e)
				continue
			}
			all, err := db.Explain(ctx, ledger.Everyone(), e.Request)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, all...)
		}
		if page.Next.IsZero() {
			break
		}
		q.Before = page.Next
	}
	if int64(len(entries)) != audit.Entries {
		t.Errorf("the requests have %d entries, the store %d", len(entries), audit.Entries)
	}
	g.readded(ctx, db, entries)
	return entries
}

// readded adds the entries up again, each priced anew, and compares with what
// usage says, in all and by tenant.
func (g *gateway) readded(ctx context.Context, db *store.DB, entries []ledger.Entry) {
	t := g.t
	t.Helper()
	row := price.Row{Rates: price.Rates{Input: inputPrice, Output: outputPrice}}
	var all sluice.Nano
	byTenant := map[string]sluice.Nano{}
	for i := range entries {
		e := &entries[i]
		if want := row.Cost(e.Usage); e.Cost != want {
			t.Errorf("request %s attempt %d costs %d for %+v, want %d", e.Request, e.Attempt, e.Cost, e.Usage, want)
		}
		all += e.Cost
		byTenant[string(e.Tenant)] += e.Cost
	}
	usage := func(by ...ledger.Dimension) []ledger.UsageRow {
		rows, err := db.Usage(ctx, ledger.UsageQuery{Owner: ledger.Everyone(), By: by})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows := usage(); len(rows) != 1 || rows[0].Cost != all {
		t.Errorf("usage is %+v, entries cost %d", rows, all)
	}
	rows := usage(ledger.ByTenant)
	for _, r := range rows {
		if want := byTenant[r.Group[0]]; r.Cost != want {
			t.Errorf("usage of %s costs %d, its entries %d", r.Group[0], r.Cost, want)
		}
	}
	if len(rows) != len(byTenant) {
		t.Errorf("usage has %d tenants, the entries %d", len(rows), len(byTenant))
	}
}

// finals wants exactly one final entry for each request that was sent.
func (g *gateway) finals(entries []ledger.Entry, sent int64) {
	t := g.t
	t.Helper()
	final := map[sluice.RequestID]int{}
	for i := range entries {
		e := &entries[i]
		if e.Final {
			final[e.Request]++
		}
		if !g.tenants[e.Tenant] {
			t.Errorf("request %s is of tenant %q, which sent none", e.Request, e.Tenant)
		}
	}
	for id, n := range final {
		if n != 1 {
			t.Errorf("request %s has %d final entries", id, n)
		}
	}
	if int64(len(final)) != sent {
		t.Errorf("%d requests were sent, %d have a final entry", sent, len(final))
	}
}

// compared reconciles the two books.
func compared(b *books) *replay.Books {
	l := replay.LedgerBook{}
	for i := range b.entries {
		e := &b.entries[i]
		l.Entries = append(l.Entries, replay.LedgerEntry{
			Provider: e.UpstreamRequestID, Source: e.Usage.Source, Input: e.Usage.InputTotal(), Output: e.Usage.OutputTotal(),
		})
	}
	backend := replay.BackendBook{Running: b.total.Running}
	for i := range b.served {
		s := &b.served[i]
		backend.Entries = append(backend.Entries, replay.BackendEntry{ID: s.ID, Billed: s.Billed, Input: s.Input, Output: s.Output})
	}
	return replay.Reconcile(l, backend)
}

// paid is how many tenants have entries that used something.
func (g *gateway) paid(entries []ledger.Entry) int {
	tenants := map[sluice.TenantID]bool{}
	for i := range entries {
		if e := &entries[i]; e.Usage.Total() > 0 {
			tenants[e.Tenant] = true
		}
	}
	return len(tenants)
}

// sum is the entries of some sources against the provider's count.
type sum struct {
	in, out, wantIn, wantOut sluice.Tokens
}

// sum adds up the entries of some sources that arrived from a time on. Entries
// that carry no provider's id are compared with the billed requests that no entry
// names.
func (b *books) sum(since time.Time, sources ...sluice.UsageSource) (s sum) {
	taken, named, unnamed := map[string]bool{}, map[string]bool{}, false
	for i := range b.entries {
		e := &b.entries[i]
		named[e.UpstreamRequestID] = true
		if !slices.Contains(sources, e.Usage.Source) || e.At.Before(since) {
			continue
		}
		taken[e.UpstreamRequestID] = true
		unnamed = unnamed || e.UpstreamRequestID == ""
		s.in += e.Usage.InputTotal()
		s.out += e.Usage.OutputTotal()
	}
	for i := range b.served {
		at := &b.served[i]
		if at.Billed && (taken[at.ID] || unnamed && !named[at.ID] && !at.At.Before(since)) {
			s.wantIn += at.Input
			s.wantOut += at.Output
		}
	}
	return s
}

// within wants the sum to be within some per cent of the provider's.
func (s *sum) within(t *testing.T, what string, percent float64) {
	t.Helper()
	for _, side := range []struct {
		name      string
		got, want sluice.Tokens
	}{{"input", s.in, s.wantIn}, {"output", s.out, s.wantOut}} {
		off := 100 * float64(side.got-side.want) / float64(max(side.want, 1))
		t.Logf("%s: %s %d against %d: %+.2f %%", what, side.name, side.got, side.want, off)
		if off > percent || off < -percent {
			t.Errorf("%s of %s is %+.2f %% off", side.name, what, off)
		}
	}
}

// log shows the figures of the run.
func (b *books) log(t *testing.T) {
	t.Helper()
	show := func(name string, s replay.SourceBook) {
		if s != (replay.SourceBook{}) {
			t.Logf("%s: %d entries, %d exact; input %d against %d, output %d against %d", name, s.Entries, s.Exact, s.Input, s.BackendInput, s.Output, s.BackendOutput)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Sources)) {
		show(name, b.Sources[name])
	}
	show("unnamed", b.Unnamed)
}
