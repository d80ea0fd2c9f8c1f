package codec

import "slices"

// FeedbackMark is the progress record of the joiner in the feedback log, of version 4. What is inside
// lists, and Limits, is written as lists of values in the order of the fields: [partition, round, …].
// One up to version 3, an [OldMark], is read as one without limits.
type FeedbackMark struct {
	V    int   `msgpack:"v"`
	N    int64 `msgpack:"n"`    // the last feedback before it
	Cut  int64 `msgpack:"cut"`  // the last cut before it
	Time int64 `msgpack:"time"` // largest log time seen, ns
	Era  int64 `msgpack:"era"`  // counts the losses that were found

	// Eras are the beginnings of eras. Feedback behind N that an earlier era told of is not
	// that which the log holds.
	Eras []EraStart `msgpack:"eras"`
	// From is the offset of the mark from which a restart reads: the newest that was
	// acknowledged before the cut that took the oldest waiting round; -1: this one. FromCut is
	// its Cut. Memory is the offset of a mark from which all ids that repeats are told by are
	// known.
	From    int64 `msgpack:"from"`
	FromCut int64 `msgpack:"from_cut"`
	Memory  int64 `msgpack:"memory"`
	// Remembers is the N of the lowest feedback whose id is remembered.
	Remembers int64 `msgpack:"remembers"`
	// Rejects is the offset behind the joiner's last reject that was acknowledged.
	Rejects int64  `msgpack:"rejects"`
	Limits  Limits `msgpack:"limits"` // in force from here on; Heart 0: of an [OldMark]

	Positions []Position `msgpack:"positions"`
	Epochs    []EpochRef `msgpack:"epochs"` // the current one last, and those that waiting rounds keep
	// Guard is what the guard has seen of the feedback before this mark; nil: there is none.
	Guard []byte `msgpack:"guard,omitempty"`
	// Delays counts how long outcomes took, for models that learn early; nil: none of them did.
	Delays []byte `msgpack:"delays,omitempty"`
	// Candidates is what is known of the model's candidates from the feedback before this mark; nil: it has none.
	Candidates []byte `msgpack:"candidates,omitempty"`
	// LostTails are the losses for which this mark begins an era.
	LostTails []LostTail `msgpack:"lost"`

	Lost int64         `msgpack:"-"` // of an [OldMark], as Void is
	Void []SnapshotRef `msgpack:"-"`
}

// Voids reports whether a claim about feedback n, made in an era, is void: a later era began
// before that feedback, which the log had lost. A mark up to version 3 voids nothing.
func (x *FeedbackMark) Voids(era, n int64) bool {
	return slices.ContainsFunc(x.Eras, func(e EraStart) bool { return e.Era > era && e.N < n })
}

// EraStart says after which feedback an era began.
type EraStart struct {
	Era int64 `msgpack:"era"`
	N   int64 `msgpack:"n"`
}

// Limits are what a joiner's results depend on besides the logs and the rules.
type Limits struct {
	Heart   int64 `msgpack:"heart"`   // which meaning of cuts and records; at least 1
	Pending int64 `msgpack:"pending"` // rounds that may wait
	Bytes   int64 `msgpack:"bytes"`   // that those may take
	Dedup   int64 `msgpack:"dedup"`   // feedbacks whose ids are remembered
}

// LostTail says that a partition of a topic lost its records from Offset on, of which those
// before Was had been taken.
type LostTail struct {
	Topic     string `msgpack:"topic"` // "decisions" or "outcomes"
	Partition int    `msgpack:"partition"`
	Offset    int64  `msgpack:"offset"`
	Was       int64  `msgpack:"was"`
}

// Position is where the joiner stands in one partition.
type Position struct {
	Partition int   `msgpack:"partition"`
	Round     int64 `msgpack:"round"` // the N of the last decision taken
	Time      int64 `msgpack:"time"`  // log time that decisions have reached, ns
	// Of both inputs the next unread offset, the offset at which the last range that moved
	// it began, and [Sum] of that range.
	Decisions      int64  `msgpack:"decisions"`
	DecisionsSince int64  `msgpack:"decisions_since"`
	DecisionsSum   uint32 `msgpack:"decisions_sum"`
	Outcomes       int64  `msgpack:"outcomes"`
	OutcomesSince  int64  `msgpack:"outcomes_since"`
	OutcomesSum    uint32 `msgpack:"outcomes_sum"`
	// Done are the rounds behind Round that have their feedback: their decisions were lost.
	// Outcomes before Again were taken in an earlier era. Only the mark that begins an era,
	// and those behind it until they are passed, have any.
	Done  []Run `msgpack:"done"`
	Again int64 `msgpack:"again"`
}

// Run are the rounds From..To.
type Run struct {
	From int64 `msgpack:"from"`
	To   int64 `msgpack:"to"`
}

// EpochRef says where an epoch record lies in the feedback log; a hint, since
// offsets change when a log is mirrored.
type EpochRef struct {
	Epoch  int64 `msgpack:"epoch"`
	Offset int64 `msgpack:"offset"` // of its first class record, or of itself
}

// SnapshotRef names a snapshot.
type SnapshotRef struct {
	SHA256 string `msgpack:"sha256"`
}

// DecisionMark is the progress record of a decider in its decisions partition.
type DecisionMark struct {
	V               int   `msgpack:"v"`
	N               int64 `msgpack:"n"` // the last decision before it
	ContextsThrough int64 `msgpack:"contexts_through"`
	LearnedThrough  int64 `msgpack:"learned_through"`
	// Rounds GapFrom..GapTo were lost with the log's tail after a power failure and
	// their numbers are not used again; 0: no gap.
	GapFrom int64 `msgpack:"gap_from"`
	GapTo   int64 `msgpack:"gap_to"`
	Time    int64 `msgpack:"time,omitempty"` // log time that contexts have reached, ns
	// Contexts ContextsThrough..ContextsLost-1 had been passed, and feedback
	// LearnedThrough+1..LearnedLost had been learned from, when the tails of those
	// logs were lost: from this mark on both positions have gone back. 0: they have not.
	ContextsLost int64 `msgpack:"contexts_lost,omitempty"`
	LearnedLost  int64 `msgpack:"learned_lost,omitempty"`
	// Epoch began before this mark, with the learner of those before it; nothing was decided
	// in it yet. Should the feedback log lose its record, this says what it was: of this
	// Version of the model, in this Mode. 0: none did.
	Epoch   int64  `msgpack:"epoch,omitempty"`
	Version int64  `msgpack:"version,omitempty"`
	Mode    string `msgpack:"mode,omitempty"`
	Era     int64  `msgpack:"era,omitempty"` // of the feedback log at LearnedThrough
	// Rejects is the offset behind the last reject of a context of this partition that was
	// acknowledged. All contexts before ContextsThrough that were not decided have theirs. 0: none is known.
	Rejects int64 `msgpack:"rejects,omitempty"`
	// The rejects of contexts RejectsFrom..RejectsTo-1 were stored, and then lost with the tail of
	// their log. RejectsTo 0: none were.
	RejectsFrom int64 `msgpack:"rejects_from,omitempty"`
	RejectsTo   int64 `msgpack:"rejects_to,omitempty"`
}
