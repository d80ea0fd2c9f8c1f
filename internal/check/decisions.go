package check

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// checkEpochs checks the epoch records and remembers them.
func (c *checker) checkEpochs() {
	var last int64
	for i := range c.feedback {
		r := &c.feedback[i]
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil {
			c.lastEra = m.Era
		}
		if r.Type != codec.TypeEpoch {
			continue
		}
		rec, err := codec.ParseEpoch(r.Value)
		if err != nil {
			c.fail("feedback@%d: epoch: %v", r.Offset, err)
			continue
		}
		if rec.Epoch <= last {
			c.fail("feedback@%d: epoch %d after %d", r.Offset, rec.Epoch, last)
			continue
		}
		last = rec.Epoch
		if got := fmt.Sprintf("%x", sha256.Sum256(rec.LoggedModel())); got != rec.SHA256 || rec.Name != c.name ||
			rec.Partitions != c.n {
			c.fail("feedback@%d: epoch %d: model %q, %d partitions, SHA-256 %s, its bytes have %s",
				r.Offset, rec.Epoch, rec.Name, rec.Partitions, rec.SHA256, got)
		}
		if c.o.Seed != nil && rec.SeedHash != fmt.Sprintf("%x", sha256.Sum256(c.o.Seed)) {
			c.fail("feedback@%d: epoch %d has another seed", r.Offset, rec.Epoch)
		}
		e := &epoch{rec: rec}
		if c.o.Rules != nil {
			rules, err := c.o.Rules(&rec)
			if err != nil {
				c.fail("feedback@%d: epoch %d: %v", r.Offset, rec.Epoch, err)
			} else {
				e.rules = &rules
			}
		}
		c.epochs[rec.Epoch] = e
		c.order = append(c.order, e)
	}
	c.r.Epochs = len(c.order)
}

// checkDecisions checks each partition of decisions by itself and against its contexts.
func (c *checker) checkDecisions() {
	c.rounds = make([][]*round, c.n)
	for p := range c.n {
		c.byN = append(c.byN, map[int64]*round{})
		c.gaps = append(c.gaps, map[int64]bool{})
		c.source = append(c.source, map[int64]*round{})
		c.checkPartition(p)
	}
	var all []*round
	for _, rounds := range c.rounds {
		all = append(all, rounds...)
	}
	slices.SortStableFunc(all, func(a, b *round) int {
		return compare(a.order, b.order, int64(a.Partition), int64(b.Partition), a.N, b.N)
	})
	for _, r := range all {
		c.byID[r.ID] = append(c.byID[r.ID], r)
	}
	c.r.Decisions = len(all)
}

// compare compares pairs of numbers, the first that differs decides.
func compare(pairs ...int64) int {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] < pairs[i+1] {
			return -1
		} else if pairs[i] > pairs[i+1] {
			return 1
		}
	}
	return 0
}

// line is what a partition of decisions says so far.
type line struct {
	n, through, learned, source, epoch, time, era int64
	used                                          map[string]int64  // id → the last round that had it
	draws                                         map[string]*round // unit → its last draw
	clock                                         int64             // the latest log time of a decision for a unit
	// by record: contexts from here on were lost behind it
	lost []int64
}

