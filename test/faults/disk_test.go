package faults

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice"
	"sluice/internal/app"
	"sluice/internal/ledger"
)

// disk is what the journal's files are on: a full disk, or a broken one.
type disk struct {
	mu   sync.Mutex
	err  error // of every write; nil for none
	sync error // of every fsync
	left int   // bytes that are free in spite of err once the ballast is gone
}

func (d *disk) set(f func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *disk) open(path string, flag int) (ledger.File, error) {
	f, err := ledger.OpenFile(path, flag)
	if err != nil {
		return nil, err
	}
	return &diskFile{f, d, filepath.Join(filepath.Dir(path), "ballast")}, nil
}

type diskFile struct {
	ledger.File
	d       *disk
	ballast string
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.err != nil {
		if _, err := os.Stat(f.ballast); err == nil || f.d.left < len(p) {
			return 0, f.d.err
		}
		f.d.left -= len(p)
	}
	return f.File.WriteAt(p, off)
}

func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.sync != nil {
		return f.d.sync
	}
	return f.File.Sync()
}

// A full disk, and one that takes no writes or does not sync: hard spend is
// refused with a reason and a time, soft spend is served, streams in flight
// finish, and all is in the ledger once the disk is well, without a restart.
func TestFault_P7_DiskFull(t *testing.T) {
	t.Parallel()
	sickDisk(t, func(d *disk) { d.err, d.left = syscall.ENOSPC, 1<<20 })
}

func TestFault_P7_DiskFullBeyondTheBallast(t *testing.T) {
	t.Parallel()
	sickDisk(t, func(d *disk) { d.err = syscall.ENOSPC })
}

func TestFault_P8_ReadOnlyDisk(t *testing.T) {
	t.Parallel()
	sickDisk(t, func(d *disk) { d.err = syscall.EROFS })
}

func TestFault_P8_DiskThatDoesNotSync(t *testing.T) {
	t.Parallel()
	sickDisk(t, func(d *disk) { d.sync = syscall.EIO })
}

func sickDisk(t *testing.T, fall func(*disk)) {
	p := serve(t)
	d := &disk{}
	g := start(t, layout{backends: []backend{{name: "a", url: p.url}}, options: func(o *app.Options) { o.OpenFile = d.open }})
	slow := ask{tokens: 30, faults: "gap=50ms"}
	inFlight := map[string]*stream{}
	for _, tenant := range []string{hard, soft} {
		slow.tenant = tenant
		inFlight[tenant] = g.open(slow)
	}
	d.set(fall)
	var ids []string
	eventually(t, "hard spend is refused", func() bool {
		r := g.do(ask{tenant: hard})
		if r.whole() { // the failure is not known yet: a group's fsync comes after it
			ids = append(ids, r.header.Get("Sluice-Request-Id"))
			return false
		}
		after, err := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != 503 || r.header.Get("Sluice-Reason") != sluice.LedgerBusy.String() || err != nil || after < 1 {
			t.Errorf("got %v, Retry-After %q", &r, r.header.Get("Retry-After"))
		}
		return true
	})
	for range 3 {
		r := g.do(ask{tenant: soft})
		if !r.whole() {
			t.Errorf("soft spend got %v", &r)
		}
		ids = append(ids, r.header.Get("Sluice-Request-Id"))
	}
	for tenant, s := range inFlight {
		r := s.result(t)
		if !r.whole() {
			t.Errorf("a stream of tenant %s ended %v", tenant, &r)
		}
		ids = append(ids, r.header.Get("Sluice-Request-Id"))
	}
	if s := g.status(); s.State != "degraded" || s.Journal.Error == "" || g.ready() != 200 {
		t.Errorf("the status is %s, journal %+v, readiness %d", s.State, s.Journal, g.ready())
	}
	d.set(func(d *disk) { d.err, d.sync = nil, nil })
	well := time.Now()
	eventually(t, "hard spend is served again", func() bool {
		r := g.do(ask{tenant: hard})
		if r.whole() {
			ids = append(ids, r.header.Get("Sluice-Request-Id"))
		}
		return r.whole()
	})
	if took := time.Since(well); took > 10*time.Second {
		t.Errorf("hard spend was served again after %v", took)
	}
	g.quiet()
	b := g.books()
	for _, id := range ids {
		if e, ok := b.final(id); !ok || e.Outcome != sluice.Completed || e.Usage.Source != sluice.UsageReported {
			t.Errorf("%s is %v %q in the ledger", id, e.Outcome, e.Reason)
		}
	}
	for id, es := range b {
		if e := es[0]; e.Outcome == sluice.Failed && (e.Reason != sluice.LedgerBusy || e.Cost != 0) {
			t.Errorf("%s, which was refused, is %q at %v", id, e.Reason, e.Cost)
		}
	}
}

// A directory in which nothing can be made ends the start with the reason.
func TestFault_P8_NoPlaceForTheJournal(t *testing.T) {
	t.Parallel()
	p := serve(t)
	g := prepare(t, layout{backends: []backend{{name: "a", url: p.url}}, options: func(o *app.Options) {
		o.OpenFile = func(string, int) (ledger.File, error) { return nil, syscall.EROFS }
	}})
	o := app.Options{ConfigPath: g.file, Stderr: g.log, Getenv: func(name string) (string, bool) { v, ok := g.env[name]; return v, ok }}
	g.options(&o)
	if _, err := app.New(t.Context(), o); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "open journal") {
		t.Errorf("got %v", err)
	}
}
