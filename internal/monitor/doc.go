// Package monitor keeps what an operator of a loop wants to know of its last rounds, in
// constant memory: what is decided and how widely it explores, whether the draws follow
// the logged laws, what rounds were worth beside uniform play, how late outcomes come, and
// what was rejected. It sees records and no features, and does no I/O.
package monitor
