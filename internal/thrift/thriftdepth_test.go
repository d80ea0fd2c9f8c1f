package thrift

import (
	"errors"
	"strings"
	"testing"
)

// TestThriftDepth: however deep a footer nests structs, lists or maps, it is refused before the
// stack has grown with it.
func TestThriftDepth(t *testing.T) {
	for what, metadata := range map[string]string{
		"structs": strings.Repeat("\x1c", 100_000),              // field 1: a struct
		"lists":   strings.Repeat("\x19", 100_000),              // field 1: a list of one list
		"maps":    "\x1b" + strings.Repeat("\x01\xbb", 100_000), // field 1: a map of one map to a map
	} {
		if n, err := checkThrift([]byte(metadata)); !errors.Is(err, errThrift) || n > 3*64 {
			t.Errorf("%s: %v after %d bytes", what, err, n)
		}
	}
}
