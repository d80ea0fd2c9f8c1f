package explain

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// firstBlock is how many records are read first of a log that is searched from its end.
const firstBlock = 4096

// back calls f for the records of a partition in blocks from its end towards its beginning,
// within a block in order, until f's block is said to be the last: when done reports so after
// it, or when its first record was appended before since.
func (x *explainer) back(ctx context.Context, topic string, p int, since int64, f func(r *stream.Record),
	done func() bool) error {
	early, any := false, false
	return stream.ScanBack(ctx, x.Log, topic, p, math.MaxInt64, firstBlock, func(r *stream.Record) error {
		if !any {
			any, early = true, r.Time < since
		}
		f(r)
		return nil
	}, func() bool {
		any = false
		return early || done()
	})
}

func never() bool { return false }

// clone copies a record that is kept.
func clone(r *stream.Record) *stream.Record {
	c := *r
	c.Key, c.Value, c.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), slices.Clone(r.Headers)
	return &c
}

// findDecision looks for the last decision of an id, in all partitions: first in the one where contexts of this id
// belong, or which minted it, then in the others for a later one. A record that is none, damaged or written by somebody
// else, is passed over; where nothing else has this id, the error says which one and why.
func (x *explainer) findDecision(ctx context.Context, id string) error {
	key := []byte(id)
	owner, since := loop.PartitionOf(key, x.partitions), int64(0)
	if p, minted := loop.MintedBy(id); minted && p < x.partitions {
		owner = p
	}
	var dec codec.Decision
	var none error // why the first that was passed over is no decision
	for i := range x.partitions {
		p := (owner + i) % x.partitions
		var found *stream.Record
		err := x.back(ctx, x.topics.Decisions, p, since, func(r *stream.Record) {
			if r.Type != "" || !bytes.Equal(r.Key, key) {
				return
			}
			if err := codec.ParseDecision(&dec, r.Value); !codec.Foreign(err) {
				found = clone(r)
			} else if none == nil {
				none = &stream.Error{Op: "read", Topic: x.topics.Decisions, Partition: p, Offset: r.Offset, Err: err}
			}
		}, func() bool { return found != nil })
		if err != nil {
			return err
		}
		if found != nil && (x.rec == nil || found.Time > x.rec.Time) {
			x.rec, since = found, found.Time
			if err := codec.ParseDecision(&x.dec, found.Value); err != nil {
				return &stream.Error{Op: "read", Topic: x.topics.Decisions, Partition: p, Offset: found.Offset,
					Err: err}
			}
		}
	}
	if x.rec != nil {
		return nil
	}
	return cmp.Or(none, ErrNotFound)
}

// findRound calls found with the decision of a round, if it is kept.
func (x *explainer) findRound(ctx context.Context, at codec.RoundRef, found func(*codec.Decision)) error {
	var d codec.Decision
	done := false
	return x.back(ctx, x.topics.Decisions, at.Partition, 0, func(r *stream.Record) {
		if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil && d.N == at.N {
			found(&d)
			done = true
		}
	}, func() bool { return done })
}

// findFeedback looks for the round's feedback.
func (x *explainer) findFeedback(ctx context.Context) error {
	key := []byte(x.dec.ID)
	var f codec.Feedback
	return x.back(ctx, x.topics.Feedback, 0, x.rec.Time-join.ClockSkew, func(r *stream.Record) {
		if r.Type != "" || !bytes.Equal(r.Key, key) {
			return
		}
		c := clone(r)
		if codec.ParseFeedback(&f, c.Value) != nil || f.Partition != x.dec.Partition || f.Round != x.dec.N {
			return
		}
		if x.tell(&f); f.Stage == 0 {
			x.fed, x.fedRec = f, c
			x.closed()
		}
		f = codec.Feedback{}
	}, func() bool { return x.fedRec != nil })
}

// tell adds the named outcomes of a record of the round, or the loss that was provisional.
func (x *explainer) tell(f *codec.Feedback) {
	for _, c := range f.Outcomes {
		n := named{Name: c.Name, Fate: c.Fate.String(), Partition: c.Partition, Offset: c.Offset,
			ClosedAt: logTime(c.ClosedAt), Stage: max(c.Stage, f.Stage)}
		if c.Fate == codec.Observed || c.Fate == codec.Imputed {
			n.Value = new(c.Value)
		}
		if !slices.ContainsFunc(x.e.Named, func(had named) bool { return had.Name == c.Name && had.Stage == n.Stage }) {
			x.e.Named = append(x.e.Named, n)
		}
	}
	slices.SortFunc(x.e.Named, func(a, b named) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Stage, b.Stage))
	})
}

// tellStage is tell of a record of an earlier stage of the round.
func (x *explainer) tellStage(r *stream.Record) {
	var f codec.Feedback
	if string(r.Key) == x.dec.ID && codec.ParseFeedback(&f, r.Value) == nil && f.Stage > 0 &&
		f.Partition == x.dec.Partition && f.Round == x.dec.N {
		x.tell(&f)
	}
}

