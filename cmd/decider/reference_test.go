package main

import (
	"flag"
	"testing"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/decider.md")

// TestReferenceFlags holds docs/reference/decider.md.
func TestReferenceFlags(t *testing.T) {
	testkit.Page(t, *update, "../../docs/reference/decider.md", testkit.Flags(t, "decider", command, "keys add"))
}
