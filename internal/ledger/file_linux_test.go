package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFsyncIsSubmitted syncs a file many times in the kernel, and is told of one that
// cannot be.
func TestFsyncIsSubmitted(t *testing.T) {
	before := descriptors(t)
	opened, err := OpenFile(filepath.Join(t.TempDir(), "segment"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	f := opened.(*file)
	for i := range 20 {
		if _, err := f.WriteAt([]byte("record"), int64(6*i)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if f.plain {
		t.Error("the kernel took none: they were called")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := descriptors(t); got != before {
		t.Errorf("%d descriptors are open, want %d", got, before)
	}
	if err := f.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Sync of a closed file: %v, want that it is closed", err)
	}
}

// TestFsyncIsCalled where the kernel takes none to run by itself, and its error told.
func TestFsyncIsCalled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := newFile(w).(*file)
	for range 2 {
		if err := f.Sync(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Sync of a pipe: %v, want %v", err, syscall.EINVAL)
		}
	}
	if !f.plain {
		t.Error("it was submitted")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// A file that grows is written through a window, and is as long as that once it is
// closed; what else is written to it is written as to any file.
func TestWindow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	var want []byte
	write := func(f *file, p []byte, off int64) {
		t.Helper()
		if n, err := f.WriteAt(p, off); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
		want = append(want, make([]byte, max(0, int(off)+len(p)-len(want)))...)
		copy(want[off:], p)
	}
	whole := func() {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(got, want) || len(bytes.Trim(got[len(want):], "\x00")) > 0 {
			t.Errorf("the file has not what was written to it: %d bytes, want %d, %v", len(got), len(want), err)
		}
	}
	f := opened(t, path)
	write(f, []byte("header"), 0)
	if size := sizeOf(t, path); size != 6 {
		t.Errorf("%d bytes with a header alone", size)
	}
	record := bytes.Repeat([]byte("a record of some length;"), 3000)
	for range 3 * windowBytes / len(record) {
		write(f, record, int64(len(want)))
		whole()
	}
	if f.window.view == nil {
		t.Error("it has no window")
	}
	write(f, []byte("again"), 70)
	write(f, bytes.Repeat(record, 20), int64(len(want))) // more than a window
	write(f, record, int64(len(want)))
	whole()
	want = want[:len(want)-1000]
	if err := f.Truncate(int64(len(want))); err != nil || sizeOf(t, path) != int64(len(want)) {
		t.Error(err, sizeOf(t, path), len(want))
	}
	write(f, record, int64(len(want)))
	whole()
	if err := f.Close(); err != nil || sizeOf(t, path) != int64(len(want)) {
		t.Error(err, sizeOf(t, path), len(want))
	}
	f = opened(t, path) // what is there is not cut off
	write(f, []byte("once more"), 7000)
	if err := f.Close(); err != nil || sizeOf(t, path) != int64(len(want)) {
		t.Error(err, sizeOf(t, path), len(want))
	}
	whole()
}

// A page that cannot be had is an error, not the end of the process, and the next write
// goes on where there is a disk again.
func TestWindowFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	f := opened(t, path)
	defer f.Close()
	record := bytes.Repeat([]byte("record"), 1000)
	for i := range 3 {
		if _, err := f.WriteAt(record, 10+int64(i*len(record))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, 10); err != nil { // the pages behind its end are none
		t.Fatal(err)
	}
	if n, err := f.WriteAt(record, 10+3*int64(len(record))); err == nil || n != 0 {
		t.Fatalf("wrote %d bytes of a page that is none", n)
	}
	if err := f.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(record, 10); err != nil || n != len(record) {
		t.Error(n, err)
	}
	if err := f.Close(); err != nil || sizeOf(t, path) != 10+int64(len(record)) {
		t.Error(err, sizeOf(t, path))
	}
}

func opened(t *testing.T, path string) *file {
	t.Helper()
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	return f.(*file)
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
