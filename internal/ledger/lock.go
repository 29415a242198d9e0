package ledger

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"sluice"
)

// FileLock keeps other processes away from a directory or a file. The kernel
// drops it when the process dies.
type FileLock struct{ f *os.File }

// ErrLocked is wrapped by the error of LockFile, a conflict that names the process,
// when another one has the lock.
var ErrLocked = errors.New("in use by another process")

// LockFile creates path where it is missing and locks it, or fails at once.
func LockFile(path string) (*FileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		owner := make([]byte, 20)
		n, _ := f.ReadAt(owner, 0)
		pid := strings.TrimSpace(string(owner[:n]))
		if pid == "" {
			pid = "unknown"
		}
		return nil, &sluice.Error{
			Kind: sluice.KindConflict, Reason: sluice.InvalidRequest, Msg: fmt.Sprintf("process %s holds %s", pid, path),
			Hint: "stop it, or give this one a data directory and a store of its own", Err: ErrLocked,
		}
	}
	// The process id is a courtesy to whoever reads the message above.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &FileLock{f}, nil
}

// Unlock gives the lock back. The file stays, since deleting it would race with
// the next process.
func (l *FileLock) Unlock() error { return l.f.Close() }
