package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Joiner owns the feedback log of a model: it announces the model, joins decisions
// with outcomes, and releases feedback. One goroutine uses it.
type Joiner struct {
	cfg     SystemConfig
	topics  Topics
	heart   *loop.Joiner
	epochs  *epochs
	offsets map[int64]int64 // where the records of an epoch begin in the feedback log
	classAt int64           // where those that are being read began; -1: none

	feedback stream.Appender
	rejects  stream.Appender
	failed   atomic.Pointer[error]
	wall     func() time.Time      // the process's clock; nil: all log times are believed
	ahead    atomic.Pointer[error] // why the head is not believed; nil: it is
	acked    atomic.Int64          // offset of the last acknowledged feedback record

	inputs []*input // decisions of all partitions, then outcomes
	given  int      // bytes that the heart was given since the last release
	stamp  uint64

	tick      advance // a mark of our own that moves log time on
	aheadMark bool    // the record that is not believed is a mark of our own
	latest    int64   // a log time up to this one is believed
	orphans   *orphanCheck
	lost      losses
	void      []codec.SnapshotRef // snapshots of feedback that is gone
	marked    int64               // N of the last mark
	tickAt    time.Time
	seen      int64     // log time
	seenAt    time.Time // when it was first seen
	warned    time.Time // of late losses; zero: never

	feedbacks []codec.Feedback
	rejected  []codec.Reject
	buf       []byte
	wakeup    chan struct{}
	orders    chan order    // between steps
	next      []order       // taken meanwhile
	pause     func() error  // called now and then while a new model is tried; its error gives that up; nil: nobody waits
	over      chan struct{} // closed when nothing more is done
	ended     sync.Once
	shownAt   time.Time // the last look at the guard
	alarmed   int64     // the epoch from which the guard counts whose alarm was told; 0: none
	markAt    int64     // where the last mark lies in the tail that was read; -1: none
	lastMark  codec.FeedbackMark

	m       *watch.JoinerMetrics
	others  *strangers
	surplus surplus
	part    *watch.Part    // of the process's health; may be nil
	at      []atomic.Int64 // by input: next unread offset
}

// advance is a log time that is to be given to the heart once every input is read
// to it.
type advance struct {
	time  int64
	stamp uint64 // 0: none
}

// orphanCheck waits until the decisions are read to ends that were fetched after
// the parked outcomes up to seq were read.
type orphanCheck struct {
	seq  uint64
	ends []int64
}

