package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"hindsight/internal/follow"
	"hindsight/internal/intake"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// A model has as many partitions as it began with: each epoch says so, and decisions are numbered and learned by them.
// An operator may add some to a topic all the same. Nothing that is put there is decided or joined: the joiner refuses
// it, with a reject each. How far it has come with that, the rejects themselves say.

// surplus are the partitions of contexts and outcomes beyond the model's.
type surplus struct {
	counts [2]atomic.Int64 // as the log told last, of contexts and of outcomes
	inputs [2][]*intake.Input
	from   map[stream.Place]int64 // by what is in rejects, which name kinds of topics; nil: not yet read
}

var surplusKinds = [2]string{watch.ContextsKind, watch.OutcomesKind}

func (j *Joiner) surplusTopic(i int) string {
	return [2]string{j.topics.Contexts, j.topics.Outcomes}[i]
}

// countPartitions asks how many partitions there are. It returns why the process is not ready where
// there are more than when it began: whoever starts it again knows of them.
func (j *Joiner) countPartitions(ctx context.Context) (why, err error) {
	for i := range surplusKinds {
		n, err := j.cfg.Log.Partitions(ctx, j.surplusTopic(i))
		if err != nil {
			return nil, err
		}
		was := &j.cfg.began[i]
		if was.CompareAndSwap(0, int64(n)) && n > j.cfg.Partitions {
			j.cfg.Logger.Warn("records in added partitions are refused",
				"topic", j.surplusTopic(i), "partitions", n, "of_the_model", j.cfg.Partitions)
		}
		if j.surplus.counts[i].Store(int64(n)); int64(n) > max(was.Load(), int64(j.cfg.Partitions)) {
			why = fmt.Errorf("%s has %d partitions by now, the model has %d for good: what is put to the others is "+
				"refused, see %s; have its producers started anew with those partitions only, then this process",
				j.surplusTopic(i), n, j.cfg.Partitions, j.topics.Rejects)
		}
	}
	return why, nil
}

// refuseSurplus refuses what has come to the partitions beyond the model's.
func (j *Joiner) refuseSurplus(ctx context.Context) error {
	s := &j.surplus
	for i := range surplusKinds {
		for p := j.cfg.Partitions + len(s.inputs[i]); p < int(s.counts[i].Load()); p++ {
			in, err := j.openSurplus(ctx, i, p)
			if err != nil {
				return err
			}
			s.inputs[i] = append(s.inputs[i], in)
		}
		for _, in := range s.inputs[i] {
			if err := j.refuseAll(ctx, in, surplusKinds[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Joiner) openSurplus(ctx context.Context, i, p int) (*intake.Input, error) {
	if err := j.readSurplus(ctx); err != nil {
		return nil, err
	}
	from, ok := j.surplus.from[stream.Place{Topic: surplusKinds[i], Partition: p}]
	if !ok {
		from = stream.Earliest
	}
	in, err := intake.Open(ctx, j.cfg.Log, j.surplusTopic(i), p, from)
	if errors.Is(err, stream.ErrTruncated) || errors.Is(err, stream.ErrAhead) {
		// its records are others than those that were refused
		in, err = intake.Open(ctx, j.cfg.Log, j.surplusTopic(i), p, stream.Earliest)
	}
	if err == nil && j.wall != nil { // it runs
		in.Start(ctx, j.wake)
	}
	return in, err
}

// readSurplus finds out how far the partitions have been refused.
func (j *Joiner) readSurplus(ctx context.Context) error {
	if j.surplus.from != nil {
		return nil
	}
	from := map[stream.Place]int64{}
	_, end, err := j.cfg.Log.Bounds(ctx, j.topics.Rejects, 0)
	if err != nil {
		return err
	}
	err = follow.ScanAll(ctx, j.cfg.Log, j.topics.Rejects, end, j.pause, func(r *stream.Record) error {
		if x, err := codec.ParseReject(r.Value); r.Type == "" && err == nil && x.Partition >= j.cfg.Partitions {
			at := stream.Place{Topic: x.Topic, Partition: x.Partition}
			from[at] = max(from[at], x.Offset+1)
		}
		return nil
	})
	if err == nil {
		j.surplus.from = from
	}
	return err
}

// refuseAll refuses the records of an input that are there.
func (j *Joiner) refuseAll(ctx context.Context, in *intake.Input, kind string) error {
	if err := in.Poll(ctx); err != nil || len(in.Batch) == 0 {
		return err
	}
	var rejects []codec.Reject
	why := fmt.Sprintf("partition %d was added: the model has 0 to %d", in.Partition, j.cfg.Partitions-1)
	for ; len(in.Batch) > 0; in.Batch = in.Batch[1:] {
		if r := &in.Batch[0]; r.Type == "" {
			rejects = append(rejects, codec.Reject{V: codec.Version, Topic: kind, Partition: in.Partition,
				Offset: r.Offset, Time: r.Time, Reason: codec.ReasonMalformed, Bytes: r.Value, Detail: why})
		}
	}
	return j.core.Refuse(ctx, rejects)
}
