package ledger

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

// windowBytes is how much of a file is set aside on the disk, and mapped, at a time.
const windowBytes = 1 << 20

// window is a mapping of where a file grows. What is stored in it is in the kernel, as
// after write(2), and takes a third of that's time: no system call, no bookkeeping of
// the file system for each record. The space is set aside first, so that a full disk is
// told of then, and not by a page that cannot be had.
//
// While there is a window the file is longer than what was written to it, by zeros.
// Truncate and Close cut them off; if the process dies they stay, and are a torn end.
type window struct {
	mu   sync.Mutex // guards all
	view []byte     // nil while there is none
	off  int64      // where in the file it begins
	end  int64      // of what was written to the file; known once there was a window
	not  bool       // the file system sets nothing aside
}

// WriteAt writes through the window where the file grows, and as any file elsewhere.
// What is written to the very beginning is: a file that is made and has nothing but its
// header is as long as that.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	w := &f.window
	w.mu.Lock()
	defer w.mu.Unlock()
	if off > 0 && (w.covers(p, off) || w.move(f.File, p, off)) {
		n, err = store(w.view[off-w.off:], p)
	} else {
		n, err = f.File.WriteAt(p, off)
	}
	if w.end > 0 {
		w.end = max(w.end, off+int64(n))
	}
	return n, err
}

func (w *window) covers(p []byte, off int64) bool {
	return off >= w.off && off+int64(len(p)) <= w.off+int64(len(w.view))
}

// move puts the window to where the file grows, if p is to go there.
func (w *window) move(f *os.File, p []byte, off int64) bool {
	if w.not || len(p) > windowBytes/2 || off < w.end {
		return false
	}
	if w.end == 0 {
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || off < info.Size() {
			return false
		}
	}
	if w.unmap() != nil {
		return false
	}
	start := off &^ int64(os.Getpagesize()-1)
	if err := unix.Fallocate(int(f.Fd()), 0, start, windowBytes); err != nil {
		w.not = !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINTR)
		_ = f.Truncate(off) // nothing was there
		return false
	}
	view, err := unix.Mmap(int(f.Fd()), start, windowBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	w.end = off // there is more of it from now on
	if err != nil {
		w.not = true
		return false
	}
	w.view, w.off = view, start
	return true
}

func (w *window) unmap() error {
	if w.view == nil {
		return nil
	}
	err := unix.Munmap(w.view)
	w.view, w.off = nil, 0
	return os.NewSyscallError("munmap", err)
}

// store copies p into a mapping. A page that the disk cannot read or take is a fault,
// which is an error here and not the end of the process.
func store(view, p []byte) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("write a mapped page: %v", r)
		}
	}()
	return copy(view, p), nil
}

// Truncate ends the window too.
func (f *file) Truncate(size int64) error {
	f.window.mu.Lock()
	defer f.window.mu.Unlock()
	if err := errors.Join(f.window.unmap(), f.File.Truncate(size)); err != nil {
		return err
	}
	f.window.end = 0
	return nil
}

// close cuts off what was set aside and not used.
func (w *window) close(f *os.File) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.unmap()
	if w.end > 0 {
		err = errors.Join(err, f.Truncate(w.end))
	}
	return err
}
