package codec

import "math"

// OldMark is the mark of a joiner that logged no cuts, up to version 3. No joiner writes them any more. It is
// read as a [FeedbackMark] that stands where a restart reads again, with the rounds behind that which
// have their feedback. Other keys told which outcomes had their fate: those read again get one anew.
type OldMark struct {
	V         int           `msgpack:"v"`
	N         int64         `msgpack:"n"`    // the last feedback before it
	Time      int64         `msgpack:"time"` // largest log time seen, ns
	Positions []OldPosition `msgpack:"positions"`
	Epochs    []EpochRef    `msgpack:"epochs"` // the current one last, and those that waiting rounds keep
	// Feedback N+1..Lost was learned from and is no longer in the log, a power failure
	// took its tail; those numbers are given anew, perhaps to other feedback. 0: none.
	Lost int64 `msgpack:"lost,omitempty"`
	// Void are the snapshots that learned feedback which is gone: what the log holds in
	// its place may differ.
	Void []SnapshotRef `msgpack:"void,omitempty"`
	// Guard is what the guard has seen of the feedback before this mark; nil: there is none.
	Guard []byte `msgpack:"guard,omitempty"`
}

// OldPosition is where a joiner that logged no cuts stands in one partition.
type OldPosition struct {
	Partition int `msgpack:"partition"`
	// Rounds 1..Released have their feedback, and so have those of Ahead, or of AheadBits where they
	// are many: bit i%8 of byte i/8 stands for round Released+1+i.
	Released  int64   `msgpack:"released"`
	Ahead     []int64 `msgpack:"ahead,omitempty"`
	AheadBits []byte  `msgpack:"ahead_bits,omitempty"`
	// A restart reads again from here: at or before the first round without feedback, and the oldest
	// outcome that a waiting round needs. The times are the log times reached there, ns.
	DecisionsFrom int64 `msgpack:"decisions_from"`
	DecisionsTime int64 `msgpack:"decisions_time"`
	OutcomesFrom  int64 `msgpack:"outcomes_from"`
	OutcomesTime  int64 `msgpack:"outcomes_time"`
}

// mark returns where a restart reads again. No log time is reached there that a record behind it does not tell.
func (x *OldMark) mark() (FeedbackMark, error) {
	m := FeedbackMark{V: x.V, N: x.N, Time: x.Time, Epochs: x.Epochs, Lost: x.Lost, Void: x.Void, Guard: x.Guard,
		Positions: make([]Position, len(x.Positions))}
	for i := range x.Positions {
		p := &x.Positions[i]
		if p.Released > math.MaxInt64-8*int64(len(p.AheadBits)) {
			return FeedbackMark{}, wrong("feedback mark", item("positions", i)+".ahead_bits", errRange)
		}
		m.Positions[i] = Position{Partition: p.Partition, Round: p.Released, Time: p.DecisionsTime,
			Decisions: p.DecisionsFrom, DecisionsSince: p.DecisionsFrom,
			Outcomes: p.OutcomesFrom, OutcomesSince: p.OutcomesFrom, Done: p.done()}
		m.Time = min(m.Time, p.DecisionsTime, p.OutcomesTime)
	}
	return m, nil
}

// done returns the rounds behind Released that have their feedback.
func (p *OldPosition) done() (runs []Run) {
	add := func(n int64) {
		if k := len(runs) - 1; k >= 0 && runs[k].To == n-1 {
			runs[k].To = n
		} else {
			runs = append(runs, Run{n, n})
		}
	}
	for _, n := range p.Ahead {
		add(n)
	}
	for i := range 8 * len(p.AheadBits) {
		if p.AheadBits[i/8]&(1<<(i%8)) != 0 {
			add(p.Released + 1 + int64(i))
		}
	}
	return runs
}
