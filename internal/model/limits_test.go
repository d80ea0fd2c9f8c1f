package model

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

// TestLimitsOfModels holds the limits on a model file under, at and over them.
func TestLimitsOfModels(t *testing.T) {
	sized := func(n int) []byte {
		b := []byte("name: shop\nversion: 1\n#")
		return append(b, strings.Repeat("x", n-len(b))...)
	}
	for _, c := range []struct {
		name  string
		limit int
		says  string
		make  func(n int) []byte
	}{
		{"bytes", MaxBytes, "at most 1048576 are allowed", sized},
		{"name", 40, "expected 1 to 40 of", func(n int) []byte {
			return []byte("version: 1\nname: " + strings.Repeat("a", n))
		}},
		{"max_actions", codec.MaxActions, "10000", func(n int) []byte {
			return fmt.Appendf(nil, "name: shop\nversion: 1\nlearner: uniform\nmax_actions: %d\n", n)
		}},
	} {
		for _, n := range []int{c.limit - 1, c.limit} {
			if _, err := Parse("m", c.make(n)); err != nil {
				t.Errorf("%s: %d of %d: %.200v", c.name, n, c.limit, err)
			}
		}
		if _, err := Parse("m", c.make(c.limit+1)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d of %d: %.200v, want %q", c.name, c.limit+1, c.limit, err, c.says)
		}
	}
}
