package main

import (
	"flag"
	"testing"

	"hindsight/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/feedback-joiner.md")

// TestReferenceFlags holds docs/reference/feedback-joiner.md.
func TestReferenceFlags(t *testing.T) {
	testkit.Page(t, *update, "../../docs/reference/feedback-joiner.md", testkit.Flags(t, "feedback-joiner", command))
}
