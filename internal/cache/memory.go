package cache

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store in the process: it is gone with it.
type Memory struct {
	mu    sync.Mutex
	shelf *shelf // guarded by mu
}

var _ Store = (*Memory)(nil)

// NewMemory makes one.
func NewMemory(b Bounds) *Memory { return &Memory{shelf: newShelf(b)} }

// Get implements Store.
func (m *Memory) Get(_ context.Context, scope string, k Key) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, _ := m.shelf.find(time.Now(), scope, k)
	if b == nil {
		return nil, false
	}
	return b.value, true
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, i Item) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &book{key: i.Key, scope: i.Scope, size: int64(len(i.Value)) + overhead, expires: i.Expires, value: i.Value}
	if !m.shelf.fits(b.size) {
		return false
	}
	m.shelf.add(b, i.Owner.String())
	return true
}

// Drop implements Store.
func (m *Memory) Drop(_ context.Context, scope string, k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, _ := m.shelf.find(time.Now(), scope, k); b != nil {
		m.shelf.remove(b)
	}
}

// Purge implements Store.
func (m *Memory) Purge(_ context.Context, scope string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.shelf.purge(scope)), nil
}

// Levels implements Store.
func (m *Memory) Levels(context.Context) ([]Level, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shelf.levels(), nil
}

// Close implements Store.
func (m *Memory) Close() error { return nil }
