package loop

import (
	"cmp"
	"slices"

	"hindsight/pkg/codec"
)

// What was rejected stays rejected. Most rejects follow from the logs alone, but not
// all: whether the decision of an outcome that was written too early was there in time,
// which of two outcomes of equal log time in two partitions was read first, and which
// round's window had ended where the log's clock went back, is a matter of timing. A joiner
// that reads the same records after a restart may see it otherwise, and so may one that was
// replaced and does not know it. So every reject is told in a mark before it is stored: a
// joiner that was replaced cannot write the mark, and from there on the reject is final for
// every joiner that reads the mark. What is stored is final too.

// refusal is a final reject of an outcome that is to be read again.
type refusal struct {
	offset int64
	time   int64  // log time of the outcome, if it is stored
	reason string // if it is not stored
	stored bool

	kept, size int // bytes of the outcome that the reject has, and all
	sum        uint64
}

// tells reports whether a stored reject is of an outcome, not of one that had its place
// before the log lost its tail.
func (r *refusal) tells(a *arrival) bool {
	return r.time == a.time && r.size == len(a.raw) && r.kept <= r.size && r.sum == fnv1a(a.raw[:r.kept])
}

// fnv1a is the FNV-1a hash of 64 bits.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// NeedsMark reports whether a reject waits: a mark must be stored before it.
func (j *Joiner) NeedsMark() bool { return len(j.rejects) > 0 }

// RefusedSince returns a log time; rejects that were stored earlier are of outcomes
// that a restored joiner does not read again.
func (j *Joiner) RefusedSince() int64 {
	since := j.reached
	for i := range j.outs {
		since = min(since, j.outs[i].since)
	}
	return since
}

// Refuse tells a restored joiner of a reject that is stored. It wants all of outcomes
// that it is to read again, in any order.
func (j *Joiner) Refuse(r *codec.Reject) {
	if r.Topic != "outcomes" || r.Partition < 0 || r.Partition >= len(j.outs) || r.Offset < j.outs[r.Partition].through {
		return
	}
	out := &j.outs[r.Partition]
	x := refusal{offset: r.Offset, time: r.Time, stored: true, kept: len(r.Bytes), size: max(r.Size, len(r.Bytes)), sum: fnv1a(r.Bytes)}
	k, found := out.find(r.Offset)
	switch {
	case !found:
		out.refused = slices.Insert(out.refused, k, x)
	case !out.refused[k].stored || out.refused[k].time < x.time: // of the record that took the place of a lost one
		out.refused[k] = x
	}
}

func (o *outPart) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(o.refused, offset, func(r refusal, offset int64) int { return cmp.Compare(r.offset, offset) })
}

// refusedAs returns what the outcome at hand was rejected as before a restart, nil if it
// was not.
func (j *Joiner) refusedAs(a *arrival) *refusal {
	out := &j.outs[a.Partition]
	for len(out.refused) > 0 && out.refused[0].offset <= a.Offset {
		r := &out.refused[0]
		if out.refused = out.refused[1:]; len(out.refused) == 0 {
			out.refused = nil
		}
		if r.offset == a.Offset && (!r.stored || r.tells(a)) {
			return r
		}
	}
	return nil
}

// restore takes the final rejects of a mark.
func (o *outPart) restore(pos *codec.Position, reached int64) {
	o.since, o.refused = reached, nil
	if pos.OutcomesFrom < pos.OutcomesThrough {
		o.since = pos.OutcomesTime
	}
	for _, r := range pos.Refused {
		if k, found := o.find(r.Offset); !found {
			o.refused = slices.Insert(o.refused, k, refusal{offset: r.Offset, reason: r.Reason})
		}
	}
}

// refusals tells a mark of the final rejects that are not stored and that were not read
// again yet.
func (o *outPart) refusals(pos *codec.Position) {
	for _, r := range o.refused {
		if !r.stored {
			pos.Refused = append(pos.Refused, codec.Refusal{Offset: r.offset, Reason: r.reason})
		}
	}
}

// waitingRejects tells a mark of the rejects that are not stored yet.
func (j *Joiner) waitingRejects(m *codec.FeedbackMark) {
	for i := range j.rejects {
		r := &j.rejects[i]
		pos := &m.Positions[r.Partition]
		pos.Parked = append(pos.Parked, r.Offset)
		pos.Refused = append(pos.Refused, codec.Refusal{Offset: r.Offset, Reason: r.Reason})
	}
	for i := range m.Positions {
		slices.Sort(m.Positions[i].Parked)
		slices.SortFunc(m.Positions[i].Refused, func(a, b codec.Refusal) int { return cmp.Compare(a.Offset, b.Offset) })
	}
}
