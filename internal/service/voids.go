package service

import (
	"context"
	"errors"
	"math"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// errVoid reports a snapshot whose feedback was lost and may have been given anew,
// otherwise.
var errVoid = errors.New("the feedback log had lost its tail behind it")

// lastMark returns the last mark of the feedback log, an empty one if there is none.
func lastMark(ctx context.Context, log stream.Log, topic string) (m codec.FeedbackMark, err error) {
	err = stream.ScanBack(ctx, log, topic, 0, math.MaxInt64, 1024, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		x, err := codec.ParseFeedbackMark(r.Value)
		if err == nil {
			m = x
		}
		return unlessForeign(err)
	}, func() bool { return m.V != 0 })
	return m, err
}
