package service

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets more garbage stand: these tests allocate much, hold little, and took a third longer.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
