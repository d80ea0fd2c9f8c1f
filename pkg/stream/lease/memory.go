package lease

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Memory is a [Store] inside a process, for tests.
type Memory struct {
	ttl time.Duration

	mu      sync.Mutex
	last    uint64
	entries map[string]memoryEntry
	fail    error
}

type memoryEntry struct {
	Entry
	at time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(ttl time.Duration) *Memory {
	return &Memory{ttl: ttl, entries: map[string]memoryEntry{}}
}

// Fail makes the store fail from now on, nil: no more.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// TTL implements [Store].
func (m *Memory) TTL() time.Duration { return m.ttl }

// get returns an entry that has not expired. mu is held.
func (m *Memory) get(key string) (Entry, bool) {
	e, ok := m.entries[key]
	if ok && time.Since(e.at) >= m.ttl {
		delete(m.entries, key)
		return Entry{}, false
	}
	return e.Entry, ok
}

func (m *Memory) put(key string, value []byte) uint64 {
	m.last++
	m.entries[key] = memoryEntry{Entry{Key: key, Value: bytes.Clone(value), Revision: m.last}, time.Now()}
	return m.last
}

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return 0, m.fail
	}
	if _, ok := m.get(key); ok {
		return 0, ErrTaken
	}
	return m.put(key, value), nil
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return 0, m.fail
	}
	if e, ok := m.get(key); !ok || e.Revision != revision {
		return 0, ErrTaken
	}
	return m.put(key, value), nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	if e, ok := m.get(key); !ok || e.Revision != revision {
		return ErrTaken
	}
	delete(m.entries, key)
	return nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return Entry{}, m.fail
	}
	e, ok := m.get(key)
	if !ok {
		return Entry{}, ErrNone
	}
	return e, nil
}

// List implements [Store].
func (m *Memory) List(ctx context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	var all []Entry
	for key := range m.entries {
		if e, ok := m.get(key); ok {
			all = append(all, e)
		}
	}
	return all, nil
}
