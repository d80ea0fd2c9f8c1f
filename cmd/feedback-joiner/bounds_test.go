package main

import (
	"testing"

	"hindsight/internal/testkit/daemontest"
)

func TestNumbersOfFlags(t *testing.T) { daemontest.Bounds(t, command) }
