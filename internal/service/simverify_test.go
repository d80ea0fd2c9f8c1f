package service

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"hindsight/internal/check"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func contextRecord(id string, data []byte) *stream.Record {
	return &stream.Record{Key: []byte(id), Value: data}
}

// verify checks every promise against the logs that the simulation left.
func (s *sim) verify() {
	if len(s.broken) > 0 {
		return
	}
	r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, s.checkOptions())
	if err != nil {
		s.fatal("%v", err)
		return
	}
	for _, v := range r.Violations {
		s.fatal("%s", v)
	}
	for k, n := range r.Fates {
		s.counted["fate "+k] += n
	}
	for k, n := range r.Rejects {
		s.counted["reject "+k] += n
	}
	s.counted["decisions"] += r.Decisions
	s.counted["snapshots"] += r.Snapshots
	s.counted["cut snapshots"] += r.Cut
	s.countReasons()
	s.counted["repeated rejects"] += r.Repeated
	s.counted["openings"] += r.Openings
	s.counted["epochs"] += r.Epochs
	s.counted["replies"] += len(s.users.replies())
	s.verifyOwners()
	s.verifyWhole()
	s.verifyStored()
	s.verifyReplicas()
	if s.o.strict {
		s.verifyJoiner()
		s.counted["joiners compared"]++
	}
}

func (s *sim) countReasons() {
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		var f codec.Feedback
		if r.Type != "" || codec.ParseFeedback(&f, r.Value) != nil {
			return
		}
		switch f.Reason {
		case codec.ReasonOverflow:
			s.counted["overflows"]++
		case codec.ReasonDuplicateID:
			s.counted["repeats in another partition"]++
		}
	})
	for _, r := range s.users.replies() {
		if bytes.Contains(r.Data, []byte(`"duplicate":true`)) {
			s.counted["duplicate replies"]++
		}
	}
}

func (s *sim) checkOptions() check.Options {
	return check.Options{Seed: simKey, Rules: simRules, LooseTime: s.o.backwards, Replies: s.users.replies()}
}

// records calls f for the records of a partition.
func (s *sim) records(topic string, partition int, f func(r *stream.Record)) {
	_, end, err := s.log.Bounds(s.ctx, topic, partition)
	if err == nil {
		err = scan(s.ctx, s.log, topic, partition, stream.Earliest, end, func(r *stream.Record) error { f(r); return nil })
	}
	if err != nil {
		s.fatal("%v", err)
	}
}

// verifyOwners checks that nothing lies behind an open record but what its opener
// wrote.
func (s *sim) verifyOwners() {
	look := func(topic string, p int) {
		owner := ""
		s.records(topic, p, func(r *stream.Record) {
			for _, h := range r.Headers {
				switch {
				case r.Type == stream.TypeOpen && h.Key == stream.HeaderOwner:
					owner = h.Value
				case h.Key == ownerHeader && h.Value != owner:
					s.fatal("%s[%d]@%d was written by %s, which %s had replaced", topic, p, r.Offset, h.Value, owner)
				}
			}
		})
	}
	look(s.topics.Feedback, 0)
	for p := range s.o.partitions {
		look(s.topics.Decisions, p)
	}
}

// verifyWhole checks that nobody saw a loss where there was none.
func (s *sim) verifyWhole() {
	for p := range s.o.partitions {
		s.records(s.topics.Decisions, p, func(r *stream.Record) {
			if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark && (err != nil || m.GapFrom+m.ContextsLost+m.LearnedLost > 0) {
				s.fatal("decisions[%d]@%d tells of a loss: %+v, %v", p, r.Offset, m, err)
			}
		})
	}
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		m, err := codec.ParseFeedbackMark(r.Value)
		if r.Type != codec.TypeMark {
			return
		}
		lost := m.Lost > 0 || len(m.Void) > 0
		for i := range m.Positions {
			lost = lost || m.Positions[i].OutcomesLost > 0
		}
		if lost || err != nil {
			s.fatal("feedback@%d tells of a loss: %+v, %v", r.Offset, m, err)
		}
	})
}

// verifyStored checks that outcomes that were acknowledged are in the log.
func (s *sim) verifyStored() {
	have := map[string]bool{}
	for p := range s.o.partitions {
		s.records(s.topics.Outcomes, p, func(r *stream.Record) {
			var o codec.Outcome
			if codec.ParseOutcome(&o, r.Value) == nil {
				have[string([]byte(o.OutcomeID))] = true
			}
		})
	}
	for _, id := range s.users.stored {
		if !have[id] {
			s.fatal("the outcome %s was acknowledged and is not in the log", id)
		}
	}
}