func (c *checker) checkPartition(p int) {
	records := map[int64]*record{}
	for i := range c.contexts[p] {
		records[c.contexts[p][i].Offset] = &c.contexts[p][i]
	}
	was := line{source: -1, used: map[string]int64{}, draws: map[string]*round{}, lost: c.lostContexts(p)}
	for i := range c.decisions[p] {
		r := &c.decisions[p][i]
		where := fmt.Sprintf("decisions[%d]@%d", p, r.Offset)
		switch r.Type {
		case codec.TypeOpen:
			c.r.Openings++
		case codec.TypeMark:
			c.decisionMark(where, p, r, &was)
		case "":
			d := &round{order: r.order}
			lost := was.lost[i]
			if err := codec.ParseDecision(&d.Decision, r.Value); err != nil {
				c.fail("%s: %v", where, err)
				continue
			}
			r.round, d.lost = d, d.Source >= lost || c.o.LostTails && !c.o.OneClock
			c.decision(where, p, d, &was, records)
			if c.taken(&was, d.ID, d.N) {
				c.fail("%s: id %q was decided before, in round %d", where, d.ID, was.used[d.ID])
			}
			was.used[d.ID] = d.N
			if c.byN[p][d.N] == nil {
				c.byN[p][d.N] = d
				c.rounds[p] = append(c.rounds[p], d)
			}
		default:
			c.fail("%s: a record of type %q", where, r.Type)
		}
	}
}

// lostContexts returns for each record of decisions from which offset on the contexts are not those that it
// knew, as a later mark says.
func (c *checker) lostContexts(p int) []int64 {
	lost := make([]int64, len(c.decisions[p]))
	from := int64(1<<63 - 1)
	for i := len(lost) - 1; i >= 0; i-- {
		r := &c.decisions[p][i]
		if m, err := codec.ParseDecisionMark(r.Value); r.Type == codec.TypeMark && err == nil && m.ContextsLost > 0 {
			from = min(from, m.ContextsThrough)
		}
		lost[i] = from
	}
	return lost
}

func (c *checker) decisionMark(where string, p int, r *record, was *line) {
	m, err := codec.ParseDecisionMark(r.Value)
	if err != nil {
		c.fail("%s: %v", where, err)
		return
	}
	n := m.N
	if m.GapFrom > 0 {
		if m.GapFrom != was.n+1 || m.GapTo < m.GapFrom {
			c.fail("%s: a gap of rounds %d to %d after round %d", where, m.GapFrom, m.GapTo, was.n)
		}
		c.r.Gaps++
		r.gapTo = m.GapTo
		for was.n < m.GapTo {
			was.n++
			c.gaps[p][was.n] = true
		}
	}
	if m.ContextsLost >= was.through {
		was.through = min(was.through, m.ContextsThrough)
		was.source, was.time = min(was.source, m.ContextsThrough-1), 0
	}
	if m.Era > was.era {
		was.era, was.learned, was.epoch = m.Era, min(was.learned, m.LearnedThrough), 0
	}
	if n != was.n {
		c.fail("%s: a mark after round %d where %d was the last", where, n, was.n)
	}
	if m.ContextsThrough < was.through || m.LearnedThrough < was.learned {
		c.fail("%s: a mark goes back: contexts %d after %d, learned %d after %d", where, m.ContextsThrough, was.through,
			m.LearnedThrough, was.learned)
	}
	was.through, was.learned = max(was.through, m.ContextsThrough), max(was.learned, m.LearnedThrough)
}

// decision checks one decision.
func (c *checker) decision(where string, p int, d *round, was *line, records map[int64]*record) {
	if err := d.Validate(); err != nil {
		c.fail("%s: %v", where, err)
	}
	if d.Partition != p || d.N != was.n+1 {
		c.fail("%s: round %d of partition %d after round %d of partition %d", where, d.N, d.Partition, was.n, p)
	}
	if d.ContextsThrough < was.through || d.LearnedThrough < was.learned || d.Epoch < was.epoch {
		c.fail("%s: round %d goes back: contexts %d after %d, learned %d after %d, epoch %d after %d",
			where, d.N, d.ContextsThrough, was.through, d.LearnedThrough, was.learned, d.Epoch, was.epoch)
	}
	c.checkSource(where, d, was, records)
	c.checkEpochOf(where, d)
	c.checkUnit(where, d, was)
	switch {
	case d.Mode == codec.External:
		c.checkAssigned(where, d)
	case d.First.N == 0:
		c.checkDraw(where, d)
	}
	was.n, was.through, was.learned, was.epoch = max(was.n, d.N), max(was.through, d.ContextsThrough),
		max(was.learned, d.LearnedThrough), max(was.epoch, d.Epoch)
	if d.Source >= 0 && !d.lost {
		if d.Time < was.time {
			c.fail("%s: round %d has the time %d after %d", where, d.N, d.Time, was.time)
		}
		was.source, was.time = max(was.source, d.Source), max(was.time, d.Time)
	}
}

