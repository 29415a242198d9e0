package faults

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice"
	"sluice/internal/fakellm"
	"sluice/internal/ledger"
	"sluice/internal/store"
)

// A request that waits in a queue when the process dies was nothing yet: it has
// no row, and what ran before it is lost at its estimate.
func TestFault_P1_KilledWhileQueued(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}, capacity: 1})
	g.spawn("")
	var wg sync.WaitGroup
	var runs, waits got
	wg.Go(func() { runs = g.do(ask{faults: "hang-first"}) })
	p.running(t, 1)
	wg.Go(func() { waits = g.do(ask{tenant: hard, tokens: 100}) })
	eventually(t, "a request waits", func() bool { return g.status().Pools[0].Waiting == 1 })
	g.proc.kill()
	wg.Wait()
	if runs.err == nil || waits.err == nil {
		t.Errorf("clients of a dead process got %v and %v, want broken connections", &runs, &waits)
	}
	g.spawn("")
	g.quiet()
	wantLost(t, g.books().only(t))
}

// An attempt that was dispatched when the process died is charged its estimate:
// the provider may have worked.
func TestFault_P2_KilledBeforeTheHeaders(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
	g.spawn("")
	var wg sync.WaitGroup
	var streamed, whole got
	wg.Go(func() { streamed = g.do(ask{tenant: hard, faults: "hang-headers", tokens: 50}) })
	wg.Go(func() { whole = g.do(ask{faults: "hang-headers", tokens: 50, whole: true}) })
	p.running(t, 2)
	g.proc.kill()
	wg.Wait()
	if streamed.err == nil || whole.err == nil {
		t.Errorf("clients of a dead process got %v and %v, want broken connections", &streamed, &whole)
	}
	g.spawn("")
	g.quiet()
	b := g.books()
	if len(b) != 2 {
		t.Errorf("the ledger has %d requests, want 2", len(b))
	}
	for _, es := range b {
		wantLost(t, es[0])
		if es[0].Usage.Source != sluice.UsageEstimated || es[0].Usage.Output == 0 {
			t.Errorf("lost with usage %+v", es[0].Usage)
		}
	}
}

// A stream that ran when the process died is charged at least what its last
// checkpoint had seen, and no client takes it for whole.
func TestFault_P3_KilledInMidStream(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
	g.spawn("")
	for range 40 { // answers are short here, so that the estimate becomes so
		if r := g.do(ask{tokens: 4000, faults: "tokens=20"}); !r.whole() {
			t.Fatalf("got %v", &r)
		}
	}
	s := g.open(ask{tokens: 4000, faults: "stall-after=3000"})
	eventually(t, "3,000 tokens have come", func() bool { return s.events.Load() == 3000 })
	g.proc.kill()
	r := s.result(t)
	if r.err == nil || strings.Contains(r.body, "[DONE]") {
		t.Errorf("the client of a dead process got %v", &r)
	}
	g.spawn("")
	g.quiet()
	for id, es := range g.books() {
		if id != sluice.RequestID(r.header.Get("Sluice-Request-Id")) {
			continue
		}
		wantLost(t, es[0])
		if u := es[0].Usage; u.Output < 2000 || u.Output > 3300 {
			t.Errorf("3,000 tokens were delivered, and %+v is charged", u)
		}
		return
	}
	t.Error("the stream has no entry")
}

