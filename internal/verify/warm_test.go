package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

const warmBase = "name: m\nwindow: 150ns\n"

// announced makes a model the one at work, and lets some rounds pass.
func (w *world) announced(text string, rounds int) {
	w.Helper()
	w.name(text)
	w.openJoiner()
	w.pump()
	w.rounds(rounds)
}

// learners follows the feedback log and returns the learner's bytes by epoch and
// feedback learned.
func (w *world) learners() (states map[[2]int64][]byte, recs map[int64]codec.Epoch, last int64) {
	w.Helper()
	audit := follow.New(w.log, worldName, model.Epoch, w.parts)
	states, recs = map[[2]int64][]byte{}, map[int64]codec.Epoch{}
	w.no(stream.Scan(w.ctx, w.log, w.ts.Feedback, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if err := audit.Take(w.ctx, r); err != nil {
			return err
		}
		if r.Type == codec.TypeEpoch {
			rec, err := codec.ParseEpoch(r.Value)
			if err != nil {
				return err
			}
			recs[rec.Epoch] = rec
		}
		if ep := audit.Replica().Epoch(); ep != nil {
			b, err := ep.Learner.AppendBinary(nil)
			last = audit.Replica().LearnedThrough()
			states[[2]int64{ep.Number, last}] = b
			return err
		}
		return nil
	}))
	return states, recs, last
}

// byHand feeds all feedback through a number to a fresh learner of an epoch, as if all
// of it were the epoch's own.
func (w *world) byHand(rec codec.Epoch, through int64) []byte {
	w.Helper()
	ep, err := model.Epoch(&rec, nil)
	w.no(err)
	r := loop.NewReplica()
	r.Begin(ep)
	var f codec.Feedback
	w.no(stream.Scan(w.ctx, w.log, w.ts.Feedback, 0, stream.Earliest, math.MaxInt64, func(rec *stream.Record) error {
		if rec.Type != "" {
			return nil
		}
		if err := codec.ParseFeedback(&f, rec.Value); err != nil || f.N > through {
			return err
		}
		f.Epoch = ep.Number
		return r.Learn(&f, nil)
	}))
	b, err := ep.Learner.AppendBinary(nil)
	w.no(err)
	return b
}

func TestWarm(t *testing.T) {
	for parts := 1; parts <= 2; parts++ {
		if testing.Short() && parts == 1 {
			continue // two have all that one has
		}
		t.Run(fmt.Sprint("partitions=", parts), func(t *testing.T) {
			w := newWorld(t, parts, uint64(parts))
			w.name(warmBase + "version: 1\n")
			w.openJoiner()
			for p := range parts {
				w.openDecider(p)
			}
			w.rounds(80)
			w.announced(warmBase+"version: 2\nmax_features: 9\n", 60)
			w.announced(warmBase+"version: 3\nwarm: 30\n", 60) // back into epoch 1
			_, _, last := w.learners()
			w.announced(warmBase+fmt.Sprintf("version: 4\nwarm: %d\n", last-5), 60) // into a rollback
			w.announced(warmBase+"version: 5\nmax_features: 9\nwarm: refit\n", 60)
			states, recs, _ := w.learners()
			for _, want := range []struct{ epoch, of, through int64 }{{3, 1, 30}, {4, 3, recs[4].WarmTo}} {
				got := states[[2]int64{want.epoch, recs[want.epoch].Through}]
				if b := states[[2]int64{want.of, want.through}]; b == nil || !bytes.Equal(got, b) {
					t.Errorf("the learner of epoch %d does not begin as that of epoch %d after feedback %d", want.epoch,
						want.of,
						want.through)
				}
				if r := recs[want.epoch]; r.WarmEpoch != want.of || r.WarmFrom != 1 {
					t.Errorf("epoch %d starts from feedback %d of epoch %d", want.epoch, r.WarmFrom, r.WarmEpoch)
				}
			}
			through := recs[5].Through
			if got := states[[2]int64{5, through}]; !bytes.Equal(got, w.byHand(recs[5], through)) ||
				recs[5].WarmTo != through {
				t.Error("a learner that starts from all feedback is not that which is fed it by hand")
			}
			if bytes.Equal(states[[2]int64{3, recs[3].Through}], states[[2]int64{5, through}]) {
				t.Error("all states are equal: nothing was compared")
			}
			for p := range parts { // who begins with the log, or a snapshot, comes to the same
				w.openDecider(p)
			}
			w.rounds(40)
			if r := w.verify(); r.ExitCode() != Identical || r.Epochs.Checked != 5 || r.Snapshots.Checked < 5 ||
				r.Decisions.Checked < 200 {
				t.Errorf("%+v\n%+v", r, r.First)
			}
		})
	}
}

