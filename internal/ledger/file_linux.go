package ledger

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// file is a File whose fsync runs in the kernel while no system call waits for it.
//
// That a call takes long Go's scheduler learns from its monitor, which then looks
// around every 20 µs for a while. The milliseconds of an fsync, a hundred times a
// second, keep it awake, and each time one of the processors stands still until it is
// taken away. So the fsync is submitted, see io_submit(2), and its end is waited for
// in the runtime's poller, as for a socket. Where the kernel takes none it is called.
type file struct {
	*os.File

	mu     sync.Mutex // held for an fsync
	plain  bool       // the kernel takes none
	ring   uintptr    // what fsyncs are submitted to; 0 before the first
	done   *os.File   // can be read when one has ended
	doneFD int

	window window
}

// submission is struct iocb of linux/aio_abi.h.
type submission struct {
	_        uint64
	_        [2]uint32
	opcode   uint16
	_        int16
	fd       uint32
	_        [2]uint64
	_        int64
	_        uint64
	flags    uint32
	toldByFD uint32
}

// completion is its struct io_event.
type completion struct {
	_      [2]uint64
	result int64
	_      int64
}

const (
	opFsync      = 2 // IOCB_CMD_FSYNC
	flagToldByFD = 1 // IOCB_FLAG_RESFD
)

func newFile(f *os.File) File { return &file{File: f} }

// Sync is fsync(2).
func (f *file) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.plain {
		err := f.submit()
		if err == nil {
			return f.wait()
		}
		f.plain = !errors.Is(err, os.ErrClosed)
	}
	return f.File.Sync()
}

// submit begins an fsync. On an error none has begun.
func (f *file) submit() error {
	if err := f.open(); err != nil {
		return err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = conn.Control(func(fd uintptr) {
		one := [1]*submission{{opcode: opFsync, fd: uint32(fd), flags: flagToldByFD, toldByFD: uint32(f.doneFD)}}
		_, _, errno = syscall.Syscall(unix.SYS_IO_SUBMIT, f.ring, 1, uintptr(unsafe.Pointer(&one)))
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// wait waits for the fsync that was submitted.
func (f *file) wait() error {
	var count [8]byte
	_, _ = f.done.Read(count[:]) // if it fails, the next call is what waits
	var c completion
	for {
		n, _, errno := syscall.Syscall6(unix.SYS_IO_GETEVENTS, f.ring, 1, 1, uintptr(unsafe.Pointer(&c)), 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return os.NewSyscallError("io_getevents", errno)
		case n != 1:
			return os.NewSyscallError("io_getevents", io.ErrNoProgress)
		case c.result < 0:
			return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.Errno(-c.result)}
		default:
			return nil
		}
	}
}

// open makes what fsyncs are submitted to, once.
func (f *file) open() error {
	if f.ring != 0 {
		return nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&f.ring)), 0); errno != 0 {
		return errors.Join(errno, unix.Close(fd))
	}
	f.doneFD, f.done = fd, os.NewFile(uintptr(fd), "eventfd")
	return nil
}

// Close closes the file.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.ring != 0 {
		if _, _, errno := syscall.Syscall(unix.SYS_IO_DESTROY, f.ring, 0, 0); errno != 0 {
			err = os.NewSyscallError("io_destroy", errno)
		}
		err = errors.Join(err, f.done.Close())
		f.ring, f.plain = 0, true
	}
	return errors.Join(err, f.window.close(f.File), f.File.Close())
}
