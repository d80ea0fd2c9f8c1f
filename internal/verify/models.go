package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// epochInfo is a model of the log.
type epochInfo struct {
	rules *loop.Rules
	// check decides what a context is worth under this model, apart from the learner that is recomputed.
	check   *loop.Decider
	replica *loop.Replica // of check: it has learned nothing
	since   int64         // the epoch whose learner it goes on with; 0: its own
}

// startPoint is where recomputing may begin: an epoch record.
type startPoint struct {
	offset  int64 // of its first class record, or of itself
	epoch   int64
	through int64
	warm    int64 // the first feedback that it starts from; 0: none
	goesOn  bool  // with the learner of the epoch before it: nothing can begin here
}

// modelReader reads the models that the feedback log announces, ahead of all else where the
// log has lost its beginning, otherwise as the check of decisions comes to them.
type modelReader struct {
	v       *verification
	models  *follow.Epochs
	epochs  map[int64]*epochInfo
	ahead   bool  // all was read
	classAt int64 // of the first of the class records read last; 0: none, or the log has lost nothing
	f       codec.Feedback
	recs    []codec.Epoch
	starts  []startPoint // the epochs kept, in order

	firstN, lastN int64 // of the feedback read that was not learned; 0: none
	last          int64 // epoch
	marked        int64 // the last epoch that a mark tells of
	era           int64
	eras          []codec.EraStart // as the last mark says
	others        bool             // an era has begun since the last epoch: the records of others may be gone
}

func newModelReader(v *verification) modelReader {
	return modelReader{v: v, models: follow.NewEpochs(v.Build), epochs: map[int64]*epochInfo{}}
}

// none reports whether no model was found.
func (m *modelReader) none() bool { return len(m.epochs) == 0 }

// add notes a model.
func (m *modelReader) add(ep loop.Epoch) error {
	r, since := loop.NewReplica(), ep.Since
	ep.Since = 0 // to judge contexts it needs no past
	if err := r.Begin(ep); err != nil {
		return err
	}
	check := loop.NewDecider(r, m.v.Seed, m.v.Name, 0, 1)
	check.Partitions = m.v.partitions
	m.epochs[ep.Number] = &epochInfo{rules: ep.Rules, check: check, replica: r, since: since}
	return nil
}

// readAhead reads all models if the log has lost its beginning: where recomputing can begin has to be found.
func (m *modelReader) readAhead(ctx context.Context, feedback *logCursor) error {
	if !feedback.cut() {
		return nil
	}
	c := *feedback
	if err := c.walk(ctx, func(r *stream.Record) error { return m.take(&c, r) }); err != nil {
		return err
	}
	m.ahead = true
	return nil
}

// take takes the next record of the feedback log.
func (m *modelReader) take(c *logCursor, r *stream.Record) error {
	if m.ahead {
		return nil
	}
	switch r.Type {
	case "":
		m.classAt = 0
		if codec.ParseFeedback(&m.f, r.Value) != nil {
			return nil // reported where it is checked
		}
		if m.firstN == 0 {
			m.firstN = m.f.N
		}
		m.lastN = max(m.lastN, m.f.N)
	case codec.TypeMark:
		mark, err := codec.ParseFeedbackMark(r.Value)
		if k := len(mark.Epochs); err == nil && k > 0 {
			m.marked = max(m.marked, mark.Epochs[k-1].Epoch)
		}
		if err == nil {
			m.era, m.eras, m.others = max(m.era, mark.Era), mark.Eras, m.others || mark.Era > m.era
		}
	case codec.TypeClass:
		m.classAt = cmp.Or(m.classAt, r.Offset)
		if err := m.models.AddClass(r.Value); err != nil {
			return m.v.unread(c, r, "class", "a class record", err, 0)
		}
	case codec.TypeEpoch:
		first := cmp.Or(m.classAt, r.Offset)
		m.classAt = 0
		return m.epoch(c, r, first)
	}
	return nil
}

