// Package check reads all logs of a model and says which promises they break.
//
// It is independent of the code that wrote them: of this module it uses only the
// codec and the contract of the log. It takes the whole history, so that the first
// record of every partition must still be there.
package check

import (
	"context"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Rules are what a model says about its rounds.
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
	// Several says that a round may use several outcomes (aggregates, activations):
	// fates are then checked for consistency and not recomputed.
	Several bool
}

// Reply is an answer that somebody got to a request for a decision.
type Reply struct {
	ID   string // as asked; "" if it was minted
	Data []byte
}

// Options say what is known beside the logs. The zero value expects a system that
// was left until nothing waited.
type Options struct {
	Seed       []byte                              // of the draws; nil: they are not recomputed
	Rules      func(e *codec.Epoch) (Rules, error) // nil: fates are checked for consistency only
	Dedup      int64                               // rounds whose ids are remembered; 0: all
	Unfinished bool                                // rounds may wait, records may be unread
	LooseTime  bool                                // log time went back: what depends on the order of log times is not checked
	Replies    []Reply                             // of requests that were answered with a decision
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
	Lost      int            // rounds with feedback whose decisions are announced as lost
	Waiting   int            // rounds without feedback
	Unread    int            // contexts and outcomes without a fate
	Fates     map[string]int // of rounds
	Rejects   map[string]int // reasons of outcomes and contexts ("contexts/malformed"), each record once
	Repeated  int            // rejects written more than once
	Snapshots int            // complete ones
	Cut       int            // records of incomplete ones
	Openings  int            // of decisions and feedback
	Epochs    int
}

const most = 50

type checker struct {
	o    Options
	name string
	n    int // partitions
	r    *Report

	contexts, decisions, outcomes [][]record
	feedback, snapshots, rejects  []record

	epochs  map[int64]*epoch
	order   []*epoch
	rounds  [][]*round          // by partition, in order
	byN     []map[int64]*round  // by partition
	byID    map[string][]*round // in the order of log time
	total   int64               // feedbacks
	gaps    []map[int64]bool    // by partition: rounds that are announced as lost
	ghosts  map[string]bool     // ids of those of them that have feedback
	refused map[place]*refusal
	wants   map[place]string // what the outcomes' fates must be
	source  []map[int64]*round
}

// record is a record of a log with its log time, made monotone.
type record struct {
	stream.Record
	at int64
}

type place struct {
	topic     string
	partition int
	offset    int64
}

type epoch struct {
	rec   codec.Epoch
	rules *Rules
}

// round is a decision with its feedback.
type round struct {
	codec.Decision
	at, offset int64
	f          *codec.Feedback
	closed     int64 // log time of the feedback record
	late       bool  // another round had the id before
}

// refusal is the first reject of a record.
type refusal struct {
	codec.Reject
	at int64
}

// Run checks the logs of a model. The error tells of logs that cannot be read; what
// is wrong with their content is in the report.
func Run(ctx context.Context, log stream.Log, name string, partitions int, options ...Options) (*Report, error) {
	c := &checker{name: name, n: partitions, r: &Report{Fates: map[string]int{}, Rejects: map[string]int{}},
		epochs: map[int64]*epoch{}, byID: map[string][]*round{}, refused: map[place]*refusal{}, ghosts: map[string]bool{}, wants: map[place]string{}}
	if len(options) > 0 {
		c.o = options[0]
	}
	if err := c.load(ctx, log); err != nil {
		return nil, err
	}
	c.checkEpochs()
	c.checkDecisions()
	c.checkFeedback()
	c.readRejects()
	c.checkFates()
	c.checkOutcomes()
	c.checkContexts()
	c.checkMarks()
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
			recs, err := readAll(ctx, log, c.name+"."+t.name, p)
			if err != nil {
				return err
			}
			*t.dst = append(*t.dst, recs)
		}
	}
	if c.feedback, err = readAll(ctx, log, c.name+".feedback", 0); err != nil {
		return err
	}
	if c.snapshots, err = readAll(ctx, log, c.name+".snapshots", 0); err != nil {
		return err
	}
	c.rejects, err = readAll(ctx, log, c.name+".rejects", 0)
	return err
}

// readAll returns copies of the records that a partition holds.
func readAll(ctx context.Context, log stream.Log, topic string, partition int) ([]record, error) {
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
			out = append(out, record{b, at})
		}
	}
	return out, nil
}
