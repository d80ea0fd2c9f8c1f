package loop

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// checkWorlds runs a property on some hundreds of worlds, or on 24,000.
func checkWorlds(t *testing.T, hundreds int, prop func(*rapid.T)) {
	t.Helper()
	if long() {
		hundreds = 240
	}
	for range hundreds {
		rapid.Check(t, prop)
	}
}

// cutAt is where a cut ends.
type cutAt struct {
	time int64
	next []int64 // by input
}

// newCutLog returns an empty log of a world.
func newCutLog(w *world) *cutLog {
	return &cutLog{partitions: w.partitions, rules: w.ruleOf, inputs: append(slices.Clone(w.decisions), w.outcomes...)}
}

func (w *world) limits() codec.Limits {
	return codec.Limits{Heart: Heart, Pending: int64(w.maxPending), Dedup: int64(w.dedup)}
}

// drawCuts draws cuts of a log. Legal ones take all outcomes up to a time, and all decisions up to
// a later one, as a joiner does that has read every input to its end.
func drawCuts(t *rapid.T, l *cutLog, legal bool, lead int64) (cuts []cutAt) {
	next := make([]int64, len(l.inputs))
	now := int64(0)
	for ends := false; !ends; {
		now += int64(rapid.IntRange(0, 8).Draw(t, "step"))
		if len(cuts) == 40 {
			now, ends = 1<<40, true
		}
		for q, recs := range l.inputs {
			ahead := lead
			if q >= l.partitions {
				ahead = 0
			}
			if !legal && !ends {
				ahead = int64(rapid.IntRange(-6, 6).Draw(t, "off"))
			}
			next[q] = readTo(recs, next[q], now+ahead)
		}
		cuts = append(cuts, cutAt{now, slices.Clone(next)})
	}
	return append(cuts, cutAt{End, slices.Clone(next)})
}

// readTo returns the offset behind the records up to a time, from an offset on.
func readTo(recs []record, next, time int64) int64 {
	reached := int64(0)
	for _, r := range recs {
		reached = max(reached, r.time)
		if r.at.Offset < next {
			continue
		}
		if reached > time {
			break
		}
		next = r.at.Offset + 1
	}
	return next
}

func feedbackBytes(dst [][]byte, fs []codec.Feedback) [][]byte {
	for i := range fs {
		dst = append(dst, codec.AppendFeedback(nil, &fs[i]))
	}
	return dst
}

func sameFeedback(t *rapid.T, got, want [][]byte) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || string(got[i]) != string(want[i]) {
			t.Fatalf("%d feedbacks of %d; the first that differs is %d:\n%s\n%s",
				len(got), len(want), i+1, printAt(got, i), printAt(want, i))
		}
	}
}

func printAt(fs [][]byte, i int) string {
	if i >= len(fs) {
		return "none"
	}
	return print(fs[i])
}

// cutInvariants checks what must hold of a joiner after each cut.
func cutInvariants(t *rapid.T, j *Joiner) {
	t.Helper()
	waiting, held, bytes := 0, 0, 0
	byPartition := make([]int, len(j.parts))
	for i := range j.queue.len() {
		switch p := j.queue.at(i).p; {
		case i == 0 && (p == nil || p.ready):
			t.Fatal("the head of the line does not wait")
		case p != nil:
			waiting++
			bytes += p.weigh()
			byPartition[p.d.Partition]++
			if p.ready {
				held++
			}
		}
	}
	if j.waiting > 0 && j.full() {
		t.Fatalf("%d rounds wait with %d bytes, and the limits are %+v", waiting, bytes, j.limits)
	}
	if waiting != j.Pending() || bytes != j.PendingBytes() || int64(waiting) > j.limits.Pending {
		t.Fatalf("%d rounds wait with %d bytes, counted are %d with %d", waiting, bytes, j.Pending(), j.PendingBytes())
	}
	if n, wait := j.Held(); n != held || wait < 0 {
		t.Fatalf("%d rounds with a fate wait, counted are %d, for %d ns", held, n, wait)
	}
	for i := range j.parts {
		if j.parts[i].waiting != byPartition[i] {
			t.Fatalf("%d rounds of partition %d wait, counted are %d", byPartition[i], i, j.parts[i].waiting)
		}
	}
	if j.rounds.live > j.memory.len()+waiting {
		t.Fatalf("%d rounds are known, %d are remembered and %d wait", j.rounds.live, j.memory.len(), waiting)
	}
}

// cutRun is a joiner at work on a log, which may crash.
type cutRun struct {
	l       *cutLog
	j       *Joiner
	limits  codec.Limits
	fed     int64 // feedbacks stored
	rejects map[Place]codec.Reject
}

func startCutRun(t *rapid.T, l *cutLog, limits codec.Limits) *cutRun {
	j := NewJoiner(l.partitions, limits, 1, l.rules)
	r := &cutRun{l: l, limits: limits, rejects: map[Place]codec.Reject{}, j: j}
	if err := l.mark(r.j, limits); err != nil {
		t.Fatal(err)
	}
	return r
}

// step appends a cut and what follows from it; most is how many feedbacks are stored before a crash.
func (r *cutRun) step(t *rapid.T, at cutAt, most int) {
	prev := r.l.positions(r.j)
	r.l.entries = append(r.l.entries, cutEntry{cut: r.l.cut(r.j.LastCut()+1, at.time, prev, at.next), prev: prev})
	r.take(t, &r.l.entries[len(r.l.entries)-1], most)
}

