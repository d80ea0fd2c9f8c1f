// Package leasetest has a store of leases inside a process.
package leasetest

import (
	"bytes"
	"context"
	"sync"
	"time"

	"hindsight/pkg/stream/lease"
)

// Memory is a [lease.Store] inside a process.
type Memory struct {
	ttl time.Duration

	mu      sync.Mutex
	last    uint64
	entries map[string]memoryEntry
	fail    error
}

type memoryEntry struct {
	lease.Entry
	at time.Time
}

var _ lease.Store = (*Memory)(nil)

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

// TTL implements [lease.Store].
func (m *Memory) TTL() time.Duration { return m.ttl }

// at returns an entry that has not expired. m is locked until unlock.
func (m *Memory) at(key string) (e lease.Entry, there bool, unlock func(), err error) {
	m.mu.Lock()
	got, ok := m.entries[key]
	return got.Entry, ok && time.Since(got.at) < m.ttl, m.mu.Unlock, m.fail
}

// put changes an entry that has a revision, 0: that is not there. No value removes it.
func (m *Memory) put(key string, value []byte, revision uint64) (uint64, error) {
	e, there, unlock, err := m.at(key)
	defer unlock()
	switch {
	case err != nil:
		return 0, err
	case there != (revision != 0), there && e.Revision != revision:
		return 0, lease.ErrTaken
	}
	delete(m.entries, key)
	if value != nil {
		m.last++
		m.entries[key] = memoryEntry{lease.Entry{Key: key, Value: bytes.Clone(value), Revision: m.last}, time.Now()}
	}
	return m.last, nil
}

// Create implements [lease.Store].
func (m *Memory) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return m.put(key, value, 0)
}

// Update implements [lease.Store].
func (m *Memory) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return m.put(key, value, revision)
}

// Delete implements [lease.Store].
func (m *Memory) Delete(ctx context.Context, key string, revision uint64) error {
	_, err := m.put(key, nil, revision)
	return err
}

// Get implements [lease.Store].
func (m *Memory) Get(ctx context.Context, key string) (lease.Entry, error) {
	e, there, unlock, err := m.at(key)
	defer unlock()
	if err == nil && !there {
		err = lease.ErrNone
	}
	if err != nil {
		return lease.Entry{}, err
	}
	return e, nil
}

// List implements [lease.Store].
func (m *Memory) List(ctx context.Context) (all []lease.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if time.Since(e.at) < m.ttl {
			all = append(all, e.Entry)
		}
	}
	return all, m.fail
}
