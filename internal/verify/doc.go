// Package verify audits the logs of a model: it recomputes everything that was decided
// and learned, with the code that decides, joins and learns (internal/loop,
// internal/join, internal/service), and compares every record with what it should be,
// byte by byte.
//
// It knows nothing of how the rounds came about: a live system, an injected data set and
// a simulated power failure are the same to it. Therefore it needs nothing of the
// replayer, and every writer of logs may call it.
//
// Two checks run side by side. One follows the feedback log with a replica of the learner
// and decides again what was decided (decisions.go, lane.go, contexts.go). The other takes
// the cuts of the feedback log again with the heart that joined (fates.go): feedback and
// marks must be what follows (marks.go), cuts must be such as a joiner may choose
// (legal.go), and rejects of outcomes must follow from them (outcomerejects.go). Feedback
// before the first mark that can be restored must be a copy of its decision (copies.go). The
// first check hands what it reads to the second (pipe.go).
package verify
