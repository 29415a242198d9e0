package jwt

import (
	"crypto/sha256"
	"sync"
	"time"

	"sluice/internal/auth"
)

// MaxVerified bounds the tokens that are remembered as verified, about 400 bytes each.
const MaxVerified = 1 << 16

// sum is the SHA-256 of a whole token: what it is remembered by. Only sumOf makes one.
type sum [sha256.Size]byte

// sumOf hashes a token, without copying one of the usual size to the heap.
func sumOf(token string) sum {
	var buf [2048]byte
	return sha256.Sum256(append(buf[:0], token...))
}

// verified is a token that has been verified.
type verified struct {
	bearer auth.Bearer
	source *source
	print  string    // of the key that it was signed with
	until  time.Time // when it expires, leeway included
}

// memory remembers tokens that were verified.
type memory struct {
	size int

	mu    sync.RWMutex
	of    map[sum]*verified // guarded by mu
	order []sum             // guarded by mu; a ring, in order of arrival
	next  int               // guarded by mu; where the next goes
}

func newMemory(size int) memory { return memory{size: size, of: make(map[sum]*verified)} }

func (m *memory) find(s *sum) *verified {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.of[*s]
}

// keep remembers a token; where there is no room the oldest goes.
func (m *memory) keep(s sum, v *verified) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[s] != nil {
		m.of[s] = v
		return
	}
	if len(m.order) < m.size {
		m.order = append(m.order, s)
	} else {
		delete(m.of, m.order[m.next])
		m.order[m.next] = s
		m.next = (m.next + 1) % m.size
	}
	m.of[s] = v
}

// forget drops all: they were mapped by a configuration that is not in force any more.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of, m.order, m.next = make(map[sum]*verified), nil, 0
}
