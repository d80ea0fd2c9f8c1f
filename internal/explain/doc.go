// Package explain tells one round's whole life from the logs: how its context came, what was decided and why, which
// feedback the model had, what became of it, and what it taught. The decision, the predictions and what was learned are
// recomputed by the code that decided and learned, as verify does it.
package explain