// take takes a cut that is in the log, and compares or stores what follows from it.
func (r *cutRun) take(t *rapid.T, e *cutEntry, most int) {
	if err := r.l.take(r.j, e); err != nil {
		t.Fatal(err)
	}
	cutInvariants(t, r.j)
	var ready Ready
	r.j.Ready(&ready)
	for i := range ready.Feedback {
		f := &ready.Feedback[i]
		b := codec.AppendFeedback(nil, f)
		if f.N <= r.fed {
			if was := r.l.feedback(f.N); string(was) != string(b) {
				t.Fatalf("feedback %d is made again and differs:\n%s\n%s", f.N, print(b), print(was))
			}
		} else if most > 0 {
			if f.N != r.fed+1 {
				t.Fatalf("feedback %d behind %d", f.N, r.fed)
			}
			most--
			r.fed++
			r.l.entries = append(r.l.entries, cutEntry{feedback: b, n: f.N})
		}
	}
	for _, x := range ready.Rejects {
		at := Place{x.Partition, x.Offset}
		if was, there := r.rejects[at]; there && !reflect.DeepEqual(was, x) {
			t.Fatalf("reject %+v, before %+v", x, was)
		}
		r.rejects[at] = x
	}
}

// feedback returns a feedback of the log.
func (l *cutLog) feedback(n int64) []byte {
	for i := range l.entries {
		if e := &l.entries[i]; e.feedback != nil && e.n == n {
			return e.feedback
		}
	}
	return nil
}

// restart goes on with a new joiner from the log.
func (r *cutRun) restart(t *rapid.T) {
	m, at := r.l.last()
	j, err := r.l.restore(m, at, false)
	if err != nil {
		t.Fatal(err)
	}
	r.j = j
	for i := at + 1; i < len(r.l.entries); i++ {
		if e := r.l.entries[i]; e.cut != nil {
			r.take(t, &e, End>>1)
		}
	}
}

// drawLimits draws other limits for a world.
func drawLimits(t *rapid.T, l codec.Limits) codec.Limits {
	if rapid.IntRange(0, 3).Draw(t, "pending changes") == 0 {
		l.Pending = int64(rapid.IntRange(1, 6).Draw(t, "pending"))
	}
	if rapid.IntRange(0, 3).Draw(t, "dedup changes") == 0 {
		l.Dedup = int64(rapid.IntRange(0, 12).Draw(t, "dedup"))
	}
	if rapid.IntRange(0, 3).Draw(t, "bytes change") == 0 {
		l.Bytes = int64(rapid.IntRange(0, 3).Draw(t, "hundreds")) * 100
	}
	return l
}

// TestCutRestart: a joiner that is restarted anywhere, from its last mark, by the cuts and the
// feedback, gives the same bytes and the same rejects, whatever limits its marks set. An audit of
// its log finds nothing.
func TestCutRestart(t *testing.T) { testCutRestart(t, genWorld(14)) }

// TestNamedRestart: nor does it where models name outcomes, of several stages.
func TestNamedRestart(t *testing.T) { testCutRestart(t, genNamedWorld(14)) }

// TestSoonRestart: nor does it where rounds are learned before their feedback.
func TestSoonRestart(t *testing.T) { testCutRestart(t, genSoonWorld(24)) }

func testCutRestart(t *testing.T, worlds *rapid.Generator[*world]) {
	restarts := 0
	checkWorlds(t, 10, func(t *rapid.T) {
		w := worlds.Draw(t, "world")
		l := newCutLog(w)
		cuts := drawCuts(t, l, rapid.Bool().Draw(t, "legal"), int64(rapid.IntRange(0, 5).Draw(t, "lead")))
		r := startCutRun(t, l, w.limits())
		for _, at := range cuts {
			if rapid.IntRange(0, 9).Draw(t, "crash") == 0 {
				r.step(t, at, rapid.IntRange(0, 3).Draw(t, "kept"))
				r.restart(t)
				restarts++
				r.limits = drawLimits(t, r.limits)
			} else if r.step(t, at, End>>1); rapid.IntRange(0, 4).Draw(t, "mark") > 0 {
				continue
			}
			if err := l.mark(r.j, r.limits); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.audit(); err != nil {
			t.Fatal(err)
		}
		same := runWithoutCrashes(t, w, l)
		sameFeedback(t, same.l.fed(), l.fed())
		var got, want []codec.Reject
		for _, x := range r.rejects {
			got = append(got, x)
		}
		for _, x := range same.rejects {
			want = append(want, x)
		}
		sameRejects(t, got, want)
	})
	t.Log(restarts, "restarts")
}

// runWithoutCrashes takes the cuts of a log, and puts the limits of its marks in force, with one
// joiner.
func runWithoutCrashes(t *rapid.T, w *world, l *cutLog) *cutRun {
	r := startCutRun(t, newCutLog(w), w.limits())
	for i := range l.entries {
		switch e := &l.entries[i]; {
		case e.cut != nil:
			r.take(t, e, End>>1)
		case e.mark != nil:
			if err := r.j.SetLimits(e.mark); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// fed returns the feedback of the log.
func (l *cutLog) fed() (out [][]byte) {
	for i := range l.entries {
		if b := l.entries[i].feedback; b != nil {
			out = append(out, b)
		}
	}
	return out
}
