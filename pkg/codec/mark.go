package codec

import "slices"

// FeedbackMark is the progress record of the joiner in the feedback log. It has two forms:
// up to version 3, which the tags msgpack declare, and of version 4, of a joiner that logs
// its cuts. Fields with one of the two tags are empty in the other form.
//
// In version 4 what is inside lists, and Limits, is written as lists of values in the
// order of the fields: [partition, round, …].
type FeedbackMark struct {
	V    int   `msgpack:"v" v4:"v"`
	N    int64 `msgpack:"n" v4:"n"`       // the last feedback before it
	Cut  int64 `msgpack:"-" v4:"cut"`     // the last cut before it
	Time int64 `msgpack:"time" v4:"time"` // largest log time seen, ns
	Era  int64 `msgpack:"-" v4:"era"`     // counts the losses that were found

	// Eras are the beginnings of eras. Feedback behind N that an earlier era told of is not
	// that which the log holds.
	Eras []EraStart `msgpack:"-" v4:"eras"`
	// From is the offset of the mark from which a restart reads: the newest that was
	// acknowledged before the cut that took the oldest waiting round; -1: this one. FromCut is
	// its Cut. Memory is the offset of a mark from which all ids that repeats are told by are
	// known.
	From    int64 `msgpack:"-" v4:"from"`
	FromCut int64 `msgpack:"-" v4:"from_cut"`
	Memory  int64 `msgpack:"-" v4:"memory"`
	// Remembers is the N of the lowest feedback whose id is remembered.
	Remembers int64 `msgpack:"-" v4:"remembers"`
	// Rejects is the offset behind the joiner's last reject that was acknowledged.
	Rejects int64  `msgpack:"-" v4:"rejects"`
	Limits  Limits `msgpack:"-" v4:"limits"` // in force from here on; Heart 0: a mark up to version 3

	Positions []Position `msgpack:"positions" v4:"positions"`
	Epochs    []EpochRef `msgpack:"epochs" v4:"epochs"` // the current one last, and those that waiting rounds keep
	// Feedback N+1..Lost was learned from and is no longer in the log, a power failure
	// took its tail; those numbers are given anew, perhaps to other feedback. 0: none.
	Lost int64 `msgpack:"lost,omitempty"`
	// Void are the snapshots that learned feedback which is gone: what the log holds in
	// its place may differ.
	Void []SnapshotRef `msgpack:"void,omitempty"`
	// Guard is what the guard has seen of the feedback before this mark; nil: there is none.
	Guard []byte `msgpack:"guard,omitempty" v4:"guard,omitempty"`
	// Delays counts how long outcomes took, for models that learn early; nil: none of them did.
	Delays []byte `msgpack:"-" v4:"delays,omitempty"`
	// Candidates is what is known of the model's candidates from the feedback before this mark; nil: it has none.
	Candidates []byte `msgpack:"-" v4:"candidates,omitempty"`
	// LostTails are the losses for which this mark begins an era.
	LostTails []LostTail `msgpack:"-" v4:"lost"`
}

// Voids reports whether a claim about feedback n, made in an era, is void: a later era began
// before that feedback, which the log had lost. A mark up to version 3 voids nothing.
func (x *FeedbackMark) Voids(era, n int64) bool {
	return slices.ContainsFunc(x.Eras, func(e EraStart) bool { return e.Era > era && e.N < n })
}

// EraStart says after which feedback an era began.
type EraStart struct {
	Era int64 `v4:"era"`
	N   int64 `v4:"n"`
}

// Limits are what a joiner's results depend on besides the logs and the rules.
type Limits struct {
	Heart   int64 `v4:"heart"`   // which meaning of cuts and records; at least 1
	Pending int64 `v4:"pending"` // rounds that may wait
	Bytes   int64 `v4:"bytes"`   // that those may take
	Dedup   int64 `v4:"dedup"`   // feedbacks whose ids are remembered
}

// LostTail says that a partition of a topic lost its records from Offset on, of which those
// before Was had been taken.
type LostTail struct {
	Topic     string `v4:"topic"` // "decisions" or "outcomes"
	Partition int    `v4:"partition"`
	Offset    int64  `v4:"offset"`
	Was       int64  `v4:"was"`
}

