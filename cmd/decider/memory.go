package main

import (
	"runtime/debug"

	"hindsight/internal/daemon"
	"hindsight/internal/model"
)

// besides is what a flood may take beside learners and rounds that wait, in bytes: most of it are what an embedded
// server keeps of records that it has just written, and what the collector has not yet found to be free.
const besides = 5 << 29

// limitMemory has Go's collector hurry where a process comes to what LIMITS says that it takes,
// unless GOMEMLIMIT says another limit.
func limitMemory(env *daemon.Env, partitions, pendingMiB int) {
	if env.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(partitions)*model.MaxMemory + int64(pendingMiB)<<20 + besides)
	}
}