// checkSource checks a decision against the context that it answers.
func (c *checker) checkSource(where string, d *round, was *line, records map[int64]*record) {
	var x codec.Context
	if err := codec.ParseContext(&x, d.Context); err != nil {
		c.fail("%s: round %d: %v", where, d.N, err)
		return
	} else if err := x.Validate(); err != nil {
		c.fail("%s: round %d: %v", where, d.N, err)
	}
	if d.lost {
		return
	}
	names := make([]string, len(x.Actions))
	for i := range x.Actions {
		names[i] = x.Actions[i].Name
	}
	if e := c.epochs[d.Epoch]; len(names) == 0 && e != nil && e.rules != nil {
		names = e.rules.Actions
	}
	if len(names) > 0 && !slices.Equal(names, d.Actions) {
		c.fail("%s: round %d is over %q, its context lists %q", where, d.N, d.Actions, names)
	}
	id := x.ID
	if d.Source < 0 {
		c.r.Requests++
		if id == "" && strings.HasPrefix(d.ID, "r-") {
			id = c.minted(fmt.Sprintf("r-%d-%d", d.Partition, d.N), d, was)
		}
		if id != "" && id != d.ID {
			c.fail("%s: round %d has the id %q, its request %q", where, d.N, d.ID, id)
		}
		return
	}
	r := records[d.Source]
	switch {
	case r == nil || r.Type != "":
		c.fail("%s: round %d answers contexts[%d]@%d, where no context lies", where, d.N, d.Partition, d.Source)
		return
	case !codec.SameContext(r.Value, d.Context):
		c.fail("%s: round %d: its context differs from contexts[%d]@%d", where, d.N, d.Partition, d.Source)
	case d.Source <= was.source:
		c.fail("%s: round %d answers contexts[%d]@%d after @%d", where, d.N, d.Partition, d.Source, was.source)
	case d.ContextsThrough <= d.Source:
		c.fail("%s: round %d has read contexts to %d and answers @%d", where, d.N, d.ContextsThrough, d.Source)
	}
	if id == "" {
		id = headerID(r)
	}
	if id == "" {
		id = c.minted(fmt.Sprintf("%d-%d", d.Partition, r.Offset), d, was)
	}
	if d.ID != id {
		c.fail("%s: round %d has the id %q, its context %q", where, d.N, d.ID, id)
	}
	if d.Time > r.at {
		c.fail("%s: round %d has the time %d, its context %d", where, d.N, d.Time, r.at)
	}
	if c.source[d.Partition][d.Source] == nil {
		c.source[d.Partition][d.Source] = d
	}
}

// headerID is the id that a context's headers give it, "" if they give none.
func headerID(r *record) string {
	id, _ := codec.CloudEventID(func(key string) string {
		for _, h := range r.Headers {
			if h.Key == key {
				return h.Value
			}
		}
		return ""
	})
	return id
}

// taken reports whether an id that is used in round n is remembered from an earlier one.
func (c *checker) taken(was *line, id string, n int64) bool {
	m, ok := was.used[id]
	return ok && (c.o.Dedup == 0 || n-m <= c.o.Dedup)
}

// minted is the id that a context without one must have: the plain one or, where that is
// taken, the first of those that follow from it and the seed.
func (c *checker) minted(plain string, d *round, was *line) string {
	id := plain
	for try := uint64(1); c.taken(was, id, d.N); try++ {
		if c.o.Seed == nil && strings.HasPrefix(d.ID, plain+"-") {
			return d.ID
		}
		id = fmt.Sprintf("%s-%016x", plain, hash64([]byte("hindsight/id/1"), c.o.Seed, []byte(c.name), []byte(plain),
			binary.BigEndian.AppendUint64(nil, try)))
	}
	return id
}