// Killed between the upstream's end and the store's commit, a request is in the
// ledger exactly once, as it really ended.
func TestFault_P4_KilledBeforeTheCommit(t *testing.T) {
	t.Parallel()
	t.Run("settled, store locked", func(t *testing.T) {
		p := serve(t)
		g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
		g.spawn("")
		unlock := g.lock()
		r := g.do(ask{tenant: hard, tokens: 10})
		if !r.whole() {
			t.Fatalf("got %v", &r)
		}
		g.proc.kill()
		unlock()
		g.spawn("")
		g.quiet()
		e := g.books().only(t)
		if e.Outcome != sluice.Completed || e.Usage.Source != sluice.UsageReported || string(e.Request) != r.header.Get("Sluice-Request-Id") {
			t.Errorf("the entry is %v %q with %+v", e.Outcome, e.Reason, e.Usage)
		}
	})
	t.Run("at any moment", func(t *testing.T) {
		p := serve(t)
		g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
		rnd := rand.New(rand.NewPCG(4, 4))
		told := map[string]bool{}
		for range size(t, "SLUICE_FAULTS_KILLS", 3) {
			g.spawn("")
			g.load(8, time.Duration(rnd.IntN(400))*time.Millisecond, told)
		}
		g.spawn("")
		g.quiet()
		b := g.books()
		for id := range told {
			if e, ok := b.final(id); !ok || e.Outcome != sluice.Completed {
				t.Errorf("%s was answered whole, and the ledger says %v", id, e.Outcome)
			}
		}
		entries := 0
		for _, es := range b {
			entries += len(es)
			if es[0].Outcome == sluice.Expired {
				wantLost(t, es[0])
			}
		}
		if served := p.Account(fakellm.Filter{Limit: 1}).Total.Requests; int64(entries) < served {
			t.Errorf("the provider served %d requests, the ledger has %d entries", served, entries)
		}
		t.Logf("%d requests answered whole, %d entries", len(told), entries)
	})
}

// load runs clients until the process is killed after a while; the ids of those
// that had their whole answer are told.
func (g *gateway) load(clients int, kill time.Duration, told map[string]bool) {
	g.t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range clients {
		wg.Go(func() {
			for {
				r := g.do(ask{tenant: []string{hard, soft}[i%2], tokens: 5, whole: i%3 == 0})
				if r.err != nil || r.status != 200 {
					return
				}
				mu.Lock()
				told[r.header.Get("Sluice-Request-Id")] = true
				mu.Unlock()
			}
		})
	}
	time.AfterFunc(kill, g.proc.kill)
	wg.Wait()
	<-g.proc.done
	g.client.CloseIdleConnections()
}

// appended is one entry of the process that is killed.
func appended(n int) ledger.Entry {
	return ledger.Entry{
		Request: sluice.RequestID(fmt.Sprintf("req_%08d", n)), Attempt: 1, At: time.Date(2026, 11, 15, n%24, 0, 0, 0, time.UTC),
		Tenant: sluice.TenantID(fmt.Sprint("t", n%5)), Model: "m", Final: true, Status: 200,
		Usage: sluice.Usage{Input: 10, Output: 20, Source: sluice.UsageReported}, Cost: 50, CostHigh: 50,
		Detail: []byte(`{"filler":"` + strings.Repeat("x", 400) + `"}`), // so that the log of the database is checkpointed often
	}
}

const appendBatch = 50

func appendForEver(path string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, "sqlite:"+path, store.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	batch := make([]ledger.Entry, appendBatch)
	for n := 0; ; n++ {
		for i := range batch {
			batch[i] = appended(n*appendBatch + i)
		}
		if err := db.Append(ctx, batch); err != nil {
			return err
		}
		fmt.Println("committed", n)
	}
}