// OpenJoiner takes the feedback log over from any earlier owner, recovers from its
// tail, and announces the model if the log does not have it.
func OpenJoiner(ctx context.Context, cfg SystemConfig) (*Joiner, error) {
	j := &Joiner{cfg: cfg, topics: TopicsOf(cfg.Source.Name), wakeup: make(chan struct{}, 1), orders: make(chan order), over: make(chan struct{})}
	source := *cfg.Source // which a renewal changes
	j.cfg.Source = &source
	if j.cfg.Metrics == nil {
		j.cfg.Metrics = watch.NewMetrics(nil, nil)
	}
	j.m = j.cfg.Metrics.Joiner()
	j.others = newStrangers(j.cfg.Metrics, cfg.Logger)
	if j.cfg.began == nil {
		j.cfg.began = new([2]atomic.Int64)
	}
	j.acked.Store(-1)
	j.forget()
	var tail stream.Tail
	var err error
	j.feedback, tail, err = cfg.Log.Open(ctx, j.topics.Feedback, 0, stream.OpenOptions{Owner: cfg.Owner, Ack: j.ack})
	if err != nil {
		j.cfg.Metrics.AppendError(watch.FeedbackKind, err)
		j.m.Close()
		return nil, err
	}
	if err := j.recover(ctx, tail); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

func (j *Joiner) recover(ctx context.Context, tail stream.Tail) error {
	if err := j.readTail(ctx, tail); err != nil {
		return err
	}
	if err := j.replayGuard(ctx, j.markAt, &j.lastMark); err != nil {
		return err
	}
	if err := j.findLosses(ctx); err != nil {
		return err
	}
	if err := j.readRejects(ctx); err != nil {
		return err
	}
	var err error
	if j.rejects, err = j.cfg.Log.Writer(ctx, j.topics.Rejects, 0, j.rejectAck); err != nil {
		return err
	}
	j.adoptModel()
	if err := j.announce(ctx); err != nil {
		return err
	}
	if err := j.announceLosses(ctx); err != nil {
		return err
	}
	for p := range j.cfg.Partitions {
		from, _ := j.heart.From(p)
		if err := j.addInput(ctx, j.topics.Decisions, p, from); err != nil {
			return err
		}
	}
	for p := range j.cfg.Partitions {
		_, from := j.heart.From(p)
		if err := j.addInput(ctx, j.topics.Outcomes, p, from); err != nil {
			return err
		}
	}
	j.at = make([]atomic.Int64, len(j.inputs))
	j.show()
	return nil
}

func (j *Joiner) addInput(ctx context.Context, topic string, p int, from int64) error {
	if from == 0 {
		from = stream.Earliest
	}
	in, err := openInput(ctx, j.cfg.Log, topic, p, from, 0)
	if errors.Is(err, stream.ErrTruncated) {
		what := "which waiting rounds may need"
		if topic == j.topics.Decisions {
			what = "of rounds that have no feedback yet"
		}
		err = missingFrom(ctx, j.cfg.Log, topic, p, from, err, what)
		if j.cfg.AcceptLoss {
			j.cfg.Logger.Error("going on without records, as --accept-loss says", "error", err)
			in, err = openInput(ctx, j.cfg.Log, topic, p, stream.Earliest, 0)
		}
	}
	if err != nil {
		return err
	}
	in.time = j.heart.Reached(topic == j.topics.Outcomes, p)
	j.inputs = append(j.inputs, in)
	return nil
}

// forget makes the joiner one that has read nothing.
func (j *Joiner) forget() {
	j.epochs = newEpochs(j.cfg.Build)
	j.offsets, j.classAt, j.marked = map[int64]int64{}, -1, 0
	j.markAt, j.lastMark = stream.Earliest, codec.FeedbackMark{}
	j.lost, j.void = newLosses(j.cfg.Partitions), nil
	j.heart = loop.NewJoiner(j.cfg.options(), j.epochs.rules)
}

// readTail restores the heart from the end of the feedback log: from its last mark,
// and far enough back that repeats of outcomes are known as such.
func (j *Joiner) readTail(ctx context.Context, tail stream.Tail) error {
	for back := int64(j.cfg.Dedup + 2*j.cfg.MarkEvery); ; back *= 4 {
		from := max(tail.First, tail.Open-back) // not all offsets are feedback
		j.heart.Expect(int(tail.Open - from))
		found, n, err := j.readFrom(ctx, from, tail.Open)
		if err != nil {
			return err
		}
		if found && (n >= j.cfg.Dedup || from == tail.First) {
			break
		}
		if n == 0 && from == tail.First {
			if err := j.checkTail(tail); err != nil {
				return err
			}
			break
		}
		if from == tail.First {
			return &stream.Error{Op: "recover", Topic: j.topics.Feedback, Offset: from,
				Err: fmt.Errorf("%w: no mark is kept and the first feedback is gone", stream.ErrTruncated)}
		}
		j.forget()
	}
	return j.findEpochs(ctx)
}

// errCuts reports a feedback log of a joiner that logs its cuts: this one's marks and feedback
// would not follow from them.
var errCuts = fmt.Errorf("%w: the joiner before this one was of a newer program and logged its cuts, which this one cannot go on from", codec.ErrVersion)

// readFrom reads the feedback log from an offset to the end, and reports whether
// there was a mark, and how many feedbacks. Behind the first mark, or from the log's start, it restores the
// heart's position; before it only its memory.
func (j *Joiner) readFrom(ctx context.Context, from, end int64) (marked bool, n int, err error) {
	var f codec.Feedback
	err = scan(ctx, j.cfg.Log, j.topics.Feedback, 0, from, end, func(r *stream.Record) error {
		switch r.Type {
		case codec.TypeMark:
			m, err := codec.ParseFeedbackMark(r.Value)
			if err != nil {
				return unlessForeign(err)
			}
			if m.Limits.Heart > 0 {
				return errCuts
			}
			j.heart.Restore(&m)
			j.lost.mark(&m)
			j.void = m.Void
			for _, e := range m.Epochs {
				j.offsets[e.Epoch] = e.Offset
			}
			marked, j.marked = true, m.N
			j.markAt, j.lastMark = r.Offset, m
		case codec.TypeCut:
			if err := codec.ParseCut(new(codec.Cut), r.Value); err != nil {
				return unlessForeign(err)
			}
			return errCuts
		case codec.TypeClass, codec.TypeEpoch:
			return j.readEpoch(r)
		case "":
			if err := codec.ParseFeedback(&f, r.Value); err != nil {
				return unlessForeign(err)
			}
			j.classAt = -1
			if n == 0 && f.N == 1 {
				marked = true // the whole log is here
			}
			n++
			j.lost.feedback(&f)
			if marked {
				j.heart.Resume(&f)
			} else {
				j.heart.Recall(&f)
			}
		}
		return nil
	})
	return marked, n, err
}

func (j *Joiner) readEpoch(r *stream.Record) error {
	if j.classAt < 0 {
		j.classAt = r.Offset
	}
	if r.Type == codec.TypeClass {
		return unlessForeign(j.epochs.addClass(r.Value))
	}
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return unlessForeign(err)
	}
	ep, err := j.epochs.addEpoch(&rec)
	first := j.classAt
	j.classAt = -1
	if errors.Is(err, errIncomplete) {
		return nil // it begins before the part of the log that was read; findEpochs has it
	}
	if err != nil {
		return err
	}
	if _, ok := j.offsets[ep.Number]; !ok {
		j.offsets[ep.Number] = first
	}
	return nil
}

