package check

import (
	"bytes"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// history reads the feedback log in its order, and has the twin join what its cuts took.
type history struct {
	c      *checker
	twin   *twin
	lost   string // why the twin cannot follow, until an era begins; "": it does
	n      int64  // feedbacks so far
	cut    int64
	time   int64   // of the last cut
	told   int64   // the largest log time of a record taken, or of this log
	next   []int64 // by input: decisions by partition, then outcomes
	era    int64
	epoch  int64
	steps  []step
	marks  map[int64]*codec.FeedbackMark // by offset
	origin bool                          // a mark was met
}

// step is a cut or a mark, with the feedbacks before it.
type step struct {
	n      int64
	cut    *codec.Cut
	ranges []taken
	mark   *codec.FeedbackMark
}

// taken is what a cut took of an input.
type taken struct {
	partition int
	outcomes  bool
	stretch
	records []record
}

// input is the number of an input.
func (x *taken) input(partitions int) int { return inputOf(x.partition, x.outcomes, partitions) }

func inputOf(partition int, outcomes bool, partitions int) int {
	if outcomes {
		return partitions + partition
	}
	return partition
}

// checkFeedback checks the feedback log: what lies behind each cut is what follows from it.
func (c *checker) checkFeedback() {
	h := &history{c: c, twin: newTwin(c), next: make([]int64, 2*c.n), marks: map[int64]*codec.FeedbackMark{}}
	if c.o.Rules == nil {
		h.lost = "the rules are not known"
	}
	for i := range c.feedback {
		r := &c.feedback[i]
		h.told = max(h.told, r.Time)
		h.record(fmt.Sprintf("feedback@%d", r.Offset), r)
	}
	h.end()
}

func (h *history) record(where string, r *record) {
	c := h.c
	switch r.Type {
	case codec.TypeOpen:
		c.r.Openings++
	case codec.TypeClass:
	case codec.TypeEpoch:
		if e, err := codec.ParseEpoch(r.Value); err == nil {
			if h.epoch = e.Epoch; e.Through != h.n {
				c.fail("%s: epoch %d says that %d feedbacks lie before it, it is %d", where, e.Epoch, e.Through, h.n)
			}
		}
	case codec.TypeMark:
		m, err := codec.ParseFeedbackMark(r.Value)
		if err != nil {
			c.fail("%s: %v", where, err)
			return
		}
		h.mark(where, r, &m)
	case codec.TypeCut:
		x := new(codec.Cut)
		if err := codec.ParseCut(x, r.Value); err != nil {
			c.fail("%s: %v", where, err)
			return
		}
		h.takeCut(where, r, x)
	case "":
		f := new(codec.Feedback)
		if err := codec.ParseFeedback(f, r.Value); err != nil {
			c.fail("%s: %v", where, err)
			return
		}
		h.feed(where, r, f)
	default:
		c.fail("%s: a record of type %q", where, r.Type)
	}
}

// takeCut checks that a cut follows on the one before it, and gives the twin what it took.
func (h *history) takeCut(where string, r *record, x *codec.Cut) {
	c := h.c
	c.r.Cuts++
	if !h.origin || x.Cut != h.cut+1 || x.Time < h.time {
		c.fail("%s: cut %d at %d after cut %d at %d", where, x.Cut, x.Time, h.cut, h.time)
	}
	if h.lost == "" && len(h.twin.due) > 0 {
		c.fail("%s: cut %d, and feedback %d of the one before it is missing", where, x.Cut, h.twin.due[0].N)
	}
	s := step{n: h.n, cut: x}
	for i, all := range [][]codec.Range{x.Decisions, x.Outcomes} {
		for _, one := range all {
			s.ranges = append(s.ranges, h.span(where, x, one, i == 1))
		}
	}
	h.leftOut(where, &s)
	h.cut, h.time = x.Cut, max(h.time, x.Time)
	h.steps = append(h.steps, s)
	if h.lost == "" {
		h.lost = missing(&s, nil, c.n)
	}
	c.cuts[cutOf{h.era, x.Cut}] = cutRecord{r.order, h.lost == ""}
	if h.lost != "" {
		return
	}
	if x.Time > h.told {
		c.fail("%s: cut %d is at %d, which no record told: the last is of %d", where, x.Cut, x.Time, h.told)
	}
	h.twin.due = nil
	h.twin.take(x, s.ranges)
}

// span returns what a range says was taken.
func (h *history) span(where string, x *codec.Cut, one codec.Range, outcomes bool) taken {
	c := h.c
	t := taken{partition: one.Partition, outcomes: outcomes}
	if one.Partition < 0 || one.Partition >= c.n {
		c.fail("%s: cut %d takes records of partition %d", where, x.Cut, one.Partition)
		return t
	}
	i := t.input(c.n)
	t.stretch = stretch{h.next[i], one.Next, one.Sum}
	if one.Next <= h.next[i] {
		c.fail("%s: cut %d reads input %d up to offset %d, and an earlier one up to %d", where, x.Cut, i, one.Next,
			h.next[i])
		return t
	}
	h.next[i] = one.Next
	all := c.decisions[one.Partition]
	if outcomes {
		all = c.outcomes[one.Partition]
	}
	t.records = before(all, t.next)[len(before(all, t.since)):]
	for k := range t.records {
		h.told = max(h.told, t.records[k].Time)
	}
	return t
}

// leftOut checks that no earlier cut left out what a cut takes: cuts take what is older than their time.
func (h *history) leftOut(where string, s *step) {
	for i := range s.ranges {
		x := &s.ranges[i]
		if h.c.o.OneClock && h.era == 0 && len(x.records) > 0 && x.records[0].Time+h.c.o.Skew < h.time {
			h.c.fail("%s: cut %d takes offset %d of input %d, of %d, which cut %d at %d left out", where, s.cut.Cut,
				x.records[0].Offset, x.input(h.c.n), x.records[0].Time, h.cut, h.time)
		}
	}
}

// before returns the records before an offset.
func before(all []record, offset int64) []record {
	k, _ := slices.BinarySearchFunc(all, offset, func(r record, offset int64) int { return compare(r.Offset, offset) })
	return all[:k]
}

// missing says which records of a cut are not what it took; "": none. limits are offsets of inputs from
// which the records are known to be lost.
func missing(s *step, limits map[int]int64, partitions int) string {
	for i := range s.ranges {
		x := &s.ranges[i]
		if limit, ok := limits[x.input(partitions)]; ok && limit < x.next {
			continue
		}
		var sum uint32
		for k := range x.records {
			r := &x.records[k]
			sum = codec.Sum(sum, r.Offset, r.Time, r.Type, r.Value)
		}
		if last := len(x.records) - 1; last < 0 || x.records[last].Offset != x.next-1 || sum != x.sum {
			return fmt.Sprintf("cut %d took other records of input %d before offset %d", s.cut.Cut, x.input(partitions),
				x.next)
		}
	}
	return ""
}

// feed checks one feedback: it is the next that follows from the last cut, and each round has one.
func (h *history) feed(where string, r *record, f *codec.Feedback) {
	c := h.c
	if err := f.Validate(); err != nil {
		c.fail("%s: %v", where, err)
	}
	if f.N != h.n+1 || f.LearnedThrough >= f.N && h.era == 0 {
		c.fail("%s: feedback %d, of a decision that had learned %d, after feedback %d", where, f.N, f.LearnedThrough,
			h.n)
	}
	h.n = f.N
	c.total = f.N
	if f.Stage == 0 {
		c.r.Fates[f.Fate.String()]++
	} else {
		c.r.Stages++
	}
	h.once(where, f)
	if h.lost != "" {
		return
	}
	if len(h.twin.due) == 0 {
		c.fail("%s: feedback %d does not follow from cut %d", where, f.N, h.cut)
		return
	}
	want := h.twin.due[0]
	h.twin.due = h.twin.due[1:]
	if !bytes.Equal(r.Value, codec.Like(r.Value, codec.AppendFeedback(nil, &want))) {
		c.fail("%s: the feedback is %+v\nand from cut %d follows %+v", where, *f, h.cut, want)
	}
}

// once checks that a round exists, has no other feedback, and is what its feedback says.
func (h *history) once(where string, f *codec.Feedback) {
	c := h.c
	var d *round
	if f.Partition < c.n {
		d = c.byN[f.Partition][f.Round]
	}
	at := roundAt(f.Partition, f.Round)
	switch {
	case c.fed[at] != nil:
		c.fail("%s: round %d of partition %d had feedback %d before", where, f.Round, f.Partition, c.fed[at].N)
	case d == nil && f.Partition < c.n && c.gaps[f.Partition][f.Round]:
		c.r.Lost++
	case d == nil:
		c.fail("%s: feedback %d is of round %d of partition %d, which does not exist", where, f.N, f.Round, f.Partition)
	case !d.copiedBy(f):
		c.fail("%s: feedback %d differs from its decision, round %d of partition %d", where, f.N, f.Round, f.Partition)
	}
	if f.Stage == 0 {
		c.fed[at] = f
		return
	}
	if k := len(c.stages[at]); k != f.Stage-1 {
		c.fail("%s: feedback %d is of stage %d of a round that had %d", where, f.N, f.Stage, k)
	}
	c.stages[at] = append(c.stages[at], f)
}

// fill copies a decision to its feedback.
func (d *round) fill(f *codec.Feedback) {
	f.Partition, f.Round, f.ID, f.Epoch = d.Partition, d.N, d.ID, d.Epoch
	f.LearnedThrough, f.Gamma, f.Mode, f.Would = d.LearnedThrough, d.Gamma, d.Mode, d.Would
	f.Unknown, f.Unit, f.First = d.Unknown, d.Unit, d.First
	f.Actions, f.Propensities, f.Action, f.Context = d.Actions, d.Propensities, d.Action, d.Context
}

// copiedBy reports whether a feedback says what its decision does.
func (d *round) copiedBy(f *codec.Feedback) bool {
	want := *f
	d.fill(&want)
	return bytes.Equal(codec.AppendFeedback(nil, f), codec.AppendFeedback(nil, &want))
}

// end checks that nothing is missing at the end of the log.
func (h *history) end() {
	c := h.c
	if h.lost != "" && c.o.Rules != nil {
		c.fail("%s, and no era begins behind it", h.lost)
	}
	if h.lost == "" && len(h.twin.due) > 0 && !c.o.Unfinished {
		c.fail("feedback %d is missing: %+v", h.twin.due[0].N, h.twin.due[0])
	}
	for p, rounds := range c.rounds {
		for _, d := range rounds {
			if c.fed[roundAt(p, d.N)] != nil {
				continue
			}
			c.r.Waiting++
			if !c.o.Unfinished {
				c.fail("round %d of partition %d (%q) has no feedback", d.N, p, d.ID)
			}
		}
		for i := range c.outcomes[p] {
			r := &c.outcomes[p][i]
			if r.said == nil {
				continue
			}
			if c.r.Outcomes++; r.Offset < h.next[c.n+p] {
				continue
			}
			c.r.Unread++
			if !c.o.Unfinished {
				c.fail("no cut took outcomes[%d]@%d of %d", p, r.Offset, r.Time)
			}
		}
	}
}
