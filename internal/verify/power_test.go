package verify

import (
	"errors"
	"os"
	"testing"

	"hindsight/internal/service"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// powerLoss ends everybody, takes a random part of the last records of each partition,
// and starts everybody again.
func (w *world) powerLoss() {
	w.j.Close()
	for _, d := range w.d {
		d.Close()
	}
	clear(w.d)
	w.j = nil
	for p := range w.parts {
		w.loseSome(w.ts.Contexts, p)
		w.loseSome(w.ts.Decisions, p)
		w.loseSome(w.ts.Outcomes, p)
		_, end, err := w.log.Bounds(w.ctx, w.ts.Decisions, p)
		w.no(err)
		w.read[p] = min(w.read[p], end)
	}
	w.loseSome(w.ts.Feedback, 0)
	w.loseSome(w.ts.Snapshots, 0)
	w.loseSome(w.ts.Rejects, 0)
	if w.rng.IntN(2) == 0 { // deciders that come first wait for the joiner
		for p := range w.parts {
			_, err := service.OpenDecider(w.ctx, w.deciderConfig(p))
			if err != nil && !errors.Is(err, stream.ErrUnavailable) {
				w.Fatal(err)
			}
		}
	}
	w.openJoiner()
	for p := range w.parts {
		w.openDecider(p)
	}
}

func (w *world) loseSome(topic string, p int) {
	var recs []stream.Record
	w.no(w.log.Edit(topic, p, func(r []stream.Record) []stream.Record { recs = r; return r }))
	if k := w.rng.IntN(min(len(recs), 12) + 1); k > 0 && w.rng.IntN(3) > 0 {
		w.no(w.log.DropTail(topic, p, recs[len(recs)-k].Offset))
	}
}

// tellsOfLoss reports whether any log tells of a loss.
func (w *world) tellsOfLoss() bool {
	for p := range w.parts {
		for _, r := range w.records(w.ts.Decisions, p) {
			if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark &&
				(err != nil || m.GapFrom+m.LearnedLost+m.ContextsLost > 0) {
				return true
			}
		}
	}
	for _, r := range w.records(w.ts.Feedback, 0) {
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark {
			if err != nil || m.Era > 0 {
				return true
			}
		}
	}
	return false
}

// What power failures took and the marks tell of is no difference, and what was
// decided and learned after it is checked like anything else.
func TestVerifyPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	seeds := 60
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds = 1500
	}
	played, tried, tooOld, checked := 0, 0, int64(0), int64(0)
	for seed := range daily.Seeds(t, seeds, 3) {
		played++
		w := newWorld(t, 1+int(seed%2), seed)
		w.encoding = codec.Encoding(seed / 4 % 2)
		w.use(int(seed/2) % len(worldModels))
		w.rounds(40)
		w.powerLoss()
		w.rounds(50)
		if !w.tellsOfLoss() {
			continue
		}
		tried++
		r := w.verify()
		if r.Differences > 0 {
			t.Errorf("seed %d: %s", seed, r.text())
			continue
		}
		tooOld += r.Decisions.TooOld + r.Feedback.TooOld
		checked += r.Decisions.Checked + r.Feedback.Checked
		w.flipLast(seed)
	}
	t.Logf("%d seeds: %d records checked, of %d it is not known what they follow from", tried, checked, tooOld)
	if tried < played/3 || tooOld == 0 || checked < 5*tooOld {
		t.Errorf("%d seeds: %d records checked, of %d it is not known what they follow from", tried, checked, tooOld)
	}
}

// flipLast changes the last decision and the last feedback: that is noticed, whatever
// was lost before.
func (w *world) flipLast(seed uint64) {
	for _, topic := range []string{w.ts.Decisions, w.ts.Feedback} {
		off := int64(-1)
		for _, r := range w.records(topic, 0) {
			if r.Type == "" {
				off = r.Offset
			}
		}
		restore := w.edit(topic, 0, off, func(r *stream.Record) { r.Value[len(r.Value)/2] ^= 1 })
		if w.verify().Differences == 0 {
			w.Errorf("seed %d: a flipped bit in %s went unnoticed", seed, topic)
		}
		restore()
	}
}
