package loop

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// shell is a joiner with the logs that it writes, as the service has them.
type shell struct {
	t        *rapid.T
	w        *world
	steps    []step
	j        *Joiner
	feedback [][]byte               // stored
	rejects  map[Place]codec.Reject // stored
	marks    [][]byte               // stored
	early    []bool                 // marks made while records were read again
	behind   []int                  // feedbacks before each mark
	at       int                    // next step
	reached  int                    // index of the furthest record ever given
	fifo     bool
	from     []int64 // per partition: decisions, then outcomes, are given from here
}

func (s *shell) start() {
	s.j = s.w.joiner()
	s.at, s.from = 0, make([]int64, 2*s.w.partitions)
}

// store stores what the joiner emitted, and a mark behind it, as the contract says:
// rejects, then feedback, then the mark. A crash may cut it off anywhere.
func (s *shell) store(crash, mark bool) {
	// Rounds that a mark knows to be closed, and whose feedback a crash took, may with order:
	// arrival change places with others: nobody has seen the one order or the other.
	if (mark || crash && s.fifo) && rapid.Bool().Draw(s.t, "mark first") {
		s.reject(s.j.AppendRejects(nil))
		s.mark()
	}
	fs, rs := s.j.AppendReady(nil), s.j.AppendRejects(nil)
	keep := len(fs) + len(rs)
	if crash {
		keep = rapid.IntRange(0, keep).Draw(s.t, "stored")
	}
	s.reject(rs[:min(keep, len(rs))])
	for i := range fs[:max(0, keep-len(rs))] {
		s.feedback = append(s.feedback, codec.AppendFeedback(nil, &fs[i]))
		if fs[i].N != int64(len(s.feedback)) {
			s.t.Fatalf("feedback %d where %d was due", fs[i].N, len(s.feedback))
		}
	}
	if mark && !crash {
		s.mark()
	}
}

func (s *shell) mark() {
	m := s.j.MarkRejects()
	if rapid.Bool().Draw(s.t, "look at what waits") {
		m = s.j.Mark()
	}
	s.early = append(s.early, s.j.now <= s.j.told)
	s.marks, s.behind = append(s.marks, codec.AppendFeedbackMark(nil, &m)), append(s.behind, len(s.feedback))
}

func (s *shell) reject(rs []codec.Reject) {
	for i := range rs {
		at := Place{rs[i].Partition, rs[i].Offset}
		if _, ok := s.rejects[at]; !ok { // the first counts: later its round may be released
			s.rejects[at] = rs[i]
		}
	}
}

// restart forgets everything but the logs. It goes back to a mark, and reads the
// feedback and the later marks, or some of them, from there.
func (s *shell) restart() {
	s.start()
	k, recall := rapid.IntRange(-1, len(s.marks)-1).Draw(s.t, "mark"), 0
	if k >= 0 {
		recall = s.behind[k]
	}
	first := k
	k = max(k, 0)
	for i := range len(s.feedback) + 1 {
		for ; k < len(s.marks) && s.behind[k] == i; k++ {
			if k == first || rapid.Bool().Draw(s.t, "later mark") {
				s.restore(s.marks[k])
			}
		}
		if i < len(s.feedback) && i >= recall-s.memory(max(first, 0)) {
			s.tell(s.feedback[i], i < recall)
		}
	}
	for p := range s.w.partitions {
		s.from[p], s.from[s.w.partitions+p] = s.j.From(p)
	}
	if s.j.LastN() != int64(len(s.feedback)) {
		s.t.Fatalf("LastN is %d after %d feedbacks", s.j.LastN(), len(s.feedback))
	}
	if rapid.Bool().Draw(s.t, "mark at once") {
		s.store(false, true)
	}
}

// memory returns how many feedbacks before a mark to recall: as many as are remembered,
// but all if a mark was made before a joiner had caught up with its predecessor.
func (s *shell) memory(mark int) int {
	if slices.Contains(s.early[min(mark, len(s.marks)):], true) {
		return len(s.feedback)
	}
	return s.w.dedup
}

func (s *shell) tell(b []byte, recall bool) {
	b = slices.Clone(b) // the joiner must not keep what it aliases
	defer clear(b)
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, b); err != nil {
		s.t.Fatal(err)
	}
	if recall {
		s.j.Recall(&f)
	} else {
		s.j.Resume(&f)
	}
}

func (s *shell) restore(b []byte) {
	m, err := codec.ParseFeedbackMark(b)
	if err != nil {
		s.t.Fatal(err)
	}
	s.j.Restore(&m)
}

// next gives the next record that was not passed by the mark, or reports the end.
func (s *shell) next() bool {
	for ; s.at < len(s.steps); s.at++ {
		x := s.steps[s.at]
		if x.ctl != nil && s.fifo && x.index < s.reached {
			continue // nobody calls for it again
		}
		if x.ctl == nil {
			s.reached = max(s.reached, x.index)
			i := x.at.Partition
			if x.outcome {
				i += s.w.partitions
			}
			if x.at.Offset < s.from[i] {
				continue
			}
		}
		if err := give(s.j, &x); err != nil {
			s.t.Fatal(err)
		}
		s.at++
		return true
	}
	return false
}

