package front

import (
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// watch is told by the kernel when clients close their side of a connection. It
// waits as connections do, in the runtime's poller, which the poll is put into as a
// file; data that comes on a connection does not wake it.
type watch struct {
	file *os.File
	raw  syscall.RawConn
	fd   int // of file, while it is open
	done chan struct{}

	mu   sync.Mutex
	of   map[uint64]*conn // guarded by mu
	last uint64           // guarded by mu
}

// descriptor is that of a connection.
func descriptor(c net.Conn) (fd int, ok bool) {
	s, is := c.(syscall.Conn)
	if !is {
		return 0, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(p uintptr) { fd, ok = int(p), true })
	return fd, ok && err == nil
}

func newWatch() (*watch, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime polls it
		_ = unix.Close(fd)
		return nil, err
	}
	w := &watch{file: os.NewFile(uintptr(fd), "connections"), fd: fd, done: make(chan struct{}), of: make(map[uint64]*conn)}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		_ = w.file.Close()
		return nil, err
	}
	go w.run()
	return w, nil
}

// add watches a connection from now on, and tells it at once if its client has left
// already. It returns what it knows it by, 0 if it cannot be watched.
func (w *watch) add(fd int, c *conn) uint64 {
	w.mu.Lock()
	w.last++
	id := w.last
	w.of[id] = c
	w.mu.Unlock()
	ev := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff, Fd: int32(id), Pad: int32(id >> 32)}
	if unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, fd, &ev) != nil {
		w.forget(id)
		return 0
	}
	return id
}

// remove ends that. REQUIRES: the connection is open, or about to be forgotten.
func (w *watch) remove(c *conn) {
	w.forget(c.watched)
	c.watched = 0
	if fd, ok := descriptor(c.Conn); ok { // else the kernel has, with the descriptor
		_ = unix.EpollCtl(w.fd, unix.EPOLL_CTL_DEL, fd, &unix.EpollEvent{})
	}
}

func (w *watch) forget(id uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, id)
}

// run tells connections that their clients have left, until close.
func (w *watch) run() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		err := w.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events, 0)
			return n > 0
		})
		if err != nil {
			return
		}
		for _, ev := range events[:n] {
			id := uint64(uint32(ev.Fd)) | uint64(uint32(ev.Pad))<<32
			w.mu.Lock()
			c := w.of[id]
			w.mu.Unlock()
			if c != nil {
				c.leave()
			}
		}
	}
}

// close ends it.
func (w *watch) close() {
	_ = w.file.Close()
	<-w.done
}
