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

// Topics are the names of a model's topics.
type Topics struct {
	Contexts, Decisions, Outcomes, Feedback, Snapshots, Rejects string
}

// TopicsOf returns the topics of a model.
func TopicsOf(name string) Topics {
	return Topics{
		Contexts: name + ".contexts", Decisions: name + ".decisions", Outcomes: name + ".outcomes",
		Feedback: name + ".feedback", Snapshots: name + ".snapshots", Rejects: name + ".rejects",
	}
}
