// Package loop is the heart: it turns contexts into decisions, joins decisions with outcomes into
// feedback, and learns from feedback. It is pure: no clock, I/O, goroutine, logger, global or random
// source. Time enters with events, and randomness is a function of what is logged. Daemons, backtests
// and verify drive this same code.
//
//	contexts ─▶ Decider.Decide ─▶ decisions ─▶ Joiner.Take ◀─ outcomes
//	                ▲                               │
//	          Replica.Learn ◀───── feedback ◀── Joiner.Ready ─▶ rejects
//
// A [Replica] is a copy of the one learner, equal on every process that has learned the same feedback.
// A [Decider] decides for one partition with a replica. One [Joiner] serves all partitions.
//
// # The loop
//
//	for {
//		result := decider.Decide(&decision, context, id, source) // append the decision
//
//		cut, batches := …                                         // what the inputs hold now
//		err := joiner.Take(cut, batches)
//		joiner.Ready(&ready)                                      // append cut, feedback, rejects
//
//		err = replica.Learn(&feedback, nil)                       // each feedback, in the order of the log
//	}
//
// # What the caller does
//
//  1. It calls each value from one goroutine at a time, and gives it the records of a log in the order of
//     offsets, without a gap. After an error the value is of no use, unless its method says otherwise.
//  2. It appends each decision before it gives the next context, and answers when it is stored.
//  3. It appends a cut before anything that follows from it, and what follows in the order that [Ready]
//     gives. The feedback log has one writer: it is fenced.
//  4. A cut takes an outcome only after all decisions that may precede it: their ends are fetched when
//     the outcome is in hand. Its log time is that of a record, never of a clock.
//  5. It begins an epoch ([Replica.Begin], [Guard.Begin]) between the feedback before the epoch's record
//     and the feedback behind it.
//  6. It writes a mark ([Joiner.Mark]) only when all that follows from the cuts before it is
//     acknowledged. A restart begins at the last mark ([Joiner.Restore]) and takes the cuts behind it
//     again: what it emits is what was emitted before, byte by byte.
//  7. It keeps nothing that an output aliases beyond the next call, and changes no input before the call
//     returns.
//
// # Where to read
//
// One decision, one feedback, in order: doc.go, events.go, cut.go, joiner.go, fate.go, memory.go and
// ready.go here, choose.go and core.go of package join.
//
// A restart continues exactly: mark.go and restore.go here, open.go, history.go and spans.go of package
// join.
//
// What models may ask for besides stands apart, and can be left out at first: outcomes by name in named.go,
// stages.go and provisional.go, units in unit.go, slots in slots.go, modes in mode.go, the guard in guard.go,
// candidates in ledger.go. So do lost tails (era.go of package join) and logs from before cuts (old.go there).
package loop
