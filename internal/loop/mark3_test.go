package loop

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// cutZero returns the cut that stands for what a joiner without cuts had taken at its last mark, nil if
// the older mark is not of one. m is to be restored; behind is the index behind the older mark.
func (l *cutLog) cutZero(from, m *codec.FeedbackMark, behind int) *cutEntry {
	if !WithoutCuts(from) {
		return nil
	}
	for i := behind; i < len(l.entries); i++ {
		if x := l.entries[i].mark; x != nil {
			m = x
			break
		}
	}
	prev, next := make([]int64, len(l.inputs)), make([]int64, len(l.inputs))
	for p := range l.partitions {
		a, b := &from.Positions[p], &m.Positions[p]
		prev[p], next[p] = a.DecisionsFrom, b.Decisions
		prev[l.partitions+p], next[l.partitions+p] = a.OutcomesFrom, b.Outcomes
	}
	return &cutEntry{cut: l.cut(0, 0, prev, next), prev: prev, mark: m}
}

// extent returns where a range ends that begins at an offset: behind the records up to another, and
// those up to a log time.
func (l *cutLog) extent(q int, from, through, until int64) (next int64, sum uint32) {
	next = from
	var recs []record
	for _, r := range l.span(q, from, End) {
		if r.at.Offset >= through && r.time > until {
			break
		}
		recs, next = append(recs, r), r.at.Offset+1
	}
	return next, cutSum(recs)
}

// goOn begins era 1 behind the last mark of a joiner without cuts.
func (l *cutLog) goOn(limits codec.Limits) (*CutJoiner, error) {
	m, at := l.last()
	era := &codec.FeedbackMark{N: m.N, Time: m.Time, Era: 1, From: int64(at), FromCut: -1, Memory: -1, Limits: limits,
		Guard: m.Guard}
	for i := range l.entries {
		era.N = max(era.N, l.entries[i].n)
	}
	era.Eras = []codec.EraStart{{Era: 1, N: era.N}}
	until := int64(math.MinInt64)
	if slices.ContainsFunc(m.Positions, func(x codec.Position) bool { return len(x.Parked) > 0 }) {
		until = m.Time
	}
	for p := range m.Positions {
		was, pos := &m.Positions[p], codec.Position{Partition: p}
		pos.DecisionsSince, pos.OutcomesSince = was.DecisionsFrom, was.OutcomesFrom
		pos.Decisions, pos.DecisionsSum = l.extent(p, was.DecisionsFrom, was.DecisionsThrough, until)
		pos.Outcomes, pos.OutcomesSum = l.extent(l.partitions+p, was.OutcomesFrom, was.OutcomesThrough, math.MinInt64)
		if era.N > m.N {
			pos.Again = End
		}
		era.Positions = append(era.Positions, pos)
	}
	j, err := l.restore(era, len(l.entries), true)
	if err != nil {
		return nil, err
	}
	var told codec.FeedbackMark
	j.Mark(&told)
	era.Positions, era.Remembers = told.Positions, told.Remembers
	return j, l.write(j, era)
}

// oldRun is a joiner without cuts at work on a log.
type oldRun struct {
	l       *cutLog
	j       *Joiner
	rejects []codec.Reject
}

func (r *oldRun) store(feedback int) {
	fs := r.j.AppendReady(nil)
	for i := range fs[:min(feedback, len(fs))] {
		r.l.entries = append(r.l.entries, cutEntry{feedback: codec.AppendFeedback(nil, &fs[i]), n: fs[i].N})
	}
}

func (r *oldRun) storeRejects() {
	for _, x := range r.j.AppendRejects(nil) {
		r.rejects = append(r.rejects, x)
		r.l.rejected[Place{x.Partition, x.Offset}] = x.Time
	}
}

func (r *oldRun) mark(t *rapid.T, m codec.FeedbackMark) {
	read, err := codec.ParseFeedbackMark(codec.AppendFeedbackMark(nil, &m))
	if err != nil {
		t.Fatal(err)
	}
	r.l.entries = append(r.l.entries, cutEntry{mark: &read})
}

func startOldRun(w *world) *oldRun {
	r := &oldRun{l: newCutLog(w), j: w.joiner()}
	r.l.rejected = map[Place]int64{}
	return r
}