// findCut looks for the cut that the round's feedback follows from: the last before it. No mark lies between the two.
func (x *explainer) findCut(ctx context.Context) error {
	if x.fedRec == nil {
		return nil
	}
	var cut codec.Cut
	found := false
	return stream.ScanBack(ctx, x.Log, x.topics.Feedback, 0, x.fedRec.Offset, 64, func(r *stream.Record) error {
		switch {
		case r.Type == codec.TypeMark:
			found, x.e.Feedback.Cut = true, 0
		case r.Type == codec.TypeCut && codec.ParseCut(&cut, r.Value) == nil:
			found, x.e.Feedback.Cut = true, cut.Cut
		}
		return nil
	}, func() bool { return found })
}

// findRejects lists the outcomes of the round that were rejected.
func (x *explainer) findRejects(ctx context.Context) error {
	key := []byte(x.dec.ID)
	return x.back(ctx, x.topics.Rejects, 0, x.rec.Time-join.ClockSkew, func(r *stream.Record) {
		if r.Type != "" || !bytes.Equal(r.Key, key) && len(r.Key) > 0 {
			return
		}
		rej, err := codec.ParseReject(r.Value)
		var named codec.Outcome
		if rej.ID == "" {
			_ = codec.ParseOutcome(&named, rej.Bytes) // one that is malformed may name its round before what is wrong
		}
		if err != nil || rej.Topic != "outcomes" || rej.ID == "" && !x.namedBy(&named) {
			return
		}
		o := readOutcome(rej.Bytes)
		o.Partition, o.Offset, o.LogTime, o.Became, o.Detail = rej.Partition, rej.Offset, logTime(rej.Time),
			rej.Reason, rej.Short()
		x.outcome(o)
	}, never)
}

// namedBy reports whether an outcome names the round, or none but its unit.
func (x *explainer) namedBy(o *codec.Outcome) bool {
	return o.ID == x.dec.ID || o.ID == "" && o.Unit != "" && o.Unit == x.dec.Unit
}

// findOutcomes lists the outcomes that name the round and were not rejected: the one that its
// feedback names, or where that is not all, those that the log holds since.
func (x *explainer) findOutcomes(ctx context.Context, all bool) error {
	if p, at := x.fed.OutcomePartition, x.fed.OutcomeOffset; x.fedRec != nil && at >= 0 && !all {
		return stream.Scan(ctx, x.Log, x.topics.Outcomes, p, at, at+1, func(r *stream.Record) error {
			x.counted(p, r, true)
			return nil
		})
	}
	if x.fedRec != nil && !all {
		return nil
	}
	id, unit := []byte(x.dec.ID), []byte(x.dec.Unit)
	for p := range x.partitions {
		err := x.back(ctx, x.topics.Outcomes, p, x.rec.Time-join.ClockSkew, func(r *stream.Record) {
			if r.Type == "" && (bytes.Contains(r.Value, id) || bytes.IndexByte(r.Value, '\\') >= 0 ||
				len(unit) > 0 && bytes.Contains(r.Value, unit)) {
				x.counted(p, r, false)
			}
		}, never)
		if err != nil {
			return err
		}
	}
	return nil
}

// counted adds an outcome that was not rejected, if it names the round, or its unit; or the feedback names it: it may
// be of a repeat of the draw.
func (x *explainer) counted(p int, r *stream.Record, fed bool) {
	var o codec.Outcome
	if codec.ParseOutcome(&o, r.Value) != nil || !fed && !x.namedBy(&o) {
		return
	}
	out := readOutcome(r.Value)
	out.Partition, out.Offset, out.LogTime, out.Became = p, r.Offset, logTime(r.Time), "counted"
	if x.fedRec == nil {
		out.Became = "waits with its round"
	}
	x.outcome(out)
}

// outcome adds one unless it is there: of two stored rejects of one, and of a reject and the
// record itself, the first counts.
func (x *explainer) outcome(o outcome) {
	if !slices.ContainsFunc(x.e.Outcomes, func(had outcome) bool {
		return had.Partition == o.Partition && had.Offset == o.Offset
	}) {
		x.e.Outcomes = append(x.e.Outcomes, o)
	}
}

// readOutcome returns what an outcome says.
func readOutcome(b []byte) (o outcome) {
	var c codec.Outcome
	if codec.ParseOutcome(&c, b) != nil {
		return o
	}
	o.Action, o.Kind = strings.Clone(c.Action), c.Kind.String()
	if c.Kind == codec.Loss || c.Kind == codec.Reward {
		o.Value = new(c.Value)
	}
	for _, v := range c.Values {
		n := value{Name: strings.Clone(v.Name)}
		if !v.Withdrawn {
			n.Value = new(v.X)
		}
		o.Values = append(o.Values, n)
	}
	return o
}
