package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice"
	"sluice/internal/app"
	"sluice/internal/ledger"
	"sluice/test/gateway"
)

// restartBound is how long a gateway may take to be ready with 100,000 holds open.
const restartBound = 2 * time.Second

// TestRestart is P1's bound: a gateway that died with 100,000 requests open is
// ready, process start included, within 2 s, with its budgets charged for all of
// them. On a machine that has other things to do it is the processor time that is
// held to the bound.
func TestRestart(t *testing.T) {
	n := size(t, "SLUICE_CRASH_HOLDS", 100_000)
	p := newProvider(t)
	g := gateway.New(t, gateway.Options{Config: configuration(p.url), Tenants: map[string]string{hard: hard, soft: soft}})
	g.Start() // so that the database is there, as in another life
	g.Stop()
	open(t, g.Dir, n)
	took := g.Start()
	work := g.CPU()
	t.Logf("ready with %d open holds after %v, of which %v on a processor", n, took.Round(time.Millisecond), work)
	if took > restartBound && work > restartBound {
		t.Errorf("a start with %d open holds takes %v, and %v on a processor; want at most %v", n, took, work, restartBound)
	}
	a := &audit{t: t, g: g, p: p, l: newLoad(g, 1)}
	if got, want := a.spent(hard), int64(n)*lostHigh; got != want {
		t.Errorf("ready with %d spent, want %d: %d holds at the high figure", got, want, n)
	}
}

// TestRestartDrains follows what was lost into the ledger.
func TestRestartDrains(t *testing.T) {
	n := size(t, "SLUICE_CRASH_HOLDS", 100_000) / 20
	p := newProvider(t)
	g := gateway.New(t, gateway.Options{Config: configuration(p.url), Tenants: map[string]string{hard: hard, soft: soft}})
	open(t, g.Dir, n)
	g.Start()
	g.Quiet()
	g.Verify()
	entries := g.Entries()
	if len(entries) != n {
		t.Errorf("%d entries, want %d", len(entries), n)
	}
	for i := range entries {
		if e := &entries[i]; e.Reason != "lost" || !e.Final || e.CostHigh != lostHigh {
			t.Fatalf("an entry is %+v", e)
		}
	}
	a := &audit{t: t, g: g, p: p, l: newLoad(g, 1)}
	a.budgets(entries)
	g.Kill()
	g.Start()
	g.Quiet()
	if after := g.Entries(); len(after) != n+2 { // and the two requests that asked for the budgets
		t.Errorf("%d entries after another start, want %d", len(after), n+2)
	}
}

// lostHigh is what each open hold is charged.
const lostHigh = 70_000

// open leaves n requests open in a journal, as a process does that dies.
func open(tb testing.TB, dir string, n int) {
	tb.Helper()
	j, err := ledger.OpenJournal(filepath.Join(dir, "journal"), ledger.JournalOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	at := time.Now()
	for i := range n {
		id := sluice.RequestID(fmt.Sprintf("req_019ad4c2-7f00-7000-8000-%012d", i))
		err := j.Begin(ledger.Reserve{
			Request: id, At: at, Principal: sluice.Principal{Tenant: hard, Project: "default", Key: "main", User: sluice.UserID(fmt.Sprint("u-", i))},
			Task: "summary", Class: sluice.Interactive, Model: "fast", Stream: true, Operation: "chat", Dialect: "openai", Policy: "0123456789ab",
			EstimatedInput: 1500, OutputBound: 4096, HeldSpend: lostHigh,
		}, ledger.Dispatch{
			Request: id, Attempt: 1, At: at, Pool: "first", Backend: "a", Provider: "engines", UpstreamModel: "sim-small", PriceVersion: "2026-11",
			Estimate: sluice.Usage{Input: 1500, Output: 300, Source: sluice.UsageEstimated}, Cost: 40_000, CostHigh: lostHigh,
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := j.Close(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkRestart is the start of TestRestart within this process, to be
// profiled.
func BenchmarkRestart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		open(b, dir, 100_000)
		b.StartTimer()
		a, err := app.New(b.Context(), app.Options{Data: dir, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Stderr: os.Stderr})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		ctx, cancel := context.WithCancel(b.Context())
		cancel() // what is not drained yet is of no use to anybody
		_ = a.Stop(ctx)
		b.StartTimer()
	}
}