// checkEpochOf checks that a decision was made by the model that followed the feedback it had learned.
func (c *checker) checkEpochOf(where string, d *round) {
	if d.Era < c.lastEra || c.o.LostTails && c.epochs[d.Epoch] == nil { // it may be lost
		return
	}
	if c.epochs[d.Epoch] == nil {
		c.fail("%s: round %d is of epoch %d, which was never announced", where, d.N, d.Epoch)
		return
	}
	for _, e := range c.order {
		if e.rec.Epoch <= d.Epoch && e.rec.Through > d.LearnedThrough || e.rec.Epoch > d.Epoch &&
			e.rec.Through < d.LearnedThrough {
			c.fail("%s: round %d is of epoch %d after feedback %d, but epoch %d began after feedback %d",
				where, d.N, d.Epoch, d.LearnedThrough, e.rec.Epoch, e.rec.Through)
		}
	}
}

// checkAssigned checks that a decision of another system says what its context does, and nothing that it does not.
func (c *checker) checkAssigned(where string, d *round) {
	var x codec.Context
	if codec.ParseContext(&x, d.Context) != nil {
		return // said elsewhere
	}
	said, a := map[string]float64{}, &x.Assigned
	for _, s := range a.Law {
		said[s.Name] = s.P
	}
	own, p := d.Propensities[d.Action], said[a.Action]
	if a.Propensity > 0 {
		p = a.Propensity
	}
	if d.Actions[d.Action] != a.Action || d.Gamma != 0 || math.Abs(own-p) > 1e-9 && d.Unknown != codec.UnknownLaw ||
		(d.Unknown == codec.UnknownLaw) != (p == 0) || d.Unknown == codec.UnknownRest && len(said) > 0 {
		c.fail("%s: round %d is %q with %v (unknown: %d), and %+v was assigned", where, d.N, d.Actions[d.Action], own,
			d.Unknown, *a)
	}
	for i, name := range d.Actions {
		if len(said) > 0 && math.Abs(d.Propensities[i]-said[name]) > 1e-9 {
			c.fail("%s: round %d has %v for %q, and %+v was assigned", where, d.N, d.Propensities[i], name, *a)
		}
	}
}

// checkDraw checks that the law sums to exactly 1, and that the action is the one
// whose interval holds the round's random number.
func (c *checker) checkDraw(where string, d *round) {
	const one = 1 << 53
	var sum uint64
	u, drawn := uniform(c.o.Seed, c.name, d.Partition, d.N, d.ID), -1
	for a, p := range d.Propensities {
		w := uint64(p * one)
		if drawn < 0 && u < sum+w {
			drawn = a
		}
		sum += w
	}
	if sum != one {
		c.fail("%s: round %d: the law sums to %d/2^53", where, d.N, sum)
	}
	if c.o.Seed != nil && drawn != d.Action {
		c.fail("%s: round %d: the action is number %d, the draw says %d", where, d.N, d.Action, drawn)
	}
}

// uniform is the 53 random bits of a round.
func uniform(seed []byte, name string, partition int, n int64, id string) uint64 {
	return hash64([]byte("hindsight/draw/1"), seed, []byte(name), binary.BigEndian.AppendUint64(nil, uint64(partition)),
		binary.BigEndian.AppendUint64(nil, uint64(n)), []byte(id)) >> 11
}

// hash64 is the beginning of the SHA-256 of fields, each after its length.
func hash64(fields ...[]byte) uint64 {
	var b []byte
	for _, f := range fields {
		b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
	}
	h := sha256.Sum256(b)
	return binary.BigEndian.Uint64(h[:8])
}
