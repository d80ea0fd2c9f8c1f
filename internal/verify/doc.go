// Package verify audits the logs of a model: it recomputes everything that was decided
// and learned, with the code that decides, joins and learns (internal/loop,
// internal/service), and compares every record with what it should be, byte by byte.
//
// It knows nothing of how the rounds came about: a live system, an injected data set and
// a simulated power failure are the same to it. Therefore it needs nothing of the
// replayer, and everyone who writes logs may ask it.
//
// Where the joiner logged its cuts, the feedback log is replayed: the heart that joined takes the cuts
// again (replay.go), cuts must be such as a joiner may choose (legal.go), and rejects must follow from
// them (replayrejects.go).
package verify