// verifyReplicas follows the feedback log with a fresh replica, and compares every
// state that a decider had, and every snapshot, with its own.
func (s *sim) verifyReplicas() {
	audit := NewAudit(s.log, "m", s.build, s.o.partitions)
	snapshots := map[int64][]*StoredSnapshot{}
	err := ReadSnapshots(s.ctx, s.log, "m", func(x *StoredSnapshot, err error) error {
		if err == nil {
			snapshots[x.Through<<8|x.Epoch] = append(snapshots[x.Through<<8|x.Epoch], x)
		}
		return err
	})
	if err != nil {
		s.fatal("snapshots: %v", err)
	}
	compared := 0
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		if r.Type != "" && r.Type != codec.TypeEpoch && r.Type != codec.TypeClass {
			return
		}
		if err := audit.Take(s.ctx, r); err != nil {
			s.fatal("replay of feedback@%d: %v", r.Offset, err)
			return
		}
		ep := audit.Replica().Epoch()
		if ep == nil {
			return
		}
		through := audit.Replica().LearnedThrough()
		b, _ := ep.Learner.AppendBinary(nil)
		if was, ok := s.states[through<<8|ep.Number]; ok {
			compared++
			if sum := fmt.Sprintf("%d/%x", ep.Number, sha256.Sum256(b)); sum != was {
				s.fatal("a decider's learner after feedback %d differs from a replay", through)
			}
		}
		for _, x := range snapshots[through<<8|ep.Number] {
			compared++
			if state, err := audit.AppendState(nil); err != nil || !bytes.Equal(state, x.Bytes) {
				s.fatal("the snapshot after feedback %d differs from a replay (%v)", through, err)
			}
		}
	})
	s.counted["states compared"] += compared
}

// event is a record of decisions or outcomes for a joiner.
type simEvent struct {
	at      int64 // log time, made monotone
	outcome bool
	place   loop.Place
	r       stream.Record
}

// verifyJoiner gives the decisions and outcomes to a joiner that never fails, in the
// order of log time, and compares its feedback with that of the log.
func (s *sim) verifyJoiner() {
	models := NewModels(s.build)
	var want, got []codec.Feedback
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		switch r.Type {
		case codec.TypeEpoch:
			if _, err := models.AddEpoch(r.Value); err != nil {
				s.fatal("%v", err)
			}
		case "":
			var f codec.Feedback
			if err := codec.ParseFeedback(&f, bytes.Clone(r.Value)); err != nil {
				s.fatal("%v", err)
			}
			got = append(got, f)
		}
	})
	j := loop.NewJoiner(loop.JoinerOptions{Partitions: s.o.partitions, MaxPending: s.o.pending, Dedup: 1 << 20}, models.Rules)
	var ready []codec.Feedback
	release := func() {
		ready = j.AppendReady(ready[:0])
		for i := range ready {
			var f codec.Feedback
			codec.ParseFeedback(&f, codec.AppendFeedback(nil, &ready[i]))
			want = append(want, f)
		}
		j.AppendRejects(nil)
	}
	for _, e := range s.events() {
		switch {
		case e.outcome:
			j.AddOutcome(e.place, e.r.Time, e.r.Value, join.CloudEventID(&e.r))
		case e.r.Type == "":
			if err := j.AddDecision(e.place, e.r.Time, e.r.Value); err != nil {
				s.fatal("replay of decisions: %v", err)
			}
		default:
			j.PassDecision(e.place, e.r.Time)
		}
		release()
	}
	j.Advance(loop.End)
	release()
	if len(want) != len(got) {
		s.fatal("the log holds %d feedbacks, a joiner without faults gives %d", len(got), len(want))
		return
	}
	if s.o.rules.Early { // a round that a crash takes the feedback of may change places with one that does not wait
		for _, fs := range [][]codec.Feedback{want, got} {
			slices.SortFunc(fs, func(a, b codec.Feedback) int {
				return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Round, b.Round))
			})
			for i := range fs {
				fs[i].N = 0
			}
		}
	}
	for i := range want {
		if !bytes.Equal(codec.AppendFeedback(nil, &want[i]), codec.AppendFeedback(nil, &got[i])) {
			s.fatal("feedback %d: the log has %+v, a joiner without faults gives %+v", i+1, got[i], want[i])
			return
		}
	}
}

// events returns all decisions and outcomes in the order of log time.
func (s *sim) events() (all []simEvent) {
	read := func(topic string, outcome bool) {
		for p := range s.o.partitions {
			var at int64
			s.records(topic, p, func(r *stream.Record) {
				at = max(at, r.Time)
				c := *r
				c.Value = bytes.Clone(r.Value)
				all = append(all, simEvent{at, outcome, loop.Place{Partition: p, Offset: r.Offset}, c})
			})
		}
	}
	read(s.topics.Decisions, false)
	read(s.topics.Outcomes, true)
	slices.SortStableFunc(all, func(a, b simEvent) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	return all
}
