package verify

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// passRequest sees to the contexts that had been dealt with when the request at the head was decided.
func (l *decisionLane) passRequest(ctx context.Context) error {
	through := l.head.ContextsThrough
	switch {
	case l.known && through < l.through:
		l.wrong("contexts_through", "at least "+i64(l.through), through)
	case !l.known || through > l.through:
		known := l.known // or a mark that is gone may tell that the context before it was lost
		if err := l.pass(ctx, through, l.epoch()); err != nil {
			return err
		}
		if known && through != l.passed && through > l.contexts.first {
			l.wrong("contexts_through", "the offset behind a context, such as "+i64(l.passed), through)
		}
	}
	return nil
}

// epoch returns the epoch of the decision at the head, whatever the head is then.
func (l *decisionLane) epoch() func() int64 {
	e := l.head.Epoch
	return func() int64 { return e }
}

// pass sees to the contexts before an offset that were not decided: each has its reject. epoch returns
// the one in which they were refused, at most.
func (l *decisionLane) pass(ctx context.Context, before int64, epoch func() int64) error {
	for {
		r, err := l.contexts.head(ctx)
		if err != nil {
			return err
		}
		if r == nil || r.Offset >= before {
			break
		}
		var t Tally
		switch {
		case r.Type != "":
		case l.known && r.Offset < l.through: // passed by a decision whose own context was lost
			t.TooOld = 1
		default:
			if t, err = l.refused(r, epoch, l.decisions.batch[l.decisions.i].Time); err != nil {
				return err
			}
		}
		l.takeContext(r, t)
	}
	l.through, l.known = max(l.through, before), true
	return nil
}

// takeContext moves behind a context; t says whether it was checked.
func (l *decisionLane) takeContext(r *stream.Record, t Tally) {
	if r.Type == "" && r.Offset >= l.counted {
		t.Records = 1
		l.v.count(&l.v.report.Contexts, t)
	}
	l.passed, l.counted = r.Offset+1, max(l.counted, r.Offset+1)
	l.contexts.take()
}

// notRejected checks that the context of the decision at the head was not rejected.
func (l *decisionLane) notRejected(r *stream.Record) {
	rej := l.v.rejects.find(rejectKey{false, l.partition, r.Offset, r.Time})
	if rej == nil {
		return
	}
	decided := l.rec.Time
	d := at(l.decisions, l.rec, "source", "a context that was not rejected", r.Offset).in(l.head.N, l.head.ID)
	l.suspect(d, &l.v.report.Rejects, r.Offset, 0, func() bool { // for the sake of a round that is gone
		return l.v.losses.parts(rej.time, decided)
	})
}

// refused checks that a context without a decision was rejected, and for a reason that holds. passed is the log time of
// the record that passes it, the largest number if none does: then it may wait.
func (l *decisionLane) refused(r *stream.Record, epoch func() int64, passed int64) (Tally, error) {
	v, x := l.v, l.v.rejects
	info := x.find(rejectKey{false, l.partition, r.Offset, r.Time})
	switch {
	case info != nil:
	case passed == loop.End:
		return Tally{}, nil
	case !l.known || x.dropped(r.Time):
		return Tally{TooOld: 1}, nil // its decision or its reject may be gone
	default:
		// the mark of an older decider says nothing of rejects
		offset, behind, older := r.Offset, len(l.lost), !l.refuses
		l.suspect(at(l.contexts, r, "decision", "a decision or a reject", "neither"), &v.report.Contexts, offset, 0,
			func() bool { return older && v.losses.rejects(passed) || l.lostReject(offset, behind) })
		return Tally{Checked: 1}, nil
	}
	header := join.CloudEventID(r)
	id := header
	var c codec.Context
	err := codec.ParseContext(&c, r.Value)
	if follow.Newer(err) && info.reason != codec.ReasonMalformed { // somebody could read it
		return Tally{}, l.contexts.failed(r.Offset, err)
	}
	if err == nil && c.ID != "" {
		id = c.ID
	}
	if id == "" {
		id = strconv.Itoa(l.partition) + "-" + i64(r.Offset)
	}
	_, used := l.used(id)
	// perhaps by a round that is gone, or behind the end
	used = used || l.decisions.cut() || passed == loop.End && l.grown
	value, offset, from := r.Value, r.Offset, max(l.at.epoch, 1)
	holdsFor := func(reason string) bool {
		switch reason {
		case codec.ReasonDuplicateID:
			return used
		case codec.ReasonMalformed:
			for e := from; e <= max(epoch(), from); e++ {
				if l.invalid(value, header, offset, e) {
					return true
				}
			}
			return passed == loop.End && l.grown // by a model behind the end
		}
		return false
	}
	holds := func() bool {
		return holdsFor(info.reason) && !slices.ContainsFunc(info.again, func(r string) bool { return !holdsFor(r) })
	}
	v.count(&v.report.Rejects, Tally{Checked: 1})
	field, want, got := x.compare(info, r)
	kind := &v.report.Rejects
	if field == "" && !holds() {
		value, kind = bytes.Clone(value), nil // not all models may be known yet
		field, want = "reason", "one that holds"
		got = strings.Join(append([]string{info.reason}, info.again...), " and ")
	}
	if field != "" {
		l.suspect(x.wrong(info, id, field, want, got), kind, offset, 0, func() bool {
			return v.losses.parts(info.time, passed) || field == "reason" && holds()
		})
	}
	return Tally{Checked: 1}, nil
}

// lostReject reports whether a mark, behind so many others, says that the reject of a context is gone.
func (l *decisionLane) lostReject(offset int64, behind int) bool {
	return slices.ContainsFunc(l.lost[behind:], func(m codec.DecisionMark) bool {
		return m.RejectsFrom <= offset && offset < m.RejectsTo
	})
}

// minted returns the id that the decision at the head has, if that is one that is minted for the context at an offset
// when those before it are taken, as they are or may be; else "", and the heart mints one.
func (l *decisionLane) minted(offset int64) string {
	for try := range loop.Mints {
		id := string(loop.AppendMinted(nil, l.v.Seed, l.v.Name, l.partition, l.head.N, offset, try))
		if id == l.head.ID {
			return id
		}
		if _, used := l.used(id); !used && !l.decisions.cut() {
			break
		}
	}
	return ""
}

// invalid reports whether a context breaks the rules of an epoch.
func (l *decisionLane) invalid(value []byte, header string, offset, epoch int64) bool {
	e := l.v.models.epochs[epoch]
	if e == nil {
		return true // its rules are gone
	}
	return e.check.At(l.partition).Decide(&l.want, value, header, loop.Source{Offset: offset}).Verdict == loop.Invalid
}
