package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test runs f in a bubble, as [synctest.Test] does. Bubbles may run side by side.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if race {
		single.enter()
		defer single.leave()
	}
	synctest.Test(t, f)
}

// single keeps the process to one processor while any bubble is open.
var single processors

// processors counts those who want one processor alone.
type processors struct {
	mu     sync.Mutex
	open   int // those who do
	before int // what the process had before the first of them
}

func (p *processors) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open++; p.open == 1 {
		p.before = runtime.GOMAXPROCS(1)
	}
}

// leave gives the process back what it had, once the last has left.
func (p *processors) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open--; p.open == 0 {
		runtime.GOMAXPROCS(p.before)
	}
}
