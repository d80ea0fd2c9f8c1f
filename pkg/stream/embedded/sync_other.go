//go:build !linux

package embedded

import "errors"

// changes are not known here: the server itself syncs each record.
type changes struct{}

func watch(string) (*changes, error) { return nil, errors.ErrUnsupported }

func (*changes) sync() error  { return nil }
func (*changes) close() error { return nil }
