package main

import (
	"strings"
	"testing"

	"hindsight/internal/testkit"
)

// TestReferenceFlags holds docs/reference/replayer.md.
func TestReferenceFlags(t *testing.T) {
	verbs := strings.Fields("backtest convert explain fit inject list move paper tail teach verify window worst")
	testkit.Page(t, *updateGolden, "../../docs/reference/replayer.md",
		testkit.Flags(t, "replayer", command, verbs...))
}
