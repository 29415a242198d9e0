package crash

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/internal/ledger"
)

// The journal's record kinds, as the first byte of a payload has them; see
// internal/ledger. A failpoint names the step of a record's write, or of an fsync.
var recordKinds = map[byte]string{1: "reserve", 2: "dispatch", 3: "checkpoint", 4: "entry", 6: "mark"}

// failpoint is where a process ends itself: at the n-th time of a step. A step is
// before, half or after the write of a record of some kind, or before or after an
// fsync: "entry.half", "sync.before".
type failpoint struct {
	step string
	n    int
}

func (f failpoint) String() string { return fmt.Sprintf("%s:%d", f.step, f.n) }

func parseFailpoint(s string) (f failpoint, err error) {
	step, n, _ := strings.Cut(s, ":")
	f.step = step
	if s != "" {
		f.n, err = strconv.Atoi(n)
	}
	return f, err
}

// disk is the files of a journal, in the process that is to die. It knows what was
// synced of each file, and when, and tells it in a file of its own.
type disk struct {
	point failpoint
	armed atomic.Bool // its steps count
	told  *os.File    // nil to tell nothing
	slow  time.Duration

	mu   sync.Mutex
	seen int // times that its step has come
}

func (d *disk) open(path string, flag int) (ledger.File, error) {
	f, err := ledger.OpenFile(path, flag)
	if err != nil || flag&(os.O_RDWR|os.O_WRONLY) == 0 || filepath.Base(path) == "ballast" {
		return f, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	file := &diskFile{File: f, d: d, name: filepath.Base(path), size: info.Size()}
	if flag&os.O_CREATE != 0 && d.told != nil {
		_, err = d.told.WriteString(synced{file: file.name}.String())
	}
	return file, err
}

// next reports whether a step has come for the last time.
func (d *disk) next(step string) bool {
	if d.point.step != step || !d.armed.Load() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen++
	return d.seen == d.point.n
}

// reach ends the process if it is at its failpoint.
func (d *disk) reach(step string) {
	if d.next(step) {
		die()
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// kindsOf are the records that a write holds.
func kindsOf(frames []byte) (kinds []string) {
	for len(frames) > 8 {
		kinds = append(kinds, recordKinds[frames[8]])
		frames = frames[min(len(frames), 8+int(binary.LittleEndian.Uint32(frames))):]
	}
	return kinds
}

type diskFile struct {
	ledger.File
	d    *disk
	name string

	mu    sync.Mutex
	size  int64
	dirty time.Time // first write since the last fsync began; zero if none
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	kinds := kindsOf(p)
	for _, k := range kinds {
		f.d.reach(k + ".before")
	}
	for _, k := range kinds {
		if f.d.next(k + ".half") {
			_, _ = f.File.WriteAt(p[:len(p)*2/3], off)
			die()
		}
	}
	n, err := f.File.WriteAt(p, off)
	f.mu.Lock()
	f.size = max(f.size, off+int64(n))
	if f.dirty.IsZero() {
		f.dirty = time.Now()
	}
	f.mu.Unlock()
	for _, k := range kinds {
		f.d.reach(k + ".after")
	}
	return n, err
}

func (f *diskFile) Truncate(size int64) error {
	err := f.File.Truncate(size)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.size = size
	}
	return err
}

func (f *diskFile) Sync() error {
	f.d.reach("sync.before")
	began := time.Now() // before the look at what is there: what comes in between is not promised
	f.mu.Lock()
	size, dirty := f.size, f.dirty
	f.dirty = time.Time{}
	f.mu.Unlock()
	time.Sleep(f.d.slow)
	err := f.File.Sync()
	if err == nil && f.d.told != nil {
		s := synced{file: f.name, size: size, began: began, ended: time.Now()}
		if !dirty.IsZero() {
			s.waited = began.Sub(dirty)
		}
		_, err = f.d.told.WriteString(s.String())
	}
	f.d.reach("sync.after")
	return err
}

// synced is one fsync that succeeded, or the creation of a file.
type synced struct {
	file         string
	size         int64 // bytes that are on disk since; 0 when it is created
	began, ended time.Time
	waited       time.Duration // of the first write that it covers
}

func (s synced) String() string {
	return fmt.Sprintf("%s %d %d %d %d\n", s.file, s.size, s.began.UnixNano(), s.ended.UnixNano(), s.waited)
}

// readSynced reads what a process told, oldest first.
func readSynced(path string) (all []synced, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		var s synced
		var began, ended int64
		if _, err := fmt.Sscan(line, &s.file, &s.size, &began, &ended, &s.waited); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.began, s.ended = time.Unix(0, began), time.Unix(0, ended)
		all = append(all, s)
	}
	return all, nil
}
