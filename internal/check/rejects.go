package check

import (
	"slices"

	"hindsight/pkg/codec"
)

// expected is a reject of an outcome that follows from a cut.
type expected struct {
	era, cut, time int64
	reason         string
	met            bool
	order          int64 // of the first that is stored
}

// placed is a mark and its place in the order of writing.
type placed struct {
	*codec.FeedbackMark
	order int64
}

// cutOf names a cut.
type cutOf struct{ era, cut int64 }

// cutRecord is a cut in the log.
type cutRecord struct {
	order int64
	taken bool // by the twin
}

// refusal is the first reject of a context.
type refusal struct {
	codec.Reject
	order int64
}

// checkRejects checks that the rejects of outcomes are those that follow from cuts, and keeps those of contexts.
func (c *checker) checkRejects() {
	for i := range c.rejects {
		r := &c.rejects[i]
		if r.Type != "" {
			c.fail("rejects@%d: a record of type %q", r.Offset, r.Type)
			continue
		}
		x, err := codec.ParseReject(r.Value)
		if err != nil {
			c.fail("rejects@%d: %v", r.Offset, err)
			continue
		}
		if x.Topic == "outcomes" && c.isVoid(&x) {
			c.r.Void++
			continue
		}
		if at := (place{x.Topic, x.Partition, x.Offset}); !c.exists(&x) && !c.isLost(&x) && !r.lost {
			if x.Topic == "contexts" && c.o.LostTails {
				continue
			}
			c.fail("rejects@%d: there is no such record at %v", r.Offset, at)
		} else if x.Topic == "outcomes" {
			c.checkReject(r, &x, at)
		} else if was := c.refused[at]; was != nil {
			was.order = min(was.order, r.order)
			c.r.Repeated++
		} else if c.exists(&x) {
			c.refused[at] = &refusal{x, r.order}
			c.r.Rejects["contexts/"+x.Reason]++
		}
	}
	for at, all := range c.expected {
		for _, e := range all {
			c.checkStored(at, e)
		}
	}
}

// exists reports whether the record is in the log that a reject is of.
func (c *checker) exists(x *codec.Reject) bool {
	if x.Partition < 0 || x.Partition >= c.n {
		return false
	}
	of := c.contexts[x.Partition]
	if x.Topic == "outcomes" {
		of = c.outcomes[x.Partition]
	}
	rest := of[len(before(of, x.Offset)):]
	return len(rest) > 0 && rest[0].Offset == x.Offset && rest[0].Type == "" && x.Tells(rest[0].Value)
}

// isLost reports whether a later era says that the record is lost that a reject is of.
func (c *checker) isLost(x *codec.Reject) bool {
	return slices.ContainsFunc(c.eras, func(m *codec.FeedbackMark) bool {
		return m.Era > x.Era && slices.ContainsFunc(m.LostTails, func(l codec.LostTail) bool {
			return l.Topic == x.Topic && l.Partition == x.Partition && l.Offset <= x.Offset
		})
	})
}

// isVoid reports whether a later era says that the cut is gone from which a reject follows.
func (c *checker) isVoid(x *codec.Reject) bool {
	return slices.ContainsFunc(c.eras, func(m *codec.FeedbackMark) bool { return m.Era > x.Era && m.Cut < x.Cut })
}

// checkReject checks a reject of an outcome.
func (c *checker) checkReject(r *record, x *codec.Reject, at place) {
	for _, e := range c.expected[at] {
		if !r.lost || e.era != x.Era || e.cut != x.Cut || e.reason != x.Reason || e.time != x.Time {
			continue
		}
		if !e.met || r.order < e.order {
			e.met, e.order = true, r.order
		}
	}
	if r.lost { // perhaps of a cut that was lost with it
		return
	}
	cut, ok := c.cuts[cutOf{x.Era, x.Cut}]
	if !ok || r.order < cut.order {
		c.fail("rejects@%d: it follows from cut %d of era %d, which was not stored before: %+v", r.Offset, x.Cut,
			x.Era, *x)
		return
	}
	for _, e := range c.expected[at] {
		if e.era != x.Era || e.cut != x.Cut {
			continue
		}
		if e.reason != x.Reason || e.time != x.Time {
			c.fail("rejects@%d: it says %q at %d, and from cut %d follows %q at %d", r.Offset, x.Reason, x.Time, x.Cut,
				e.reason, e.time)
		}
		if e.met {
			c.r.Repeated++
			return
		}
		e.met, e.order = true, r.order
		c.r.Rejects[x.Reason]++
		return
	}
	if cut.taken {
		c.fail("rejects@%d: it does not follow from cut %d: %+v", r.Offset, x.Cut, *x)
	}
}

// checkStored checks that a reject is stored, and before the first mark behind its cut.
func (c *checker) checkStored(at place, e *expected) {
	k := slices.IndexFunc(c.marks, func(m placed) bool { return m.Cut >= e.cut && m.Era >= e.era })
	switch {
	case !e.met && c.o.Unfinished && k < 0:
		c.r.Unread++
	case !e.met:
		c.fail("%s[%d]@%d must be rejected: %q follows from cut %d", at.topic, at.partition, at.offset, e.reason, e.cut)
	case k >= 0 && e.order > c.marks[k].order:
		c.fail("%s[%d]@%d: the mark behind cut %d was stored before its reject", at.topic, at.partition,
			at.offset, e.cut)
	}
}
