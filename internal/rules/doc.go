// Package rules holds tests of what must be true of the sources: that the heart
// (pkg/oracle, pkg/learner, internal/loop) is pure and its arithmetic the same on
// every machine, and who may import whom. It has no code of its own.
package rules
