package stream

import "context"

// Lister is a log that can say which topics it has.
type Lister interface {
	// Topics returns the names of all topics, in byte order.
	Topics(ctx context.Context) ([]string, error)
}