// TestWithoutCutsStopped: behind a joiner without cuts that stopped, a joiner gives the feedback and the
// rejects that the other had given.
func TestWithoutCutsStopped(t *testing.T) {
	checkWorlds(t, 12, func(t *rapid.T) {
		w := genWorld(worldOptions{rounds: 14, memory: true, unique: true, noOrphans: true}).Draw(t, "world")
		tame(w)
		w.controls = nil
		script := w.script()
		r, stop := startOldRun(w), rapid.IntRange(0, len(script)).Draw(t, "stop")
		for i := range stop {
			if err := give(r.j, &script[i]); err != nil {
				t.Fatal(err)
			}
			r.store(math.MaxInt)
			r.storeRejects()
		}
		r.mark(t, r.j.Mark())
		j, err := r.l.goOn(w.limits())
		if err != nil {
			t.Fatal(err)
		}
		var want, got [][]byte
		rejects := slices.Clone(j.Unfinished())
		for _, s := range script[stop:] {
			if err := give(r.j, &s); err != nil {
				t.Fatal(err)
			}
			want = feedbackBytes(want, r.j.AppendReady(nil))
			ready := takeOne(t, j, &s)
			got, rejects = feedbackBytes(got, ready.Feedback), append(rejects, ready.Rejects...)
		}
		sameFeedback(t, got, want)
		r.j.Orphans(math.MaxUint64)
		sameRejects(t, rejects, r.j.AppendRejects(nil))
	})
}

// TestWithoutCutsState: behind a joiner without cuts that stopped, rounds wait in the same order, and have
// of their outcomes what they had, whatever the clocks did.
func TestWithoutCutsState(t *testing.T) {
	checkWorlds(t, 12, func(t *rapid.T) {
		w := genWorld(worldOptions{rounds: 14, memory: true}).Draw(t, "world")
		w.controls = slices.DeleteFunc(w.controls, func(c control) bool { return c.time == End })
		script := w.script()
		r := startOldRun(w)
		for i := range rapid.IntRange(0, len(script)).Draw(t, "stop") {
			if err := give(r.j, &script[i]); err != nil {
				t.Fatal(err)
			}
			r.store(math.MaxInt)
			r.storeRejects()
		}
		r.mark(t, r.j.Mark())
		j, err := r.l.goOn(w.limits())
		if err != nil {
			t.Fatal(err)
		}
		k := 0
		for i := range r.j.queue.len() {
			p := *r.j.queue.at(i)
			if p == nil {
				continue
			}
			for k < j.queue.len() && (j.queue.at(k).p == nil || j.queue.at(k).p.d.N > r.j.parts[j.queue.at(k).partition].next-1) {
				k++ // it was not read yet
			}
			if k == j.queue.len() {
				t.Fatalf("round %d of %d does not wait", p.d.N, p.d.Partition)
			}
			q := j.queue.at(k).p
			k++
			a, b := p.roundFate, q.roundFate
			if p.d.N != q.d.N || p.d.Partition != q.d.Partition || p.time != q.time || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("round %d of %d at %d has %+v, had %d of %d at %d %+v", q.d.N, q.d.Partition, q.time, b,
					p.d.N, p.d.Partition, p.time, a)
			}
		}
	})
}

// takeOne gives a joiner one record as a cut, unless it has it already.
func takeOne(t *rapid.T, j *CutJoiner, s *step) (ready Ready) {
	decisions, outcomes := j.Next(s.at.Partition)
	if !s.outcome && s.at.Offset < decisions || s.outcome && s.at.Offset < outcomes {
		return ready
	}
	b, done := cutBatch([]record{s.record}, s.outcome)
	defer done()
	c := codec.Cut{Cut: j.LastCut() + 1, Time: s.record.time}
	r := []codec.Range{{Partition: s.at.Partition, Next: s.at.Offset + 1}}
	if s.outcome {
		c.Outcomes = r
	} else {
		c.Decisions = r
	}
	if err := j.Take(&c, []Batch{b}); err != nil {
		t.Fatal(err)
	}
	cutInvariants(t, j)
	j.Ready(&ready)
	return ready
}

