// Package check reads all logs of a model and says which promises they break.
//
// It is independent of the code that wrote them: of this module it uses only the codec and the contract of the log. It
// takes the whole history, so that the first record of every partition must still be there.
//
// What the joiner must have written follows from the cuts in the feedback log. A naive joiner of the
// checker's own, the twin, takes what each of them says was taken.
package check

import (
	"context"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Rules are what a model says about its rounds, of which the first outcome counts.
type Rules struct {
	Actions      []string // the model's own list; nil: any
	MaxActions   int      // 0: any number
	WindowRounds int64    // exactly one of the windows is positive
	WindowNanos  int64
	Impute       bool
	DefaultLoss  float64
	Min, Max     float64 // of losses and rewards
	Clip         bool
	Arrival      bool // feedback in the order of arrival
	Early        bool // also of rounds decided while more than a third of the earlier ones were outstanding

	// Named are outcomes that the model names, in the order of their names. Then the windows are the longest of theirs,
	// and Impute, DefaultLoss, Min, Max and Clip are those of no outcome.
	Named []Named `json:",omitempty"`
	Soon  *Soon   `json:",omitempty"` // nil: nothing is provisional

	Sticky int64 `json:",omitempty"` // ns for which the draw of a unit holds; 0: none does
}

// Named is an outcome that a model names. The sum of all with their weights is the reward.
type Named struct {
	Name         string
	WindowRounds int64
	WindowNanos  int64
	Max          float64 // of its values, whose least is 0
	Impute       bool
	Default      float64
	Last         bool // the last record counts, else the first
	Weight       float64
}

// Reply is an answer that somebody got to a request for a decision.
type Reply struct {
	ID   string // as asked; "" if it was minted
	Data []byte
}

// Options say what is known beside the logs. The zero value expects a system that was left until nothing waited.
type Options struct {
	Seed        []byte                              // of the draws; nil: they are not recomputed
	Rules       func(e *codec.Epoch) (Rules, error) // nil: fates are not recomputed
	Dedup       int64                               // rounds whose ids deciders remember; 0: all
	Unfinished  bool                                // rounds may wait, records may be unread
	OneClock    bool                                // log times of all partitions are of clocks that never go back,
	Skew        int64                               // and differ by no more than this, ns
	LostTails   bool                                // logs lost their tails; without OneClock unknown contexts, too
	Replies     []Reply                             // of requests that were answered with a decision
	LostRejects []stream.Record                     // of a log that lost its tail
	// Order is the place of a record in the order in which records were written; nil: its log time.
	Order func(r *stream.Record) int64
}

// Report is what a check found.
type Report struct {
	Violations []string // the first most of them
	Broken     int      // how many there are

	Contexts  int            // records that ask for a decision, good or not
	Decisions int            // rounds
	Requests  int            // of them
	Outcomes  int            // records
	Gaps      int            // announcements of lost rounds
	Lost      int            // feedbacks of rounds whose decisions are announced as lost
	Waiting   int            // rounds without feedback
	Unread    int            // contexts and outcomes without a fate
	Fates     map[string]int // of rounds
	Stages    int            // records of earlier stages
	Rejects   map[string]int // reasons of outcomes and contexts ("contexts/malformed"), each that must be once
	Repeated  int            // rejects written more than once
	Void      int            // rejects of cuts that were lost
	Snapshots int            // complete ones
	Partial   int            // records of incomplete ones
	Openings  int            // of decisions and feedback
	Epochs    int
	Cuts      int
	Eras      int
}

const most = 50

type checker struct {
	o    Options
	name string
	n    int // partitions
	r    *Report

	contexts, decisions, outcomes [][]record
	feedback, snapshots, rejects  []record

	epochs map[int64]*epoch
	order  []*epoch
	rounds [][]*round          // by partition, in order
	byN    []map[int64]*round  // by partition
	byID   map[string][]*round // in the order of writing
	source []map[int64]*round  // by partition and offset of contexts
	gaps   []map[int64]bool    // by partition: rounds that are announced as lost

	total    int64 // feedbacks
	fed      map[place]*codec.Feedback
	stages   map[place][]*codec.Feedback // records of earlier stages
	marks    []placed
	eras     []*codec.FeedbackMark // marks that begin one
	lastEra  int64
	cuts     map[cutOf]cutRecord
	expected map[place][]*expected
	refused  map[place]*refusal // contexts
}

// record is a record of a log.
type record struct {
	stream.Record
	at    int64  // log time, made monotone
	order int64  // [Options.Order]
	round *round // of a decision
	gapTo int64  // the last of the rounds that a mark of decisions says are lost; 0: none
	said  *said  // of an outcome
	lost  bool   // of a reject: the log does not have it any more
}

type place struct {
	topic     string
	partition int
	offset    int64
}

// roundAt is the place of a round.
func roundAt(partition int, n int64) place { return place{"", partition, n} }

type epoch struct {
	rec   codec.Epoch
	rules *Rules
}

// round is a decision.
type round struct {
	codec.Decision
	order int64
	lost  bool // its context is gone
}

// Run checks the logs of a model. The error tells of logs that cannot be read; what
// is wrong with their content is in the report.
func Run(ctx context.Context, log stream.Log, name string, partitions int, options ...Options) (*Report, error) {
	c := &checker{name: name, n: partitions, r: &Report{Fates: map[string]int{}, Rejects: map[string]int{}},
		epochs: map[int64]*epoch{}, byID: map[string][]*round{}, fed: map[place]*codec.Feedback{},
		stages: map[place][]*codec.Feedback{},
		cuts:   map[cutOf]cutRecord{}, expected: map[place][]*expected{}, refused: map[place]*refusal{}}
	if len(options) > 0 {
		c.o = options[0]
	}
	if err := c.load(ctx, log); err != nil {
		return nil, err
	}
	c.checkEpochs()
	c.checkDecisions()
	c.checkFeedback()
	c.checkRejects()
	c.checkContexts()
	c.checkSnapshots()
	c.checkReplies()
	return c.r, nil
}

func (c *checker) fail(format string, args ...any) {
	c.r.Broken++
	if len(c.r.Violations) < most {
		c.r.Violations = append(c.r.Violations, fmt.Sprintf(format, args...))
	}
}

func (c *checker) load(ctx context.Context, log stream.Log) (err error) {
	for _, t := range []struct {
		name string
		dst  *[][]record
	}{{"contexts", &c.contexts}, {"decisions", &c.decisions}, {"outcomes", &c.outcomes}} {
		for p := range c.n {
			recs, err := c.readAll(ctx, log, c.name+"."+t.name, p)
			if err != nil {
				return err
			}
			*t.dst = append(*t.dst, recs)
		}
	}
	for p := range c.outcomes {
		for i := range c.outcomes[p] {
			if r := &c.outcomes[p][i]; r.Type == "" {
				r.said = parseOutcome(r)
			}
		}
	}
	if c.feedback, err = c.readAll(ctx, log, c.name+".feedback", 0); err != nil {
		return err
	}
	if c.snapshots, err = c.readAll(ctx, log, c.name+".snapshots", 0); err != nil {
		return err
	}
	c.rejects, err = c.readAll(ctx, log, c.name+".rejects", 0)
	for i := range c.o.LostRejects {
		r := &c.o.LostRejects[i]
		c.rejects = append(c.rejects, record{Record: *r, at: r.Time, order: c.orderOf(r), lost: true})
	}
	return err
}

// readAll returns copies of the records that a partition holds.
func (c *checker) readAll(ctx context.Context, log stream.Log, topic string, partition int) ([]record, error) {
	first, end, err := log.Bounds(ctx, topic, partition)
	if err != nil || first >= end {
		return nil, err
	}
	r, err := log.Read(ctx, topic, partition, stream.Earliest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []record
	var batch []stream.Record
	var at int64
	for r.Position() < end {
		if batch, err = r.Next(ctx, batch[:0]); err != nil {
			return nil, err
		}
		for i := range batch {
			b := batch[i]
			at = max(at, b.Time)
			b.Key = append([]byte(nil), b.Key...)
			b.Value = append([]byte(nil), b.Value...)
			out = append(out, record{Record: b, at: at, order: c.orderOf(&b)})
		}
	}
	return out, nil
}

func (c *checker) orderOf(r *stream.Record) int64 {
	if c.o.Order != nil {
		return c.o.Order(r)
	}
	return r.Time
}
