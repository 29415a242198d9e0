package crash

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/test/gateway"
)

// powerSteps are where the power fails: at the fsync, where the most is unsynced,
// and around the records that matter.
var powerSteps = []failpoint{
	{"sync.before", 30}, {"reserve.after", 40}, {"entry.after", 15}, {"mark.after", 3}, {"checkpoint.after", 5},
}

// TestPowerLoss shows what the fsyncs of the journal are worth. The process dies at
// a step of its journal, and of what it has written since the last fsync that
// succeeded nothing is left, or a part, or zeros in its place.
//
// The kernel may have written any of the pages, in any order.
//
// journal_sync: always promises that no upstream call is missing in the ledger, and
// that a hard budget was charged at least what the provider bills. group can lose
// the calls, and either the settlements, whose records were written after that
// fsync had begun, and nothing older: the next fsync begins within 10 ms of the
// first record that it covers.
func TestPowerLoss(t *testing.T) {
	rounds := size(t, "SLUICE_CRASH_ROUNDS", 10)
	seed := uint64(size(t, "SLUICE_CRASH_SEED", int(time.Now().UnixNano()&0xffff)+1))
	t.Logf("SLUICE_CRASH_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := newCrash(t, seed)
	c.p.trouble()
	loss := &powerLoss{c: c, forgot: map[string]bool{}}
	c.audit.missing, c.audit.unsettled, c.audit.unended = loss.missing, loss.unsettled, loss.unended
	for round := range rounds {
		point := powerSteps[(round+int(seed))%len(powerSteps)]
		if round == 0 {
			point = powerSteps[0] // so that something is lost for sure
		}
		point.n = 1 + rnd.IntN(point.n)
		// Every other disk is slow: while it syncs much is written, and of what was
		// written meanwhile nothing may be taken to be synced.
		slow := time.Duration(round%2) * slowSync
		c.killAtStep(t, point, slow)
		loss.slow = slow > 0
		loss.strike(t, losses[(round+int(seed))%len(losses)], rnd)
		c.g.Start()
		c.audit.check()
		t.Logf("round %d: the power failed at %v, a sync takes %v more; %d bytes were not synced, %s", round+1, point, slow, loss.unsynced, loss.what)
		if t.Failed() {
			t.FailNow()
		}
		c.g.Kill()
	}
	slices.Sort(loss.waits)
	slices.Sort(loss.spans)
	t.Logf("%d power failures with %d streams running: %d upstream calls; always lost none; group lost %d, and %d settlements were lost and charged as lost attempts",
		rounds, streams, c.audit.calls, len(c.audit.forgiven), len(loss.forgot))
	t.Logf("a record waits for the fsync that covers it to begin: half of them %v, at most %v; that takes %v, at most %v",
		middle(loss.waits), loss.waits[len(loss.waits)-1], middle(loss.spans), loss.spans[len(loss.spans)-1])
	if len(c.audit.forgiven)+len(loss.forgot) == 0 {
		t.Error("nothing was lost: the loss of unsynced pages shows nothing")
	}
	// The gathering is 10 ms, to which ledger's own tests hold it in virtual time;
	// the rest is a machine that has other things to do.
	if m := middle(loss.waits); m > time.Second {
		t.Errorf("half of the groups wait more than %v for their fsync", m)
	}
}

// slowSync is what an fsync of a slow disk takes.
const slowSync = 40 * time.Millisecond

// What is left of the bytes that were not synced.
const (
	lostAll    = "of which nothing is left"
	lostEnd    = "of which a part is left"
	lostZeros  = "with zeros in their place"
	lostTorn   = "of which the last part is zeros"
	lostPages  = "of which some pages are left"
	lostRecord = "of which the last byte is another"
)

var losses = []string{lostAll, lostTorn, lostPages, lostRecord, lostEnd, lostZeros}

func middle(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

// headerLen is the length of a segment without records.
const headerLen = 20

// powerLoss takes away what was not synced, and knows what may be missing then.
type powerLoss struct {
	c        *crash
	slow     bool
	unsynced int64
	what     string
	synced   time.Time       // when the last fsync that succeeded began
	forgot   map[string]bool // whole answers whose settlement was lost, by label, and requests whose end was
	waits    []time.Duration
	spans    []time.Duration
}

// strike leaves the journal as a loss of power would.
func (p *powerLoss) strike(t *testing.T, what string, rnd *rand.Rand) {
	t.Helper()
	told, err := readSynced(p.c.synced)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]int64{}
	for _, s := range told {
		kept[s.file] = s.size
		if s.size <= headerLen { // of a segment that is being made: the records are in the one before
			continue
		}
		p.synced = s.began
		if p.slow {
			continue
		}
		p.spans = append(p.spans, s.ended.Sub(s.began))
		if s.waited > 0 {
			p.waits = append(p.waits, s.waited)
		}
	}
	segments, err := filepath.Glob(filepath.Join(p.c.g.Dir, "journal", "journal-*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("no segments: %v", err)
	}
	p.unsynced, p.what = 0, what
	for _, path := range segments {
		at, ok := kept[filepath.Base(path)]
		if !ok { // sealed in another life
			continue
		}
		size := written(t, path)
		p.unsynced += max(0, size-at)
		if err := cut(path, at, size, p.what, rnd); err != nil {
			t.Fatal(err)
		}
	}
}

// written is where what was written to a segment ends: zeros that were set aside follow.
func written(t *testing.T, path string) int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(bytes.TrimRight(text, "\x00")))
}

