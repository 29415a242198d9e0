package app

import "syscall"

// What a process needs descriptors for beside clients: store, journal, listeners,
// operators, and the connections to backends that wait for their next request.
const (
	reservedFiles = 96
	fewestClients = 16
)

// connections is how many clients may be connected at a time, so that descriptors
// are left when they all are (P13): each takes one, another to its backend, and a
// third where the fleet is simulated in this process.
func connections(simulated bool) int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	each := uint64(2)
	if simulated {
		each = 3
	}
	most := min(l.Cur, 1<<30)
	if most <= reservedFiles+fewestClients*each {
		return fewestClients
	}
	return int((most - reservedFiles) / each)
}
