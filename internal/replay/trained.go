package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/stream"
)

// TrainedLearner is the learner of a live system as it was.
type TrainedLearner struct {
	Epoch   loop.Epoch
	Through int64  // feedbacks
	Digest  string // SHA-256 of a snapshot of it, model and all
}

// Trained returns the learner of a live system as it was after feedback at, in its epoch: from the newest snapshot that
// is not later, and the feedback behind that. At 0 is as far as the log goes.
func Trained(ctx context.Context, log stream.Log, name string, build follow.Build, at int64) (*TrainedLearner, error) {
	partitions, err := topics.Partitions(ctx, log, name)
	if err != nil {
		return nil, err
	}
	goal := at
	if at == 0 {
		goal = math.MaxInt64
	}
	audit := follow.New(log, name, build, partitions)
	best, err := lastSnapshot(ctx, log, name, goal)
	if err != nil {
		return nil, err
	}
	from := stream.Earliest
	if best != nil {
		if err := audit.Restore(best); err != nil {
			return nil, err
		}
		from = best.FeedbackFrom
	}
	heart := audit.Replica()
	learn := func(from int64) error {
		return stream.Scan(ctx, log, join.TopicsOf(name).Feedback, 0, from, math.MaxInt64,
			func(r *stream.Record) error {
				if heart.LearnedThrough() >= goal {
					return stream.ErrStop
				}
				return audit.Take(ctx, r)
			})
	}
	if err = learn(from); errors.Is(err, loop.ErrGap) && from != stream.Earliest {
		err = learn(stream.Earliest) // a snapshot's position is a hint; what is known is passed over
	}
	switch through := heart.LearnedThrough(); {
	case err != nil:
		return nil, fmt.Errorf("learn the feedback of %s again: %w", name, err)
	case heart.Epoch() == nil:
		return nil, fmt.Errorf("%s: %w", name, follow.ErrNoModel)
	case through < at:
		return nil, fmt.Errorf("%s has feedback through %d, not %d", name, through, at)
	}
	state, err := audit.AppendState(nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(state)
	return &TrainedLearner{Epoch: *heart.Epoch(), Through: heart.LearnedThrough(), Digest: hex.EncodeToString(sum[:])},
		nil
}

// lastSnapshot returns the newest good snapshot of at most that much feedback, nil if there is none.
func lastSnapshot(ctx context.Context, log stream.Log, name string, most int64) (best *follow.Snapshot, err error) {
	err = follow.ReadSnapshots(ctx, log, join.TopicsOf(name), func(s *follow.Snapshot, damaged error) error {
		if damaged == nil && s.Through <= most && (best == nil || s.Through >= best.Through) {
			best = s
		}
		return nil
	})
	return best, err
}
