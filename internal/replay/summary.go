package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Summary is what the logs of a live system say about a run. Of several partitions the
// rounds are in the order of their log times.
type Summary struct {
	Rounds      int64 // that have their feedback
	Pending     int64 // that wait for it
	Fates       Fates
	LateLosses  latelosses.Comparison
	Delays      delay.Report
	Certificate certify.Certificate
	Bins        []delay.Bin // the histogram of delays

	finals   Finals
	outcomes outcomeCounts // that the model names
	late     latelosses.ByOutcome
}

// Summarize reads the logs of a model and learns all of its feedback with a replica of its own.
func Summarize(ctx context.Context, log stream.Log, name, spec string, build follow.Build) (*Summary, error) {
	t := join.TopicsOf(name)
	s := &Summary{outcomes: outcomeCounts{}}
	partitions, err := topics.Partitions(ctx, log, name)
	if err != nil {
		return nil, err
	}
	times, through, ids, err := readDecisions(ctx, log, t.Decisions, partitions)
	if err != nil {
		return nil, err
	}
	raw, err := arrivals(ctx, log, t.Outcomes, partitions, times, ids)
	if err != nil {
		return nil, err
	}
	late := latelosses.Outcomes{}
	if err := s.readRejects(ctx, log, t.Rejects, late); err != nil {
		return nil, err
	}
	if err := s.readFeedback(ctx, log, name, partitions, build, late, int64(len(times))); err != nil {
		return nil, err
	}
	for t := range through {
		through[t] = s.finals.Among(through[t])
	}
	s.Delays, s.Bins = delay.Measure(spec, raw, through)
	return s, nil
}

// logRound is a decision in the log.
type logRound struct {
	time, through int64
	id            string
}

// readDecisions returns the log time and LearnedThrough of each round, in the order of
// log time over all partitions, and the index of each id.
func readDecisions(ctx context.Context, log stream.Log, topic string, partitions int) (times, through []int64,
	ids map[string]int, err error) {
	var rounds []logRound
	var d codec.Decision
	for p := range partitions {
		last := int64(math.MinInt64)
		err = stream.Scan(ctx, log, topic, p, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
			last = max(last, r.Time)
			if r.Type != "" {
				return nil
			}
			if err := codec.ParseDecision(&d, r.Value); codec.Foreign(err) {
				return nil // the system passed over it
			} else if err != nil {
				return err
			}
			rounds = append(rounds, logRound{last, d.LearnedThrough, strings.Clone(d.ID)})
			return nil
		})
		if err != nil {
			return nil, nil, nil, err
		}
	}
	slices.SortStableFunc(rounds, func(a, b logRound) int { return cmp.Compare(a.time, b.time) })
	ids = make(map[string]int, len(rounds))
	for t, r := range rounds {
		if _, ok := ids[r.id]; !ok { // of an id in two partitions the earlier round is the one that counts
			ids[r.id] = t
		}
		times, through = append(times, r.time), append(through, r.through)
	}
	return times, through, ids, nil
}

// arrivals returns for each round the number of later decisions before its first
// outcome, of named ones before the last, by log time; Never if it has none.
func arrivals(ctx context.Context, log stream.Log, topic string, partitions int, times []int64,
	ids map[string]int) ([]int64, error) {
	raw := make([]int64, len(times))
	for i := range raw {
		raw[i] = delay.Never
	}
	var o codec.Outcome
	for p := range partitions {
		last := int64(math.MinInt64)
		err := stream.Scan(ctx, log, topic, p, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
			last = max(last, r.Time)
			if r.Type != "" || codec.ParseOutcome(&o, r.Value) != nil {
				return nil // counted among the rejects
			}
			if t, ok := ids[o.ID]; ok {
				decided := sort.Search(len(times), func(i int) bool { return times[i] > last })
				if d := max(0, int64(decided-1-t)); raw[t] == delay.Never || d < raw[t] || o.Kind == codec.Named {
					raw[t] = d
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return raw, nil
}

func (s *Summary) readFeedback(ctx context.Context, log stream.Log, name string, partitions int, build follow.Build,
	late latelosses.Outcomes, decided int64) error {
	audit := follow.New(log, name, build, partitions)
	losses := latelosses.ByOutcome{}
	var f codec.Feedback
	err := stream.Scan(ctx, log, join.TopicsOf(name).Feedback, 0, stream.Earliest, math.MaxInt64,
		func(r *stream.Record) error {
			if r.Type == "" {
				if err := codec.ParseFeedback(&f, r.Value); codec.Foreign(err) {
					return nil
				} else if err != nil {
					return err
				}
				if s.finals.Note(&f); f.Stage == 0 {
					s.Rounds++
					s.Fates.addFate(f.Fate)
					s.outcomes.add(&f)
					late.AddFeedback(losses, &f, audit.Rules(f.Epoch))
				}
			}
			return audit.Take(ctx, r)
		})
	if err != nil {
		return err
	}
	s.LateLosses, s.late = latelosses.Compare(losses.Of("")), losses
	s.Pending = decided - s.Rounds
	if ep := audit.Replica().Epoch(); ep != nil {
		o := certify.Options{Outstanding: s.Pending, Arrival: ep.Rules.Arrival, Early: ep.Rules.Early,
			Late: &s.LateLosses}
		s.Certificate = certify.Of(ep.Learner, o) // of its epoch
	}
	return nil
}

// readRejects counts the rejected outcomes, and notes the late ones; one that was written twice counts once.
func (s *Summary) readRejects(ctx context.Context, log stream.Log, topic string, late latelosses.Outcomes) error {
	seen := map[loop.Place]bool{}
	var o codec.Outcome
	return stream.Scan(ctx, log, topic, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		rej, err := codec.ParseReject(r.Value)
		if err != nil {
			return err
		}
		if at := (loop.Place{Partition: rej.Partition, Offset: rej.Offset}); rej.Topic == "outcomes" && !seen[at] {
			seen[at] = true
			s.Fates.addReject(rej.Reason)
			if rej.Reason == codec.ReasonLate && codec.ParseOutcome(&o, rej.Bytes) == nil {
				s.outcomes.late(&o)
			}
			late.AddReject(&rej)
		}
		return nil
	})
}
