// Package service holds the shells of deciders and of the joiner: they read records from a log, hand
// them to package loop, and append what comes back. All state is in the logs.
//
// A [Decider] decides for the partition it owns, with a learner that follows the feedback log (package follow), and
// answers requests (package front). A [Joiner] owns the feedback log (package join). Each has an Open that fences
// earlier owners and recovers, a Step that does what can be done without waiting, and a Run that repeats it; after an
// error everything in memory is dropped, and a new one is opened. [RunSystem] runs what one process has of them.
package service
