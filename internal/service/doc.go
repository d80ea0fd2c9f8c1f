// Package service holds the shells around the heart: they read records from a
// log, hand them to package loop, append what comes back, and recover from the logs'
// tails after anything went wrong. All state is in the logs.
//
// A [Decider] follows the feedback log with one replica of the learner and decides
// for the partitions it owns. A [Joiner] owns the feedback log. Each has an Open
// that fences earlier owners and recovers, a Step that does what can be done
// without waiting, and a Run that repeats it; after an error everything in memory
// is dropped, and a new one is opened.
package service