// cut makes a file of size bytes what is left of it when those from a position on
// did not reach the disk.
func cut(path string, at, size int64, what string, rnd *rand.Rand) error {
	if size <= at {
		return nil
	}
	switch what {
	case lostEnd:
		at += rnd.Int64N(size - at)
	case lostZeros, lostTorn:
		if what == lostTorn {
			at += rnd.Int64N(size - at)
		}
		if err := os.Truncate(path, at); err != nil {
			return err
		}
		return os.Truncate(path, size)
	case lostPages:
		return dropPages(path, at, size, rnd)
	case lostRecord:
		return spoil(path, size-1)
	}
	return os.Truncate(path, at)
}

// spoil changes a byte.
func spoil(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	if _, err = f.ReadAt(b, at); err == nil {
		_, err = f.WriteAt([]byte{^b[0]}, at)
	}
	return errors.Join(err, f.Close())
}

// dropPages puts zeros in the place of some of the pages, from a position on.
func dropPages(path string, at, size int64, rnd *rand.Rand) error {
	const page = 4 << 10
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for from := at; from < size && err == nil; {
		to := min((from/page+1)*page, size)
		if rnd.IntN(2) == 0 {
			_, err = f.WriteAt(make([]byte, to-from), from)
		}
		from = to
	}
	return errors.Join(err, f.Close())
}

// covered reports whether a record that was written by a moment of the last life,
// or of one before it, was synced.
func (p *powerLoss) covered(at time.Time) bool { return at.Before(p.synced) }

// missing: a call is dialled after its record is written, and for a tenant whose
// journal_sync is group before it is synced.
func (p *powerLoss) missing(c *call) bool {
	return strings.HasPrefix(c.user, soft) && (p.c.audit.forgiven[c] || !p.covered(c.at))
}

// unended: the entry of a first attempt may have outlived all else of the request,
// in a page that was written by chance, but not if what was written before the
// first call had been synced.
func (p *powerLoss) unended(e *gateway.Entry) bool {
	ok := p.forgot[e.Request]
	if !ok && e.Tenant == soft {
		calls, _ := p.c.p.settled(p.c.audit.t)
		first := slices.IndexFunc(calls, func(c *call) bool { return c.user == e.User })
		ok = first >= 0 && !p.covered(calls[first].at)
	}
	if ok {
		p.forgot[e.Request] = true
	}
	return ok
}

// unsettled: a client has the end of its answer after the settlement is written,
// and before it is synced.
func (p *powerLoss) unsettled(a answered) bool {
	ok := p.forgot[a.user] || !p.covered(a.at)
	if ok {
		p.forgot[a.user] = true
	}
	return ok
}
