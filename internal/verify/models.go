package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// epochInfo is a model of the log.
type epochInfo struct {
	rules *loop.Rules
	// check decides what a context is worth under this model, apart from the
	// learner that is recomputed.
	check   *loop.Decider
	replica *loop.Replica // of check: it has learned nothing
}

// feedbackSurvey is what one look over the feedback log tells.
type feedbackSurvey struct {
	firstN, lastN int64        // of the feedback kept; 0: none
	starts        []startPoint // the epochs kept, in order
	last          int64        // the last epoch
	marked        int64        // the last that a mark tells of
}

// survey is what is known so far of the feedback log, for both checks.
type survey struct {
	mu sync.Mutex
	s  feedbackSurvey
}

func (s *survey) now() feedbackSurvey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

func (s *survey) note(f func(s *feedbackSurvey)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

// epochTable holds the models of the log for both checks.
type epochTable struct {
	mu  sync.RWMutex
	all map[int64]*epochInfo
}

// get returns an epoch, nil if it is not known.
func (t *epochTable) get(epoch int64) *epochInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[epoch]
}

// set replaces what is known of an epoch.
func (t *epochTable) set(epoch int64, e *epochInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[int64]*epochInfo{}
	}
	t.all[epoch] = e
}

// startPoint is where recomputing may begin: an epoch record.
type startPoint struct {
	offset  int64 // of its first class record, or of itself
	epoch   int64
	through int64
	warm    int64 // the first feedback that it starts from; 0: none
	goesOn  bool  // with the learner of the epoch before it: nothing can begin here
}

// snapshotInfo is a snapshot without its bytes.
type snapshotInfo struct {
	offset, time   int64
	epoch, through int64
	feedbackFrom   int64
	rounds         []int64
	sum            [sha256.Size]byte
	stored         *service.StoredSnapshot // with its bytes; nil: it was too large to be kept
	checked        bool
}

// keptSnapshots is how many bytes of snapshots are kept in memory: a running system drops
// the old ones, and verifying may begin with one of them much later than it was read.
const keptSnapshots = 64 << 20

// before orders by what was learned.
func (s *snapshotInfo) before(through, epoch int64) bool {
	return s.through < through || s.through == through && s.epoch < epoch
}

// readSnapshots reads the snapshots and keeps their hashes.
func (v *verification) readSnapshots(ctx context.Context) error {
	c, err := v.openCursor(ctx, v.topics.Snapshots, 0)
	if err != nil {
		return err
	}
	times, kept := map[int64]int64{}, 0
	err = c.walk(ctx, func(r *stream.Record) error {
		times[r.Offset] = r.Time
		if r.Type != "" && r.Type != codec.TypeOpen {
			v.differ(at(c, r, "type", "none", r.Type))
		}
		c.keyless(v, r)
		return nil
	})
	if err != nil {
		return err
	}
	err = service.ReadSnapshots(ctx, v.Log, v.Name, func(s *service.StoredSnapshot, err error) error {
		where := Difference{Topic: c.topic, Offset: s.Offset, Time: times[s.Offset], Field: "bytes"}
		v.report.Snapshots.Records++
		if err == nil && v.epochs.get(s.Epoch) == nil {
			var ep loop.Epoch
			if ep, err = v.models.AddSnapshot(s); err == nil {
				err = v.addEpoch(ep)
			}
		}
		if newer(err) {
			return c.failed(s.Offset, err)
		}
		if err != nil {
			where.Want, where.Got = "a snapshot that can be read", err.Error()
			v.differ(where)
			return nil
		}
		info := &snapshotInfo{offset: s.Offset, time: times[s.Offset], epoch: s.Epoch, through: s.Through,
			feedbackFrom: s.FeedbackFrom, rounds: s.Rounds, sum: sha256.Sum256(s.Bytes)}
		if kept += len(s.Bytes); kept <= keptSnapshots {
			info.stored = s
		}
		v.snapshots = append(v.snapshots, info)
		return nil
	})
	if broken(err) { // the feedback log, whose last mark says which snapshots are void
		feedback, err := v.openCursor(ctx, v.topics.Feedback, 0)
		if err != nil {
			return err
		}
		if err := feedback.walk(ctx, func(*stream.Record) error { return nil }); err != nil { // finds the place
			return err
		}
	}
	return err
}

// addEpoch notes a model.
func (v *verification) addEpoch(ep loop.Epoch) error {
	r := loop.NewReplica()
	ep.Since = 0 // to judge contexts it needs no past
	if err := r.Begin(ep); err != nil {
		return err
	}
	v.epochs.set(ep.Number, &epochInfo{rules: ep.Rules, check: loop.NewDecider(r, v.Seed, v.Name, 0, 1), replica: r})
	return nil
}

// readModels looks over the feedback log for the models it announces.
func (v *verification) readModels(ctx context.Context, end int64) error {
	c, err := v.openCursor(ctx, v.topics.Feedback, 0)
	if err != nil {
		return err
	}
	c.end = end
	if err := c.walk(ctx, newModelReader(v, c, &v.losses).take); err != nil {
		return err
	}
	if len(v.epochs.all) == 0 && v.report.Differences == 0 && !c.cut() {
		return service.ErrNoModel
	}
	return nil
}