// findEpochs reads the epochs that the last mark names and the tail did not hold.
func (j *Joiner) findEpochs(ctx context.Context) error {
	dropped := false
	for _, n := range slices.Sorted(maps.Keys(j.offsets)) {
		offset := j.offsets[n]
		if j.epochs.rules(n) != nil {
			continue
		}
		_, next, err := j.cfg.Log.Bounds(ctx, j.topics.Feedback, 0)
		if err != nil {
			return err
		}
		err = scan(ctx, j.cfg.Log, j.topics.Feedback, 0, offset, next, func(r *stream.Record) error {
			switch r.Type {
			case codec.TypeClass:
				return unlessForeign(j.epochs.addClass(r.Value))
			case codec.TypeEpoch:
				rec, err := codec.ParseEpoch(r.Value)
				if err != nil {
					return unlessForeign(err)
				}
				if _, err := j.epochs.addEpoch(&rec); err != nil {
					return err
				}
				return errStop
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("epoch %d: %w", n, err)
		}
		if j.epochs.rules(n) == nil {
			dropped = true
		}
	}
	if dropped {
		return j.epochsOfSnapshots(ctx)
	}
	return nil
}

func (j *Joiner) ack(_ uint64, offset int64, err error) {
	if err != nil {
		j.cfg.Metrics.AppendError(watch.FeedbackKind, err)
		j.fail(err)
		return
	}
	j.acked.Store(offset)
}

// rejectAck is the AckFunc of rejects.
func (j *Joiner) rejectAck(_ uint64, _ int64, err error) {
	j.cfg.Metrics.AppendError(watch.RejectsKind, err)
	j.fail(err)
}

func (j *Joiner) fail(err error) {
	if err != nil {
		j.failed.CompareAndSwap(nil, &err)
		j.wake()
	}
}

func (j *Joiner) wake() { signal(j.wakeup) }

// Epoch returns the number of the epoch at work.
func (j *Joiner) Epoch() int64 { return j.epochs.last.rec.Epoch }

// Heart returns the joiner's heart, for figures.
func (j *Joiner) Heart() *loop.Joiner { return j.heart }

// Close releases everything. What was not acknowledged is unknown.
func (j *Joiner) Close() {
	j.ended.Do(func() { close(j.over) })
	j.m.Close()
	for _, in := range slices.Concat(j.inputs, j.surplus.inputs[0], j.surplus.inputs[1]) {
		in.close()
	}
	if j.feedback != nil {
		j.feedback.Close()
	}
	if j.rejects != nil {
		j.rejects.Close()
	}
}
