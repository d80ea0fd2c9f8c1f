// Package replay plays rounds to a learner: those of a table or of a built-in world, in a backtest or to a live
// system, and says what came of it: the figures, the course and the tables of a run.
//
// Everything random here is a pure function of a seed and of indices (round, action): the same flags give the same
// contexts, losses and delays, in any order and on any number of cores.
package replay