type modelReader struct {
	v       *verification
	c       *logCursor
	models  *service.Models
	losses  *losses
	classAt int64 // of the first of the class records read last; -1: none
	f       codec.Feedback
	last    int64 // epoch
	recs    []codec.Epoch
}

func newModelReader(v *verification, c *logCursor, l *losses) *modelReader {
	return &modelReader{v: v, c: c, models: service.NewModels(v.Build), losses: l, classAt: -1}
}

func (m *modelReader) take(r *stream.Record) error {
	v := m.v
	switch r.Type {
	case "":
		m.losses.saw(-1, r.Time)
		m.classAt = -1
		if codec.ParseFeedback(&m.f, r.Value) != nil {
			return nil // reported where it is checked
		}
		v.survey.note(func(s *feedbackSurvey) {
			if s.firstN == 0 {
				s.firstN = m.f.N
			}
			s.lastN = max(s.lastN, m.f.N)
		})
	case codec.TypeMark:
		m.losses.readMark(r)
		if mark, err := codec.ParseFeedbackMark(r.Value); err == nil && len(mark.Epochs) > 0 {
			v.survey.note(func(s *feedbackSurvey) { s.marked = max(s.marked, mark.Epochs[len(mark.Epochs)-1].Epoch) })
		}
	case codec.TypeClass:
		if m.classAt < 0 {
			m.classAt = r.Offset
		}
		if err := m.models.AddClass(r.Value); err != nil {
			return v.unread(m.c, r, "class", "a class record", err, 0)
		}
	case codec.TypeEpoch:
		first := m.classAt
		m.classAt = -1
		if first < 0 {
			first = r.Offset
		}
		return m.epoch(r, first)
	}
	return nil
}

// epoch takes an epoch record whose class records begin at first.
func (m *modelReader) epoch(r *stream.Record, first int64) error {
	v := m.v
	v.report.Epochs.Records++
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return v.unread(m.c, r, "epoch", "an epoch record", err, 0)
	}
	if rec.SeedHash != loop.SeedHash(v.Seed) {
		return fmt.Errorf("epoch %d: %w", rec.Epoch, ErrSeed)
	}
	for _, f := range []struct {
		field     string
		want, got any
	}{
		{"epoch", m.last + 1, rec.Epoch}, {"name", v.Name, rec.Name}, {"partitions", v.partitions, rec.Partitions},
	} {
		if f.field == "epoch" && (m.last == 0 && m.c.cut() || rec.Cause == "lost" && rec.Epoch > m.last) {
			continue // others may be lost with it
		}
		if f.want != f.got {
			v.differ(at(m.c, r, f.field, f.want, f.got))
		}
	}
	if rec.Epoch > m.last {
		if field, want, got := service.CheckWarm(&rec, m.recs); field != "" {
			v.differ(at(m.c, r, field, want, got))
		}
		m.recs = append(m.recs, rec)
	}
	m.last = max(m.last, rec.Epoch)
	v.survey.note(func(s *feedbackSurvey) { s.last = m.last })
	ep, err := m.models.AddEpoch(r.Value)
	switch {
	case errors.Is(err, codec.ErrCorrupt):
		if m.c.cut() && first <= m.c.first {
			v.report.Epochs.TooOld++ // its class records may be gone
			return nil
		}
		v.differ(at(m.c, r, "files", "a model that has its SHA-256, and its files", err))
		return nil
	case err != nil:
		return err
	case ep.Learner == nil: // a repeat
		return nil
	}
	v.report.Epochs.Checked++
	v.survey.note(func(s *feedbackSurvey) {
		s.starts = append(s.starts, startPoint{first, rec.Epoch, rec.Through, rec.WarmFrom, rec.Continues > 0})
	})
	return v.addEpoch(ep) // the log's own is better than a snapshot's copy
}

// unknownAfter reports whether the record of the epoch after one is gone: a snapshot of it
// leads nowhere.
func (s *feedbackSurvey) unknownAfter(epoch int64) bool {
	for _, e := range s.starts {
		if e.epoch > epoch {
			return e.epoch > epoch+1
		}
	}
	return s.marked > epoch
}

// start says where recomputing begins: at the log's beginning, else at the first
// epoch, or the oldest snapshot whose later feedback is all kept. Both are nil if
// there is no such place.
func (v *verification) start(cut bool) (from *startPoint, snap *snapshotInfo) {
	s := v.survey.now()
	starts, least := s.starts, int64(0)
	for i, e := range s.starts {
		if cut && e.warm > 0 && (s.firstN == 0 || e.warm < s.firstN) { // what it started from is gone
			starts, least = s.starts[i+1:], e.epoch
		}
	}
	if i := slices.IndexFunc(starts, func(e startPoint) bool { return !e.goesOn }); i >= 0 {
		from = &starts[i]
	}
	if !cut || s.firstN == 1 && from != nil && from.through == 0 {
		return from, nil
	}
	for _, c := range v.snapshots {
		if c.epoch < least || s.unknownAfter(c.epoch) {
			continue
		}
		if s.firstN > 0 && (c.through < s.firstN-1 || c.through > s.lastN) {
			continue
		}
		// Without any feedback the last snapshot is the state of all that is left.
		if snap == nil || c.before(snap.through, snap.epoch) == (s.firstN > 0) {
			snap = c
		}
	}
	if from != nil && (snap == nil || from.through < snap.through) {
		return from, nil
	}
	return nil, snap
}
