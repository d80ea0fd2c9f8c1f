// Package replay holds what only the replayer needs: environments that say what
// every action would have been worth, delays under which outcomes come back, and
// the figures and tables of a run.
//
// Everything random here is a pure function of a seed and of indices (round,
// action): the same flags give the same contexts, losses and delays, in any
// order and on any number of cores. Elementary functions are those of package
// oracle, so the same on every machine.
package replay
