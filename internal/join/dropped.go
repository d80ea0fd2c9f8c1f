package join

import (
	"context"
	"errors"
	"fmt"

	"hindsight/pkg/stream"
)

// LogStart is the highest offset at which a log begins that has lost nothing. Kafka's begin at 0,
// NATS's at 1; nothing of weight happens in less records than that.
const LogStart = 2

// AcceptLoss says how to go on all the same.
const AcceptLoss = "restore the log, or start with --accept-loss to go on without them"

// GoingOn is logged by who was told to.
const GoingOn = "going on without records, as --accept-loss says"

// Dropped makes the error for records that retention has dropped before they were read: offsets from to
// before first. what says which they are and why it matters.
func Dropped(topic string, partition int, from, first int64, what string) error {
	return &stream.Error{Op: "recover", Topic: topic, Partition: partition, Offset: from,
		Err: fmt.Errorf("%w: retention has dropped the records at offsets %d…%d, %s; %s", stream.ErrTruncated,
			from, first-1, what, AcceptLoss)}
}

// MissingFrom turns an error of reading at from into one that says up to where the records are gone, if
// that is what it is.
func MissingFrom(ctx context.Context, log stream.Log, topic string, partition int, from int64, err error,
	what string) error {
	if !errors.Is(err, stream.ErrTruncated) {
		return err
	}
	first, _, bounds := log.Bounds(ctx, topic, partition)
	if bounds != nil {
		return errors.Join(err, bounds)
	}
	return Dropped(topic, partition, from, first, what)
}
