package main

import (
	"testing"

	"hindsight/internal/daemon/daemontest"
)

func TestNumbersOfFlags(t *testing.T) { daemontest.Bounds(t, command) }
