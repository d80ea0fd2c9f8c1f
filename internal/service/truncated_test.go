package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// stoppedRig runs a rig for ten rounds and stops it, with a snapshot.
func stoppedRig(t *testing.T) *rig {
	r := newRig(t, func(r *rig) { r.dc.SnapshotEvery = 5 })
	r.rounds(0)
	return r
}

// rounds decides and joins ten rounds, writes a snapshot, and stops.
func (r *rig) rounds(from int) {
	r.t.Helper()
	for i := range 10 {
		id := fmt.Sprint(from + i)
		r.contexts(id)
		r.must(r.settle())
		r.outcomes(id)
		r.must(r.settle())
	}
	r.must(r.j.stop(r.t.Context()))
	r.must(r.settle())
	r.must(r.d.stop(r.t.Context()))
	r.j.Close()
	r.d.Close()
}

// end returns the end of a topic.
func (r *rig) end(topic string) int64 {
	r.t.Helper()
	_, next, err := r.log.Bounds(r.t.Context(), topic, 0)
	r.must(err)
	return next
}

// TestRetentionIsNamed cuts each log of a system that is stopped: what is missing is
// said with its range, and nothing is skipped unless one is told to.
func TestRetentionIsNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		cut    func(r *rig)
		says   string // of %d, the end of what is gone
		topic  func(join.Topics) string
		joiner bool // it is the joiner that refuses
		over   bool // told to, it goes on
	}{
		{"contexts", func(r *rig) {
			r.contexts("x", "y", "z")
			r.must(r.log.Truncate(r.topics.Contexts, 0, r.end(r.topics.Contexts)-1))
		}, "offsets 10…%d, which nobody has decided", func(t join.Topics) string { return t.Contexts }, false, true},
		{"decisions", func(r *rig) { r.must(r.log.Truncate(r.topics.Decisions, 0, r.end(r.topics.Decisions))) },
			"offsets 0…%d, and the last of them said", func(t join.Topics) string { return t.Decisions }, false, true},
		{"feedback", func(r *rig) { r.must(r.log.Truncate(r.topics.Feedback, 0, r.end(r.topics.Feedback))) },
			"offsets 0…%d, and with them what was joined", func(t join.Topics) string { return t.Feedback },
			true, true},
		{"outcomes", func(r *rig) {
			r.outcomes("1", "2")
			r.must(r.log.Truncate(r.topics.Outcomes, 0, r.end(r.topics.Outcomes)-1))
		}, "offsets 10…%d, which waiting rounds may need", func(t join.Topics) string { return t.Outcomes },
			true, true},
		{"feedback and snapshots", func(r *rig) {
			r.must(r.log.Truncate(r.topics.Feedback, 0, r.end(r.topics.Feedback)-1))
			r.must(r.log.Truncate(r.topics.Snapshots, 0, r.end(r.topics.Snapshots)))
		}, "dropped feedback 1…10", nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := stoppedRig(t)
			c.cut(r)
			says := c.says
			if c.topic != nil {
				first, _, err := r.log.Bounds(t.Context(), c.topic(r.topics), 0)
				r.must(err)
				says = fmt.Sprintf(c.says, first-1)
			}
			var err error
			if c.joiner {
				_, err = OpenJoiner(t.Context(), r.jc)
			} else {
				_, err = OpenDecider(t.Context(), r.dc)
			}
			if !errors.Is(err, stream.ErrTruncated) || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%v, want %q", err, says)
			}
			if !c.over {
				return
			}
			r.jc.AcceptLoss, r.dc.AcceptLoss = true, true
			r.open()
			r.contexts("later")
			r.must(r.settle())
			decisions := 0
			r.must(stream.Scan(t.Context(), r.log, r.topics.Decisions, 0, stream.Earliest, 1<<62,
				func(rec *stream.Record) error {
					var d codec.Decision
					if rec.Type != "" {
						return nil
					}
					err := codec.ParseDecision(&d, rec.Value)
					if d.ID == plantedText+"later" {
						decisions++
					}
					return err
				}))
			if decisions != 1 {
				t.Errorf("the next context was decided %d times", decisions)
			}
		})
	}
}

// TestRetentionDropsEpochs drops the record of the epoch at work: the snapshots have it.
// Without them another one begins, and never one whose number was used.
func TestRetentionDropsEpochs(t *testing.T) {
	r := stoppedRig(t)
	r.jc.Source.Version, r.jc.Source.Model = 2, []byte("y")
	r.open()
	r.rounds(10)
	r.must(r.log.Truncate(r.topics.Feedback, 0, r.end(r.topics.Feedback)-1))
	epoch := func(version int64, text string) (int64, error) {
		t.Helper()
		cfg := r.jc
		cfg.Source = &follow.Source{Name: "m", Version: version, Model: []byte(text)}
		j, err := OpenJoiner(t.Context(), cfg)
		if err != nil {
			return 0, err
		}
		defer j.Close()
		return j.Epoch(), nil
	}
	before := r.end(r.topics.Feedback)
	if n, err := epoch(2, "y"); n != 2 || err != nil || r.end(r.topics.Feedback) != before+2 {
		t.Errorf("epoch %d, %v, and %d records more in feedback; want epoch 2 to go on", n, err,
			r.end(r.topics.Feedback)-before-2)
	}
	if _, err := epoch(2, "z"); !errors.Is(err, follow.ErrModel) {
		t.Errorf("another model of the same version: %v", err)
	}
	r.must(r.log.Truncate(r.topics.Snapshots, 0, r.end(r.topics.Snapshots)))
	if n, err := epoch(2, "y"); n != 3 || err != nil {
		t.Errorf("without snapshots: epoch %d, %v; want 3", n, err)
	}
}

// TestSnapshotByAge holds that feedback that is few does not grow old without a snapshot.
func TestSnapshotByAge(t *testing.T) {
	r := newRig(t, func(r *rig) { r.dc.SnapshotEvery = 1000 })
	learn := func(id string) int {
		r.contexts(id)
		r.must(r.settle())
		r.outcomes(id)
		r.must(r.settle())
		return len(r.d.snapshot)
	}
	if n := learn("1"); n != 0 {
		t.Errorf("%d snapshots after one feedback", n)
	}
	r.d.snapAt = r.d.snapAt.Add(-markInterval)
	if n := learn("2"); n != 1 {
		t.Errorf("%d snapshots an hour after the last", n)
	}
}

// TestIdleJoinerMarks holds that the feedback log has a mark that is younger than any
// retention, though nothing happens.
func TestIdleJoinerMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.must(r.settle())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.j.Run(ctx) }()
		before := r.end(r.topics.Feedback)
		time.Sleep(3*markInterval + time.Second) // of the bubble's clock
		if n := r.end(r.topics.Feedback) - before; n != 3 {
			t.Errorf("%d marks in three hours", n)
		}
		cancel()
		r.must(<-ended)
	})
}
