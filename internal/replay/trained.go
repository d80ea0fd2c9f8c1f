package replay

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
)

// Trained returns the learner of a live system as it was after feedback at, in its
// epoch: from the newest snapshot that is not later, and the feedback behind that. At 0
// is as far as the log goes. It also returns how far that is.
func Trained(ctx context.Context, log stream.Log, name string, build service.Build, at int64) (ep loop.Epoch, through int64, err error) {
	partitions, err := log.Partitions(ctx, service.TopicsOf(name).Decisions)
	if err != nil {
		return ep, 0, err
	}
	goal := at
	if at == 0 {
		goal = math.MaxInt64
	}
	audit := service.NewAudit(log, name, build, partitions)
	best, err := lastSnapshot(ctx, log, name, goal)
	if err != nil {
		return ep, 0, err
	}
	from := stream.Earliest
	if best != nil {
		if err := audit.Restore(best); err != nil {
			return ep, 0, err
		}
		from = best.FeedbackFrom
	}
	heart := audit.Replica()
	follow := func(from int64) error {
		return stream.Scan(ctx, log, service.TopicsOf(name).Feedback, 0, from, math.MaxInt64, func(r *stream.Record) error {
			if heart.LearnedThrough() >= goal {
				return stream.ErrStop
			}
			return audit.Take(ctx, r)
		})
	}
	if err = follow(from); errors.Is(err, loop.ErrGap) && from != stream.Earliest {
		err = follow(stream.Earliest) // a snapshot's position is a hint; what is known is passed over
	}
	switch through = heart.LearnedThrough(); {
	case err != nil:
		return ep, 0, fmt.Errorf("learn the feedback of %s again: %w", name, err)
	case heart.Epoch() == nil:
		return ep, 0, fmt.Errorf("%s: %w", name, ErrNothing)
	case through < at:
		return ep, 0, fmt.Errorf("%s has feedback through %d, not %d", name, through, at)
	}
	return *heart.Epoch(), through, nil
}

// lastSnapshot returns the newest good snapshot of at most that much feedback, nil if
// there is none.
func lastSnapshot(ctx context.Context, log stream.Log, name string, most int64) (best *service.StoredSnapshot, err error) {
	err = service.ReadSnapshots(ctx, log, name, func(s *service.StoredSnapshot, damaged error) error {
		if damaged == nil && s.Through <= most && (best == nil || s.Through >= best.Through) {
			best = s
		}
		return nil
	})
	return best, err
}