// epoch takes an epoch record whose class records begin at first.
func (m *modelReader) epoch(c *logCursor, r *stream.Record, first int64) error {
	v := m.v
	v.report.Epochs.Records++
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return v.unread(c, r, "epoch", "an epoch record", err, 0)
	}
	if rec.SeedHash != loop.SeedHash(v.Seed) {
		return fmt.Errorf("epoch %d: %w", rec.Epoch, errSeed)
	}
	fields := []pair{{"name", v.Name, rec.Name}, {"partitions", v.partitions, rec.Partitions}}
	others := m.last == 0 && c.cut() || (m.others || rec.Lost()) && rec.Epoch > m.last
	if m.others = false; !others {
		fields = append(fields, pair{"epoch", m.last + 1, rec.Epoch})
	}
	if field, want, got := firstUnequal(fields); field != "" {
		v.differ(at(c, r, field, want, got))
	}
	if rec.Epoch > m.last {
		if field, want, got := follow.CheckWarm(&rec, m.recs); field != "" {
			v.differ(at(c, r, field, want, got))
		}
		m.recs, m.last = append(m.recs, rec), rec.Epoch
	}
	ep, err := m.models.AddEpoch(r.Value)
	switch {
	case errors.Is(err, codec.ErrCorrupt):
		if c.cut() && first <= c.first {
			v.report.Epochs.TooOld++ // its class records may be gone
			return nil
		}
		v.differ(at(c, r, "files", "a model that has its SHA-256, and its files", err))
		return nil
	case err != nil:
		return err
	case ep.Learner == nil: // a repeat
		return nil
	}
	v.report.Epochs.Checked++
	m.starts = append(m.starts, startPoint{first, rec.Epoch, rec.Through, rec.WarmFrom, rec.Continues > 0})
	return m.add(ep) // the log's own is better than a snapshot's copy
}

// begun returns the last epoch that begins before more than so much feedback, as far as models are known. Where those
// before the first that is kept began, nobody knows.
func (m *modelReader) begun(through int64) (epoch int64) {
	if m.ahead && len(m.starts) == 0 {
		return math.MaxInt64
	}
	for i, e := range m.starts {
		if i == 0 {
			epoch = e.epoch - 1
		}
		if e.through <= through {
			epoch = e.epoch
		}
	}
	return epoch
}

// eraBefore brings a replica, which has learned all before a feedback, to the era in which that was written.
func (m *modelReader) eraBefore(r *loop.Replica, n int64) (era int64) {
	for _, e := range m.eras {
		if e.N < n {
			r.BeginEra(e.Era)
		}
	}
	return r.Era()
}

// unknownAfter reports whether the record of the epoch after one is gone: a snapshot of it leads nowhere.
func (m *modelReader) unknownAfter(epoch int64) bool {
	for _, e := range m.starts {
		if e.epoch > epoch {
			return e.epoch > epoch+1
		}
	}
	return m.marked > epoch
}

// start says where recomputing begins in a log that has lost its beginning: at the first epoch, or the oldest snapshot
// whose later feedback is all kept. Both are nil if there is no such place.
func (m *modelReader) start() (from *startPoint, snap *snapshotInfo) {
	least := int64(0)
	for i := range m.starts {
		switch e := &m.starts[i]; {
		case e.warm > 0 && (m.firstN == 0 || e.warm < m.firstN): // what it started from is gone
			from, least = nil, e.epoch
		case from == nil && !e.goesOn:
			from = e
		}
	}
	if from != nil && m.firstN == 1 && from.through == 0 {
		return from, nil
	}
	for _, c := range m.v.snapshots {
		if c.epoch < least || m.unknownAfter(c.epoch) || m.firstN > 0 && (c.through < m.firstN-1 ||
			c.through > m.lastN) {
			continue
		}
		// Without any feedback the last snapshot is the state of all that is left.
		if snap == nil || c.place.before(snap.place) == (m.firstN > 0) {
			snap = c
		}
	}
	if from != nil && (snap == nil || from.through < snap.through) {
		return from, nil
	}
	return nil, snap
}
