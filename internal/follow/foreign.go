package follow

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Only the service writes decisions and feedback. What somebody else put there all the same is passed over by
// everybody, wherever and whenever they read it, so that all come to the same. A record of ours that is damaged is
// passed over, too. Where that is a decision or a feedback the next one leaves a gap, which nobody passes over. Control
// records are not numbered, and leave none: a restart goes on from the mark before a damaged one, and a damaged epoch,
// a pause for instance, has not begun for anybody who reads it so.

// tellEvery is how often foreign records are logged. All are counted.
const tellEvery = 10 * time.Second

// Strangers counts and tells of the foreign records that one part of a process meets: the
// joiner follows decisions, and a decider feedback.
type Strangers struct {
	logger *slog.Logger
	count  prometheus.Counter
	told   time.Time // zero: never
	untold int       // since
}

// NewStrangers returns a count of foreign records.
func NewStrangers(m *watch.Metrics, logger *slog.Logger) *Strangers {
	return &Strangers{logger: logger, count: m.Foreign()}
}

// Pass is [codec.UnlessForeign] and logs it. s may be nil: disabled.
func (s *Strangers) Pass(topic string, partition int, r *stream.Record, err error) error {
	if !codec.Foreign(err) || s == nil {
		return codec.UnlessForeign(err)
	}
	s.count.Inc()
	now := time.Now()
	if now.Sub(s.told) < tellEvery {
		s.untold++
		return nil
	}
	s.logger.Error("a record that the service did not write is passed over: take the right to write there from all "+
		"others", "topic", topic, "partition", partition, "offset", r.Offset, "error", err, "untold", s.untold)
	s.told, s.untold = now, 0
	return nil
}