// Rounds that the new rules do not accept are passed over.
func TestWarmPassesOver(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.name(warmBase + "version: 1\n")
	w.openJoiner()
	w.openDecider(0)
	w.rounds(60)
	w.announced(warmBase+"version: 2\nwarm: refit\nactions: [a, c]\n", 20)
	states, recs, _ := w.learners()
	ep, err := model.Epoch(&codec.Epoch{Epoch: 2, Model: recs[2].Model}, nil)
	w.no(err)
	warm := loop.NewWarm(ep)
	var f codec.Feedback
	w.no(stream.Scan(w.ctx, w.log, w.ts.Feedback, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		if err := codec.ParseFeedback(&f, r.Value); err == nil && f.N <= recs[2].Through {
			warm.Refit(&f)
		}
		return nil
	}))
	if warm.Passed == 0 || warm.Learned == 0 || warm.Learned+warm.Passed != recs[2].Through {
		t.Errorf("%d learned and %d passed over of %d", warm.Learned, warm.Passed, recs[2].Through)
	}
	if b, err := ep.Learner.AppendBinary(nil); err != nil || !bytes.Equal(b, states[[2]int64{2, recs[2].Through}]) {
		t.Error("the learners differ", err)
	}
	if r := w.verify(); r.ExitCode() != Identical {
		t.Errorf("%+v\n%s", r.First, r.text())
	}
}

func TestWarmRefusals(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.name(warmBase + "version: 1\n")
	w.openJoiner()
	w.openDecider(0)
	w.rounds(60)
	_, _, last := w.learners()
	for _, c := range []struct{ text, want string }{
		{"warm: 1000000", fmt.Sprintf("warm: 1000000: the feedback log ends at %d;", last)},
		{"warm: 9\nlearner: uniform", "warm: 9 is a state of version 1 (epoch 1), of which learner: differs"},
		{"warm: 9\noracle: {kind: linear, lambda: 3}", "of which oracle: differs"},
		{"warm: 9\nexplore: cautious", "of which explore: differs"},
		{"warm: 9\nfeatures: {x: number}", "of which features: differs"},
		{"warm: 9\nactions: [a, b, c]", "of which actions: differs"},
		{"warm: 9\nloss: {min: 0, max: 2}", "of which loss: differs"},
		{"warm: refit\nloss: {min: 0, max: 2}", "losses of version 1 (epoch 1) are on another scale: loss: differs"},
		{"warm: refit\nreward: {min: 0, max: 1}", "are on another scale: loss: differs"},
	} {
		w.name(warmBase + "version: 2\n" + c.text)
		if err := w.tryJoiner(); !errors.Is(err, follow.ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	w.name(warmBase + "version: 2\nwarm: 9\n")
	w.openJoiner() // nothing that was refused is left in the log
	w.rounds(20)
	w.no(w.log.Trim(w.ctx, w.ts.Feedback, 0, 25))
	w.name(warmBase + "version: 3\nwarm: 9\n")
	if err := w.tryJoiner(); !errors.Is(err, follow.ErrModel) || !strings.Contains(err.Error(),
		"warm: 9: the feedback that led to it is no longer kept, the first that is kept is ") {
		t.Error(err)
	}
}
