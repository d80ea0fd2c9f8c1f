package loop

import (
	"bytes"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// outPart is what the joiner knows of a partition of outcomes.
type outPart struct {
	through int64     // next unread
	time    int64     // running maximum of log times
	handled int64     // before a restart, offsets below this got their fate, and rejects are stored
	parked  []int64   // but for these, ascending
	refused []refusal // final rejects of outcomes from through on, ascending by offset
	since   int64     // rejects of those are not stored before this log time
}

// before reports whether the outcome at an offset got its fate before a restart.
func (o *outPart) before(offset int64) bool {
	if offset >= o.handled {
		return false
	}
	_, waits := slices.BinarySearch(o.parked, offset)
	return !waits
}

// arrival is one record of an outcomes partition.
type arrival struct {
	Place
	time    int64 // log time, made monotone
	raw     []byte
	owned   bool     // nobody else has raw
	handled bool     // read again after a restart, and not to be rejected anew
	refused *refusal // what it was rejected as before a restart; nil: it was not, as far as is known
}

func (a *arrival) pos() outPos { return outPos{a.Partition, a.Offset, a.time} }

// roundMemo is what the joiner knows of a round by its id.
type roundMemo struct {
	p *pending // while it waits, else nil and the rest is set

	fate     codec.Fate
	reason   string
	epoch    int64
	told     bool // by Recall or Resume
	late     bool // a loss came after its window
	closedAt int64
	outPart  int32
	outOff   int64
}

// AddOutcome takes the next record of an outcomes partition. raw is copied where it
// is kept. ceID is the id of a CloudEvents header, or empty.
func (j *Joiner) AddOutcome(at Place, logTime int64, raw []byte, ceID string) {
	a := arrival{Place: at, time: j.readOutcome(at, logTime), raw: raw, handled: j.outs[at.Partition].before(at.Offset)}
	a.refused = j.refusedAs(&a)
	if err := j.parse(raw, ceID); err != nil {
		j.reject(&a, codec.ReasonMalformed, err, "")
		j.settle()
		return
	}
	if s := j.rounds.get(j.outcome.ID); s < 0 && a.refused != nil {
		j.reject(&a, codec.ReasonOrphan, nil, j.outcome.ID)
	} else if s < 0 {
		j.park(&a, ceID)
	} else if memo := j.rounds.value(s); memo.p != nil {
		a.handled = false // if log time went back, the round may not take it again
		j.apply(memo.p, &a)
	} else if a.refused != nil || !j.counted(memo, &a) {
		a.handled = a.handled && memo.told // likewise
		j.lateAfter(memo, &a)
		j.reject(&a, reasonAfter(memo.fate, memo.reason, j.rules(memo.epoch)), nil, j.outcome.ID)
	}
	j.settle()
}

// PassOutcome notes a record of an outcomes partition that is not an outcome.
func (j *Joiner) PassOutcome(at Place, logTime int64) {
	j.readOutcome(at, logTime)
	j.settle()
}

func (j *Joiner) readOutcome(at Place, logTime int64) int64 {
	part := &j.outs[at.Partition]
	part.time = max(part.time, logTime)
	part.through = at.Offset + 1
	j.now = max(j.now, part.time)
	return part.time
}

func (j *Joiner) parse(raw []byte, ceID string) error {
	if err := codec.ParseOutcome(&j.outcome, raw); err != nil {
		return err
	}
	if j.outcome.OutcomeID == "" {
		j.outcome.OutcomeID = ceID
	}
	if k := j.outcome.Kind; k == codec.Loss || k == codec.Reward {
		j.rewards = k == codec.Reward
	}
	return j.outcome.Validate()
}

// Rewards reports whether the last outcome with a value, since the joiner was opened, told a
// reward.
func (j *Joiner) Rewards() bool { return j.rewards }

// apply gives a round that is not released the outcome in j.outcome.
func (j *Joiner) apply(p *pending, a *arrival) {
	if p.ready {
		j.reject(a, reasonAfter(p.fate, p.reason, p.rules), nil, j.outcome.ID)
		return
	}
	if deadline, known := j.deadline(p); known && a.time > deadline {
		j.lateFor(p, a)
		j.reject(a, codec.ReasonLate, nil, j.outcome.ID)
		return
	}
	if a.refused != nil {
		j.reject(a, codec.ReasonDuplicate, nil, j.outcome.ID)
		return
	}
	size := p.size
	reason, err := p.take(&j.outcome, a.pos())
	j.bytes += p.size - size
	if reason != "" {
		j.reject(a, reason, err, j.outcome.ID)
		return
	}
	p.need(a.pos())
	if p.ready {
		j.finish(p)
	}
}

// finish releases a round that is ready, or holds it until it is its turn.
func (j *Joiner) finish(p *pending) {
	if p.rules.Waits(p.d.N, p.d.LearnedThrough) {
		j.hold(p)
	} else {
		j.leave(p)
	}
}

// counted reports whether an outcome that is read again after a restart had its
// part in a round that was released before it, or was rejected then: a feedback is
// stored after the rejects of all that was read before it, and the order of the merge
// tells what that was.
func (j *Joiner) counted(m *roundMemo, a *arrival) bool {
	switch {
	case !m.told:
		return false
	case j.single(m.epoch): // a later one took the place of one that a power failure took
		return int(m.outPart) == a.Partition && m.outOff == a.Offset && a.time <= m.closedAt
	case a.time != m.closedAt:
		return a.time < m.closedAt
	case endedByOutcome(m.fate, m.reason, j.rules(m.epoch)):
		return a.Partition < int(m.outPart) || a.Partition == int(m.outPart) && a.Offset <= m.outOff
	}
	return m.reason != codec.ReasonOverflow // which a decision of that time caused, before outcomes of that time
}

// single reports whether one outcome at most counts for a round.
func (j *Joiner) single(epoch int64) bool {
	rules := j.rules(epoch)
	return rules != nil && rules.Outcomes == First && !rules.Activation
}

func (j *Joiner) reject(a *arrival, reason string, err error, id string) {
	if a.handled || a.refused != nil && a.refused.stored {
		return // counted, or its reject is stored
	}
	if a.refused != nil {
		reason = a.refused.reason
	}
	raw := a.raw
	if !a.owned {
		raw = bytes.Clone(raw)
	}
	r := codec.Reject{V: codec.Version, Topic: "outcomes", Partition: a.Partition, Offset: a.Offset,
		Time: a.time, Reason: reason, ID: strings.Clone(id), Bytes: raw}
	if err != nil {
		r.Detail = err.Error()
	}
	j.rejects = append(j.rejects, r)
}

// AppendRejects appends the outcomes rejected since the last call. They must be
// stored before any feedback or mark that is made after them, and after a mark that was made
// before (see [Joiner.NeedsMark]).
func (j *Joiner) AppendRejects(dst []codec.Reject) []codec.Reject {
	dst = append(dst, j.rejects...)
	clear(j.rejects)
	j.rejects = j.rejects[:0]
	return dst
}