// Position is where the joiner stands in one partition.
type Position struct {
	Partition int `msgpack:"partition" v4:"partition"`
	// Decisions: rounds 1..Released have their feedback, and so have those of
	// Ahead (with order: arrival or early, or lost rounds). A restart reads decisions again from
	// DecisionsFrom, which lies at or before the first round without feedback.
	Released      int64   `msgpack:"released"`
	Ahead         []int64 `msgpack:"ahead,omitempty"`
	DecisionsFrom int64   `msgpack:"decisions_from"`
	DecisionsTime int64   `msgpack:"decisions_time"` // log time reached there, ns: the running maximum goes on from it
	// Outcomes: OutcomesThrough is the next unread offset, and every reject before
	// it is stored; a restart reads again from OutcomesFrom, at or before the oldest
	// outcome that a waiting round needs.
	OutcomesThrough int64 `msgpack:"outcomes_through"`
	OutcomesFrom    int64 `msgpack:"outcomes_from"`
	OutcomesTime    int64 `msgpack:"outcomes_time"` // log time reached at OutcomesFrom, ns
	// offsets before OutcomesThrough that have no fate yet: their decision was not read, or their reject not stored
	Parked []int64 `msgpack:"parked,omitempty"`
	// DecisionsThrough is the next unread offset of decisions, by which a restart sees
	// that they lost their tail.
	DecisionsThrough int64 `msgpack:"decisions_through,omitempty"`
	// Outcomes before OutcomesLost had been passed when this log or that of decisions
	// lost its tail: what lies there from OutcomesThrough of this mark on has no fate
	// yet. 0: they did not.
	OutcomesLost int64 `msgpack:"outcomes_lost,omitempty"`
	// Refused are those of Parked whose rejects follow this mark: they are final from
	// here on, whatever a later joiner reads first.
	Refused []Refusal `msgpack:"refused,omitempty"`
	// The forms that Ahead, Parked and Refused have in the record where they are long: a bit a
	// round from Released+1 on, lowest bits first, and differences in base 128. Else nil.
	AheadBits    []byte       `msgpack:"ahead_bits,omitempty"`
	ParkedDeltas []byte       `msgpack:"parked_deltas,omitempty"`
	RefusedRuns  []RefusedRun `msgpack:"refused_runs,omitempty"`

	Round int64 `msgpack:"-" v4:"round"` // the N of the last decision taken
	Time  int64 `msgpack:"-" v4:"time"`  // log time that decisions have reached, ns
	// Of both inputs the next unread offset, the offset at which the last range that moved
	// it began, and [Sum] of that range.
	Decisions      int64  `msgpack:"-" v4:"decisions"`
	DecisionsSince int64  `msgpack:"-" v4:"decisions_since"`
	DecisionsSum   uint32 `msgpack:"-" v4:"decisions_sum"`
	Outcomes       int64  `msgpack:"-" v4:"outcomes"`
	OutcomesSince  int64  `msgpack:"-" v4:"outcomes_since"`
	OutcomesSum    uint32 `msgpack:"-" v4:"outcomes_sum"`
	// Done are the rounds behind Round that have their feedback: their decisions were lost.
	// Outcomes before Again were taken in an earlier era. Only the mark that begins an era,
	// and those behind it until they are passed, have any.
	Done  []Run `msgpack:"-" v4:"done"`
	Again int64 `msgpack:"-" v4:"again"`
}

// Run are the rounds From..To.
type Run struct {
	From int64 `v4:"from"`
	To   int64 `v4:"to"`
}

// Refusal says why an outcome at an offset is rejected.
type Refusal struct {
	Offset int64  `msgpack:"offset"`
	Reason string `msgpack:"reason"`
}

// EpochRef says where an epoch record lies in the feedback log; a hint, since
// offsets change when a log is mirrored.
type EpochRef struct {
	Epoch  int64 `msgpack:"epoch" v4:"epoch"`
	Offset int64 `msgpack:"offset" v4:"offset"` // of its first class record, or of itself
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
