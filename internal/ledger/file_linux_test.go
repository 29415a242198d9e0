package ledger

import (
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
