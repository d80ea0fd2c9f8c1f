package service

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"

	"hindsight/internal/check"
	"hindsight/internal/follow"
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
	s.counted["cuts"] += r.Cuts
	if s.o.skew > 0 {
		s.counted["skewed cuts"] += r.Cuts
	}
	s.counted["snapshots"] += r.Snapshots
	s.counted["cut snapshots"] += r.Partial
	s.countReasons()
	s.counted["repeated rejects"] += r.Repeated
	s.counted["openings"] += r.Openings
	s.counted["epochs"] += r.Epochs
	s.counted["replies"] += len(s.users.replies())
	s.verifyOwners()
	s.verifyWhole()
	s.verifyStored()
	s.verifyReplicas()
}

func (s *sim) countReasons() {
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		var f codec.Feedback
		if r.Type != "" || codec.ParseFeedback(&f, r.Value) != nil {
			return
		}
		if f.Stage > 0 {
			s.counted["stages"]++
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
	return check.Options{Seed: simKey, Rules: simRules, OneClock: !s.o.backwards, Skew: s.o.skew, Order: writtenAs,
		Replies: s.users.replies()}
}

// writtenAs is the how manieth record of all that processes wrote it is.
func writtenAs(r *stream.Record) int64 {
	for _, h := range r.Headers {
		if h.Key == orderHeader {
			n, _ := strconv.ParseInt(h.Value, 10, 64)
			return n
		}
	}
	return 0
}

// records calls f for the records of a partition.
func (s *sim) records(topic string, partition int, f func(r *stream.Record)) {
	_, end, err := s.log.Bounds(s.ctx, topic, partition)
	if err == nil {
		err = stream.Scan(s.ctx, s.log, topic, partition, stream.Earliest, end,
			func(r *stream.Record) error { f(r); return nil })
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
			m, err := codec.ParseDecisionMark(r.Value)
			if r.Type == codec.TypeMark && (err != nil || m.GapFrom+m.ContextsLost+m.LearnedLost+m.Era > 0) {
				s.fatal("decisions[%d]@%d tells of a loss: %+v, %v", p, r.Offset, m, err)
			}
		})
	}
	s.records(s.topics.Feedback, 0, func(r *stream.Record) {
		m, err := codec.ParseFeedbackMark(r.Value)
		if r.Type != codec.TypeMark {
			return
		}
		if m.Era > 0 || err != nil {
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
	audit := follow.New(s.log, "m", s.build, s.o.partitions)
	snapshots := map[int64][]*follow.Snapshot{}
	err := follow.ReadSnapshots(s.ctx, s.log, s.topics, func(x *follow.Snapshot, err error) error {
		if err == nil {
			snapshots[x.Through<<8|x.Rec.Epoch] = append(snapshots[x.Through<<8|x.Rec.Epoch], x)
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
