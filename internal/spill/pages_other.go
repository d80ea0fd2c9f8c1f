//go:build !linux

package spill

import (
	"errors"
	"os"
)

// mapPages maps no file here: what it would hold is on the heap.
func mapPages(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapPages([]byte) {}

func dropPages([]byte) {}
