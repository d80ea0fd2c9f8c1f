// Package lease says which process does which part of the work, so that each part has a process, and mostly one only.
//
// A lease gives liveness, not safety: a process that was paused may go on with a lease that another one has by now.
// What it writes then is rejected by the fence of the log ([stream.Log.Open]).
//
// Leases lie in a [Store], which drops an entry that was not renewed for its TTL. A
// [Keeper] renews those of one process and says when one is lost.
package lease

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrTaken reports an entry that another process made or changed.
	ErrTaken = errors.New("taken")
	// ErrNone reports an entry that is not there.
	ErrNone = errors.New("not there")
	// ErrLost reports a lease that is held no longer.
	ErrLost = errors.New("lease lost")
)

// Entry is a value of a store.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // grows with each change in the store
}

// Store is a small table in which entries expire. It is safe for concurrent use.
// Errors other than ErrTaken and ErrNone say that the store cannot be asked now.
type Store interface {
	// TTL is how long an entry lives after its last change, by the store's clock. A [Keeper] that sees one unchanged
	// for longer takes it for gone, and may [Store.Update] it.
	TTL() time.Duration
	// Create makes an entry that is not there, or fails with ErrTaken.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes an entry that has the revision, or fails with ErrTaken.
	Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error)
	// Delete removes an entry that has the revision, or fails with ErrTaken.
	Delete(ctx context.Context, key string, revision uint64) error
	// Get returns an entry, or ErrNone.
	Get(ctx context.Context, key string) (Entry, error)
	// List returns all entries, in any order.
	List(ctx context.Context) ([]Entry, error)
}
