package join

import (
	"context"
	"log/slog"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Config is what a [Core] needs.
type Config struct {
	Log        stream.Log
	Topics     Topics
	Partitions int
	Limits     codec.Limits
	Encoding   codec.Encoding
	MarkEvery  int64  // feedbacks between marks
	Seed       uint64 // of the hashes of ids
	Owner      string // for people
	Skew       int64  // between the clocks of partitions, ns; 0: one clock
	AcceptLoss bool   // go on without records that retention has dropped
	Patient    bool   // decisions cease to come until what is due follows: an injection writes them
	Logger     *slog.Logger
	Epochs     Epochs
	Hooks      Hooks
	Wake       func() // called from any goroutine when there is something to do; it must not block
	// Believe reports whether the log time of a record is believed; nil: always. Where one is not,
	// nothing behind it is taken.
	Believe func(topic string, partition int, r *stream.Record) bool
	// Claims calls claim for each record of deciders that says how much of the feedback log it knew in
	// an era: feedback up to n, and an epoch; 0: none. nil: there are none.
	Claims func(ctx context.Context, claim func(era, n, epoch int64)) error
}

// Topics are the names of a model's topics.
type Topics struct {
	Contexts, Decisions, Outcomes, Feedback, Snapshots, Rejects string
}

// TopicsOf returns the topics of a model.
func TopicsOf(name string) Topics {
	return Topics{
		Contexts: name + ".contexts", Decisions: name + ".decisions", Outcomes: name + ".outcomes",
		Feedback: name + ".feedback", Snapshots: name + ".snapshots", Rejects: name + ".rejects",
	}
}

// Epochs knows the epochs of a feedback log.
type Epochs interface {
	// Rules returns the rules of an epoch, nil if it is not known.
	Rules(epoch int64) *loop.Rules
	// Read takes a class or an epoch record of the feedback log, in the order of the log. A record
	// may be given more than once.
	Read(r *stream.Record) error
	// Refs returns where the epochs lie that are known, the current one last.
	Refs() []codec.EpochRef
	// Find makes the epochs known that lie at these places.
	Find(ctx context.Context, refs []codec.EpochRef) error
}

// Hooks are called with what passes, for metrics and logs. They must not keep what they are given.
type Hooks struct {
	Cut      func() // a cut was taken, and is about to be appended
	Era      func() // an era begins
	Decision func(e *loop.DecisionEvent, r *stream.Record)
	Again    func(e *loop.DecisionEvent, r *stream.Record) // a decision that an earlier joiner took is read again
	Outcome  func(e *loop.OutcomeEvent)
	Feedback func(f *codec.Feedback)
	Reject   func(r *codec.Reject)
	// Foreign is called with a record that cannot be read. A nil error passes over it.
	Foreign func(topic string, partition int, r *stream.Record, err error) error
	// Append is called from any goroutine with each error of an append to a topic.
	Append func(topic string, err error)
}

func (h *Hooks) appended(topic string, err error) {
	if err != nil && h.Append != nil {
		h.Append(topic, err)
	}
}
