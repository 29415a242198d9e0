//go:build !linux

package front

import (
	"errors"
	"net"
)

// watch is not had on this system: connections are read from beside their handler.
type watch struct{}

func descriptor(net.Conn) (int, bool) { return 0, false }

func newWatch() (*watch, error) { return nil, errors.ErrUnsupported }

func (*watch) add(int, *conn) uint64 { return 0 }

func (*watch) remove(*conn) {}

func (*watch) close() {}