// Killed during a commit, a checkpoint or a migration, the store opens again,
// whole: what was committed is there, the rest is not.
func TestFault_P5_KilledDuringACommit(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 5))
	for range size(t, "SLUICE_FAULTS_KILLS", 3) {
		path := filepath.Join(t.TempDir(), "sluice.db")
		cmd := command(roleAppender, path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		cmd.Stderr = os.Stderr
		must(t, cmd.Start())
		lines, committed, after := bufio.NewScanner(out), -1, 5+rnd.IntN(20)
		for lines.Scan() {
			if _, err := fmt.Sscanf(lines.Text(), "committed %d", &committed); err == nil && committed == after {
				pause := time.Duration(rnd.IntN(3000)) * time.Microsecond
				time.AfterFunc(pause, func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait() // it was killed
		if committed < after {
			t.Fatalf("it ended by itself after batch %d", committed)
		}
		db, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
		must(t, err)
		audit, err := db.Verify(t.Context())
		must(t, err, db.Close())
		want := int64(committed+1) * appendBatch
		if !audit.OK() || audit.Entries != want && audit.Entries != want+appendBatch {
			t.Errorf("%d entries, want %d or one batch more; %q", audit.Entries, want, audit.Differences)
		}
		raw, err := sql.Open("sqlite", path)
		must(t, err)
		var check string
		must(t, raw.QueryRow("PRAGMA integrity_check").Scan(&check), raw.Close())
		if check != "ok" {
			t.Errorf("integrity_check says %s", check)
		}
	}
}

func TestFault_P5_KilledDuringAMigration(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "sluice.db")
	began := time.Now()
	must(t, command(roleMigrator, path).Run())
	whole := time.Since(began)
	killed := 0
	for range 2 * size(t, "SLUICE_FAULTS_KILLS", 3) {
		path := filepath.Join(t.TempDir(), "sluice.db")
		cmd := command(roleMigrator, path)
		must(t, cmd.Start())
		time.AfterFunc(whole/4+time.Duration(rnd.Int64N(int64(whole))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		db, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
		must(t, err)
		must(t, db.Append(t.Context(), []ledger.Entry{appended(1)}))
		audit, err := db.Verify(t.Context())
		must(t, err, db.Close())
		if !audit.OK() || audit.Entries != 1 {
			t.Errorf("%d entries; %q", audit.Entries, audit.Differences)
		}
	}
	t.Logf("%d were killed within %v", killed, whole)
}

// A database that another process has locked delays the ledger and nothing else:
// the journal has what it does not.
func TestFault_P6_DatabaseLocked(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := start(t, layout{backends: []backend{{name: "a", url: p.url}}})
	if r := g.do(ask{tenant: hard}); !r.whole() {
		t.Fatalf("got %v", &r)
	}
	g.quiet()
	unlock := g.lock()
	locked := time.Now()
	hold := time.Duration(size(t, "SLUICE_FAULTS_LOCK", 10)) * time.Second
	var asked int
	alarmed := time.Duration(0)
	for tick := time.NewTicker(20 * time.Millisecond); time.Since(locked) < hold; <-tick.C {
		for _, tenant := range []string{hard, soft} {
			if r := g.do(ask{tenant: tenant}); !r.whole() || r.took > 5*time.Second {
				t.Fatalf("a request of tenant %s while the store is locked got %v", tenant, &r)
			}
			asked++
		}
		if alarmed == 0 && g.status().State == "degraded" {
			alarmed = time.Since(locked)
		}
	}
	if alarmed == 0 || alarmed > 5*time.Second {
		t.Errorf("the status tells of it after %v", alarmed)
	}
	if g.ready() != 200 {
		t.Error("not ready, though every request is served")
	}
	unlock()
	released := time.Now()
	g.quiet()
	if took := time.Since(released); took > 5*time.Second {
		t.Errorf("drained %v after the lock was gone", took)
	}
	eventually(t, "the status is ready again", func() bool { return g.status().State == "ready" })
	if b := g.books(); len(b) != asked+1 {
		t.Errorf("the ledger has %d requests, want %d", len(b), asked+1)
	}
}

// A damaged database is refused with the command that mends it, and not touched.
func TestFault_P9_DamagedDatabase(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
	db := filepath.Join(g.data, "sluice.db")
	must(t, os.MkdirAll(g.data, 0o700))
	s, err := store.Open(t.Context(), "sqlite:"+db, store.Options{})
	must(t, err)
	entries := make([]ledger.Entry, 500)
	for i := range entries {
		entries[i] = appended(i)
	}
	must(t, s.Append(t.Context(), entries), s.Close())
	f, err := os.OpenFile(db, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("\xff", 4096)), 8*4096)
	must(t, err, f.Close())
	before := sum(t, db)
	if code := g.run("", "serve", "--config", g.file).exit(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{
		"the database " + db + " is damaged", "Nothing was changed",
		fmt.Sprintf("rm -f %[1]s-wal %[1]s-shm && cp BACKUP %[1]s", db),
		fmt.Sprintf("mkdir %[1]s.damaged && mv %[1]s %[1]s-* %[1]s.damaged/", db),
	} {
		if !g.said(0, want) {
			t.Errorf("it did not say %q: %s", want, g.log)
		}
	}
	if sum(t, db) != before {
		t.Error("the damaged database was changed")
	}
}

// A log of the database that was cut short is no damage to SQLite: it opens at
// the last commit that is whole. The journal's damage is refused with its command.
func TestFault_P9_CutLog(t *testing.T) {
	t.Parallel()
	t.Run("of the database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sluice.db")
		cmd := command(roleAppender, path)
		out, err := cmd.StdoutPipe()
		must(t, err, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan() && n < 6; n++ {
		}
		must(t, cmd.Process.Kill())
		for lines.Scan() {
		}
		_ = cmd.Wait() // it was killed
		info, err := os.Stat(path + "-wal")
		must(t, err)
		must(t, os.Truncate(path+"-wal", info.Size()-info.Size()/3))
		db, err := store.Open(t.Context(), "sqlite:"+path, store.Options{})
		must(t, err)
		audit, err := db.Verify(t.Context())
		must(t, err, db.Close())
		if !audit.OK() || audit.Entries%appendBatch != 0 {
			t.Errorf("%d entries; %q", audit.Entries, audit.Differences)
		}
	})
	t.Run("of the journal", func(t *testing.T) {
		p := serve(t)
		g := start(t, layout{backends: []backend{{name: "a", url: p.url}}})
		for range 20 {
			g.do(ask{})
		}
		g.end()
		segment := filepath.Join(g.data, "journal", "journal-0000000001.log")
		b, err := os.ReadFile(segment)
		must(t, err)
		b[len(b)/2] ^= 0xff
		must(t, os.WriteFile(segment, b, 0o600))
		if code := g.run("", "serve", "--config", g.file).exit(); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		if !g.said(0, "truncate -s ") || !g.said(0, segment) || sum(t, segment) == [32]byte{} {
			t.Errorf("it did not say what to do: %s", g.log)
		}
		if after, err := os.ReadFile(segment); err != nil || string(after) != string(b) {
			t.Errorf("the damaged segment was changed: %v", err)
		}
	})
}

// A store that has lost what it had taken, since its log was cut or it is that of a
// backup, has it again from the journal, and the loss is told.
func TestFault_P9_StoreThatWentBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, g *gateway, db string){
		"log cut": func(t *testing.T, _ *gateway, db string) {
			info, err := os.Stat(db + "-wal")
			must(t, err)
			must(t, os.Truncate(db+"-wal", info.Size()*9/10))
		},
		"backup": func(t *testing.T, g *gateway, db string) {
			must(t, os.Remove(db+"-wal"), os.Remove(db+"-shm"))
			b, err := os.ReadFile(db + ".backup")
			must(t, err)
			must(t, os.WriteFile(db, b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t)
			g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
			db := filepath.Join(g.data, "sluice.db")
			g.spawn("")
			g.do(ask{})
			g.quiet()
			g.proc.signal(syscall.SIGTERM)
			g.proc.exit()
			b, err := os.ReadFile(db)
			must(t, err)
			must(t, os.WriteFile(db+".backup", b, 0o600))
			g.spawn("")
			const asked = 20
			for range asked {
				if r := g.do(ask{tenant: hard}); !r.whole() {
					t.Fatalf("got %v", &r)
				}
				g.quiet() // a commit for each
			}
			g.proc.kill()
			lose(t, g, db)
			mark := len(g.log.String())
			g.spawn("")
			g.quiet()
			if !g.said(mark, "the store has lost entries") {
				t.Errorf("it was not told: %s", g.log.String()[mark:])
			}
			if b := g.books(); len(b) != asked+1 {
				t.Errorf("the ledger has %d requests, want %d", len(b), asked+1)
			}
		})
	}
}

// Two gateways on one directory would each believe that its counters are whole.
func TestFault_P10_TwoGatewaysOnOneDirectory(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}})
	g.spawn("")
	mark := len(g.log.String())
	if code := g.run("", "serve", "--config", g.file).exit(); code != 5 {
		t.Errorf("the second exits with %d, want 5", code)
	}
	for _, want := range []string{
		"in use by another process", fmt.Sprintf("process %d holds", g.proc.cmd.Process.Pid), g.data, "hint: ",
	} {
		if !g.said(mark, want) {
			t.Errorf("it did not say %q: %s", want, g.log.String()[mark:])
		}
	}
	if r := g.do(ask{}); !r.whole() {
		t.Errorf("the first one answers %v", &r)
	}
	// Another journal with the same store: the store's own lock.
	other := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}, top: "store: \"sqlite:" + filepath.Join(g.data, "sluice.db") + "\""})
	if code := other.run("", "serve", "--config", other.file).exit(); code != 5 {
		t.Errorf("one with the same store exits with %d, want 5", code)
	}
	if !other.said(0, "sluice.db.lock") {
		t.Errorf("it did not say why: %s", other.log)
	}
}
