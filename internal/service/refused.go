package service

import (
	"context"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// ClockSkew is by how much the log times of two partitions may differ, in ns: they are of
// the clocks of servers of one cluster, which no cluster that works has seconds apart. Who
// looks for records by their time reads so much more than is needed.
const ClockSkew = int64(10 * time.Second)

// tellRejects stores a mark before the rejects of a step. The log of rejects has no fence,
// that of feedback has: a joiner that was replaced cannot store the mark, and the next one
// knows of rejects that are still on their way.
func (j *Joiner) tellRejects(ctx context.Context) error {
	if !j.heart.NeedsMark() {
		return nil
	}
	m := j.heart.MarkRejects()
	if err := j.appendMark(ctx, &m); err != nil {
		return err
	}
	return j.feedback.Flush(ctx)
}

// readRejects tells the heart of the rejects that are stored of outcomes that it is to
// read again: they are final.
func (j *Joiner) readRejects(ctx context.Context) error {
	first, end, err := j.cfg.Log.Bounds(ctx, j.topics.Rejects, 0)
	if err != nil {
		return err
	}
	from, err := startBefore(ctx, j.cfg.Log, j.topics.Rejects, first, end, j.heart.RefusedSince()-ClockSkew)
	if err != nil {
		return err
	}
	return scan(ctx, j.cfg.Log, j.topics.Rejects, 0, from, end, func(r *stream.Record) error {
		if x, err := codec.ParseReject(r.Value); r.Type == "" && err == nil {
			j.heart.Refuse(&x)
		}
		return nil
	})
}

// startBefore returns an offset in partition 0 of a topic before which all records were
// appended before a log time. It reads few records, and few beyond that offset are earlier.
func startBefore(ctx context.Context, log stream.Log, topic string, first, end, at int64) (int64, error) {
	const few = 1024
	earlier := func(offset int64) (early bool, err error) {
		err = scan(ctx, log, topic, 0, offset, end, func(r *stream.Record) error {
			early = r.Time < at
			return errStop
		})
		return early, err
	}
	from, late := max(first, end-few), end
	for from > first {
		early, err := earlier(from)
		if err != nil {
			return 0, err
		}
		if early {
			break
		}
		from, late = max(first, end-8*(end-from)), from
	}
	for late-from > few {
		middle := from + (late-from)/2
		early, err := earlier(middle)
		if err != nil {
			return 0, err
		}
		if early {
			from = middle
		} else {
			late = middle
		}
	}
	return from, nil
}