// A joiner that is restarted again and again, from any of its marks, stores the same
// feedback and the same rejects as one that was not.
func TestJoinerRestart(t *testing.T) {
	checkRestart(t, genWorld(worldOptions{rounds: 12, memory: true, noOrphans: true}), 1000)
}

// The same holds for one that forgets, as long as no id is used twice; but an outcome
// of a round that was nearly forgotten may be rejected as orphan or as late.
func TestJoinerRestartForgetful(t *testing.T) {
	checkRestart(t, genWorld(worldOptions{rounds: 12, unique: true, memory: true, noOrphans: true}), 1)
}

func checkRestart(t *testing.T, world *rapid.Generator[*world], dedup int) {
	check(t, 20, func(t *rapid.T) {
		w := world.Draw(t, "world")
		w.dedup = dedup
		restarts(t, w, drive(t, w, func() bool { return true }))
	})
}

// restarts fails unless a joiner that is restarted again and again stores what one did that
// was not.
func restarts(t *rapid.T, w *world, want *emitted) {
	dedup := w.dedup
	s := &shell{t: t, w: w, steps: w.script(), rejects: map[Place]codec.Reject{}}
	s.fifo = !slices.ContainsFunc(w.rules, func(r *Rules) bool { return r.Arrival || r.Early })
	s.start()
	crashes := rapid.IntRange(1, 5).Draw(t, "crashes")
	rare := rapid.IntRange(1, 8).Draw(t, "rare")
	for s.next() {
		switch what := rapid.IntRange(0, 4*rare).Draw(t, "then"); {
		case what == 0 && crashes > 0:
			crashes--
			s.store(true, false)
			s.restart()
		case what < 3:
			s.store(false, false)
		case what < 5:
			s.store(false, true)
		}
	}
	s.j.Advance(s.j.Now()) // a mark may have been the last to know how late it is: the next tick tells
	s.store(false, true)
	same(t, s.feedback, want.feedback)
	var rejects []codec.Reject
	for _, r := range s.rejects {
		rejects = append(rejects, r)
	}
	if dedup < 1000 {
		blur(rejects)
		blur(want.rejects)
	}
	sameRejects(t, rejects, want.rejects)
	last(t, s)
}

// blur makes the reasons of outcomes of a released round and of no round equal.
func blur(rs []codec.Reject) {
	for i := range rs {
		switch rs[i].Reason {
		case codec.ReasonLate, codec.ReasonDuplicate:
			rs[i].Reason = codec.ReasonOrphan
		}
	}
}

// last checks that the last mark needs no more than it must: without waiting rounds
// and outcomes nothing is read again.
func last(t *rapid.T, s *shell) {
	if n, _ := s.j.Parked(); n > 0 || s.j.Pending() > 0 {
		return
	}
	m := s.j.Mark()
	for _, pos := range m.Positions {
		if len(pos.Parked) > 0 || len(pos.Ahead) > 0 || pos.OutcomesFrom < pos.OutcomesThrough {
			t.Fatalf("%+v", pos)
		}
		if part := s.w.decisions[pos.Partition]; len(part) > 0 && pos.DecisionsFrom != part[len(part)-1].at.Offset+1 {
			t.Fatalf("%+v", pos)
		}
	}
	if m.N != int64(len(s.feedback)) {
		t.Fatalf("%+v", m)
	}
}

// A round whose turn comes early after a restart, since the feedback of those before
// it is stored, keeps its outcome: log time starts anew with the records read again.
func TestRestartEarlyTurn(t *testing.T) {
	rules := []*Rules{
		{Range: Range{Max: 1}, Window: Window{Nanos: 100}},
		{Range: Range{Max: 1}, Window: Window{Nanos: 10}},
	}
	w := &world{partitions: 1, maxPending: 10, dedup: 10, rules: rules}
	decision := func(n, epoch int64, id string) []byte {
		return codec.AppendDecision(nil, &codec.Decision{N: n, ID: id, Epoch: epoch, Actions: []string{"a"}, Propensities: []float64{1}})
	}
	outcome := func(id string) []byte {
		return codec.AppendOutcome(nil, &codec.Outcome{ID: id, Kind: codec.Loss, Value: 0.5})
	}
	from := func(j *Joiner) {
		for offset, d := range [][]byte{decision(1, 1, "slow"), decision(2, 2, "quick")} {
			if err := j.AddDecision(Place{0, int64(offset)}, int64(offset+1), d); err != nil {
				t.Fatal(err)
			}
		}
		j.AddOutcome(Place{0, 0}, 5, outcome("quick"), "")
	}
	j := w.joiner()
	from(j)
	j.Advance(50) // the window of quick is over, slow holds it back
	m := j.Mark()
	j.AddOutcome(Place{0, 1}, 60, outcome("slow"), "")
	fs := j.AppendReady(nil)
	if len(fs) != 2 || fs[1].Fate != codec.Observed {
		t.Fatalf("%+v", fs)
	}
	k := w.joiner()
	k.Restore(&m)
	k.Resume(&fs[0]) // the crash took the other
	from(k)
	if again := k.AppendReady(nil); len(again) != 1 || again[0].N != 2 || again[0].Fate != codec.Observed || again[0].OutcomeOffset != 0 {
		t.Fatalf("%+v", again)
	}
	if k.Now() != 50 {
		t.Fatalf("log time is %d, and the mark says that it reached 50", k.Now())
	}
}