// TestWithoutCutsCrashed: behind a joiner without cuts that crashed anywhere, joiners that may crash, too,
// give each round one feedback, and what they give follows from their cuts.
func TestWithoutCutsCrashed(t *testing.T) {
	checkWorlds(t, 12, func(t *rapid.T) {
		w := genWorld(worldOptions{rounds: 14, memory: true}).Draw(t, "world")
		w.controls = slices.DeleteFunc(w.controls, func(c control) bool { return c.time == End })
		script := w.script()
		r, stop := startOldRun(w), rapid.IntRange(0, len(script)).Draw(t, "stop")
		r.mark(t, r.j.Mark())
		for i := range stop {
			if err := give(r.j, &script[i]); err != nil {
				t.Fatal(err)
			}
			r.step(t, i == stop-1)
		}
		limits := drawLimits(t, w.limits())
		forgets := limits.Dedup < 1000
		last, _ := r.l.last()
		j, err := r.l.goOn(limits)
		if err != nil {
			t.Fatal(err)
		}
		r.announced(t, last, j.Unfinished())
		n := &cutRun{l: r.l, j: j, limits: limits, rejects: map[Place]codec.Reject{}, fed: j.LastN()}
		for _, at := range drawCuts(t, r.l, rapid.Bool().Draw(t, "legal"), int64(rapid.IntRange(0, 5).Draw(t, "lead"))) {
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				n.step(t, at, rapid.IntRange(0, 3).Draw(t, "kept"))
				n.restart(t)
				if forgets {
					n.limits = drawLimits(t, n.limits)
				}
			} else if n.step(t, at, End>>1); rapid.IntRange(0, 4).Draw(t, "mark") > 0 {
				continue
			}
			if err := r.l.mark(n.j, n.limits); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.l.audit(); err != nil {
			t.Fatal(err)
		}
		if !forgets { // then the outcome of a round that is forgotten is an orphan
			r.countedOnce(t, n)
		}
	})
}

// step stores what follows from a record, or not all of it before a crash: a mark before rejects, and
// those before feedback.
func (r *oldRun) step(t *rapid.T, crashes bool) {
	done := func() bool { return crashes && rapid.Bool().Draw(t, "crashes") }
	if done() {
		return
	}
	if r.j.NeedsMark() {
		r.mark(t, r.j.MarkRejects())
		if done() {
			return
		}
		r.storeRejects()
	}
	if done() {
		r.store(rapid.IntRange(0, 2).Draw(t, "kept"))
		return
	}
	r.store(math.MaxInt)
	if rapid.IntRange(0, 4).Draw(t, "mark") == 0 {
		r.mark(t, r.j.Mark())
	}
}

// announced fails unless the rejects that a mark announces are stored, or made now.
func (r *oldRun) announced(t *rapid.T, m *codec.FeedbackMark, made []codec.Reject) {
	for p := range m.Positions {
		for _, x := range m.Positions[p].Refused {
			_, stored := r.l.rejected[Place{p, x.Offset}]
			is := func(y codec.Reject) bool { return y.Partition == p && y.Offset == x.Offset && y.Reason == x.Reason }
			if !stored && !slices.ContainsFunc(made, is) {
				t.Fatalf("no reject of outcomes[%d]@%d, which a mark announced as %s: %+v", p, x.Offset, x.Reason, made)
			}
		}
	}
}

// countedOnce fails if an outcome that decided a fate was rejected as well.
func (r *oldRun) countedOnce(t *rapid.T, n *cutRun) {
	for i := range r.l.entries {
		var f codec.Feedback
		if b := r.l.entries[i].feedback; b == nil || codec.ParseFeedback(&f, slices.Clone(b)) != nil {
			continue
		}
		at := Place{f.OutcomePartition, f.OutcomeOffset}
		if x, rejected := n.rejects[at]; rejected && f.OutcomePartition >= 0 {
			t.Fatalf("the outcome that decided feedback %d was rejected: %+v", f.N, x)
		}
		if _, rejected := r.l.rejected[at]; rejected && f.OutcomePartition >= 0 {
			t.Fatalf("the outcome that decided feedback %d had been rejected", f.N)
		}
	}
}
