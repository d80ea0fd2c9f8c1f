package join

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// audit replays the logs from their beginning with another heart.
type audit struct {
	w       *world
	heart   *loop.CutJoiner
	inputs  [][]stream.Record
	next    []int // index of the next record, by input
	due     [][]byte
	rejects map[string][]byte // expected, by place
	stored  map[string]bool
	last    codec.Cut
	told    int64
	back    [][2]int64 // stretches that a clock ran through twice
	known   map[string]bool
	rounds  map[string]int
	total   map[string]int
	was     map[int]int64 // by input: what lies before it and behind an era is taken again
	skips   bool          // to the mark of an era that can be restored
	n       int64
}

func (w *world) audit(total map[string]int) error {
	a := &audit{w: w, next: make([]int, 2*w.partitions), rejects: map[string][]byte{}, known: map[string]bool{}, rounds: map[string]int{}, was: map[int]int64{}, total: total}
	for p := range w.partitions {
		a.inputs = append(a.inputs, w.read("d", p))
	}
	for p := range w.partitions {
		a.inputs = append(a.inputs, w.read("o", p))
	}
	feedback := w.read("f", 0)
	for _, l := range append(a.inputs, feedback) {
		a.clock(l)
	}
	a.heart = loop.NewCutJoiner(w.partitions, codec.Limits{Heart: loop.Heart, Pending: 1 << 40}, 7, w.Rules)
	for i := range feedback {
		if err := a.record(&feedback[i]); err != nil {
			return fmt.Errorf("feedback@%d: %w", feedback[i].Offset, err)
		}
		a.told = max(a.told, feedback[i].Time)
	}
	if len(a.due) > 0 || a.skips {
		return fmt.Errorf("%d feedbacks are missing", len(a.due))
	}
	return a.end()
}

func (a *audit) clock(records []stream.Record) {
	var latest int64
	for i := range records {
		if t := records[i].Time; t < latest {
			a.back = append(a.back, [2]int64{t, latest})
		} else {
			latest = t
		}
	}
}

func (a *audit) twice(t, skew int64) bool {
	for _, b := range a.back {
		if b[0]-skew <= t && t <= b[1]+skew {
			return true
		}
	}
	return false
}

func (a *audit) record(r *stream.Record) error {
	switch r.Type {
	case codec.TypeCut:
		return a.cut(r)
	case codec.TypeMark:
		return a.mark(r)
	case "":
		a.n++
		if a.skips {
			return a.count(r)
		}
		if len(a.due) == 0 || !bytes.Equal(a.due[0], r.Value) {
			return fmt.Errorf("another feedback than what follows from the cuts")
		}
		a.due = a.due[1:]
		return a.count(r)
	}
	return nil
}

func (a *audit) count(r *stream.Record) error {
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, r.Value); err != nil {
		return err
	}
	if f.N != a.n {
		return fmt.Errorf("feedback %d where %d is due", f.N, a.n)
	}
	a.rounds[fmt.Sprint(f.Partition, "/", f.Round)]++
	a.total["feedback"]++
	a.total["fate "+f.Fate.String()+" "+f.Reason]++
	return nil
}

func (a *audit) mark(r *stream.Record) error {
	m, err := codec.ParseFeedbackMark(r.Value)
	if err != nil {
		return err
	}
	if len(m.LostTails) > 0 {
		a.total["eras"]++
		return a.era(r.Offset, &m)
	}
	if a.skips {
		return nil
	}
	var own codec.FeedbackMark
	a.heart.Mark(&own)
	if len(a.due) > 0 || own.N != m.N || own.Cut != m.Cut || own.Time != m.Time || fmt.Sprint(own.Positions) != fmt.Sprint(m.Positions) {
		return fmt.Errorf("mark %+v where the heart says %+v, %d feedbacks due", m, own, len(a.due))
	}
	a.total["marks"]++
	return a.heart.SetLimits(&m)
}

// era restores the heart at the mark of an era, as a joiner does.
func (a *audit) era(at int64, m *codec.FeedbackMark) error {
	c := &Core{cfg: Config{Log: a.w.log.Log, Topics: topics, Partitions: a.w.partitions, Limits: m.Limits, Epochs: a.w}}
	a.due, a.skips = nil, false
	if err := c.restore(context.Background(), at, m, false); errors.Is(err, ErrLost) { // a later era tells of it
		a.skips = true
		return nil
	} else if err != nil {
		return err
	}
	a.heart = c.heart
	for i := range a.next {
		next := c.position(i)
		a.next[i], _ = slices.BinarySearchFunc(a.inputs[i], next, func(r stream.Record, to int64) int { return cmp.Compare(r.Offset, to) })
	}
	a.last = codec.Cut{Cut: m.Cut}
	for _, x := range m.LostTails {
		i := c.input(x.Topic, x.Partition)
		a.was[i] = max(a.was[i], x.Was)
	}
	return nil
}

func (a *audit) cut(r *stream.Record) error {
	if a.skips {
		return nil
	}
	var c codec.Cut
	if err := codec.ParseCut(&c, r.Value); err != nil {
		return err
	}
	if len(a.due) > 0 {
		return fmt.Errorf("a cut where %d feedbacks are due", len(a.due))
	}
	t := taker{hooks: &Hooks{}, topics: &topics}
	for _, x := range c.Decisions {
		records, err := a.move(x.Partition, x.Next, c.Cut)
		if err != nil {
			return a.gone(err)
		}
		sum, err := t.takeDecisions(x.Partition, records)
		if err == nil && sum != x.Sum {
			return a.gone(fmt.Errorf("sum %x, not %x", sum, x.Sum))
		}
		if err != nil || sum != x.Sum {
			return fmt.Errorf("sum %x, not %x: %v", sum, x.Sum, err)
		}
		for i := range t.batches[len(t.batches)-1].Decisions {
			a.known[t.batches[len(t.batches)-1].Decisions[i].D.ID] = true
		}
	}
	for _, x := range c.Outcomes {
		records, err := a.move(a.w.partitions+x.Partition, x.Next, c.Cut)
		if err != nil {
			return a.gone(err)
		}
		if sum := t.takeOutcomes(records); sum != x.Sum {
			return a.gone(fmt.Errorf("sum %x, not %x", sum, x.Sum))
		}
		for _, e := range t.batches[len(t.batches)-1].Outcomes {
			if e.Err == nil && a.w.lost == 0 && e.O.ID != "nobody" && !a.known[e.O.ID] {
				return fmt.Errorf("cut %d takes an outcome of %s and not its decision, which was there", c.Cut, e.O.ID)
			}
		}
	}
	if c.Time > max(a.told, a.last.Time) && a.w.lost == 0 {
		return fmt.Errorf("cut %d says it is %d, and the latest record said %d", c.Cut, c.Time, a.told)
	}
	if err := a.heart.Take(&c, t.batches); err != nil {
		return err
	}
	a.last = c
	a.total["cuts"]++
	return a.ready()
}

// gone returns why a cut cannot be taken again, nil where logs lose their tails: the mark of an era
// must follow.
func (a *audit) gone(err error) error {
	if !a.w.loses {
		return err
	}
	a.skips, a.due = true, nil
	return nil
}

func (a *audit) ready() error {
	var ready loop.Ready
	a.heart.Ready(&ready)
	for i := range ready.Feedback {
		a.due = append(a.due, codec.AppendFeedback(nil, &ready.Feedback[i]))
	}
	for i := range ready.Rejects {
		r := &ready.Rejects[i]
		r.Fit()
		a.rejects[fmt.Sprint(r.Partition, "@", r.Offset)] = codec.AppendReject(nil, r)
		a.total["reject "+r.Reason]++
	}
	return nil
}

// move returns the records that a cut takes of an input, and checks that the cut before it did not
// leave them out.
func (a *audit) move(i int, next, cut int64) ([]stream.Record, error) {
	from := a.next[i]
	for a.next[i] < len(a.inputs[i]) && a.inputs[i][a.next[i]].Offset < next {
		r := &a.inputs[i][a.next[i]]
		a.told = max(a.told, r.Time)
		a.next[i]++
	}
	records := a.inputs[i][from:a.next[i]]
	if len(records) == 0 || records[len(records)-1].Offset+1 != next {
		return nil, fmt.Errorf("cut %d reads input %d up to %d, where no record ends", cut, i, next)
	}
	skew := int64(0)
	if a.w.kind == "skew" || a.w.kind == "back" {
		skew = 300
	}
	if t := records[0].Time; records[0].Offset >= a.was[i] && t+skew < a.last.Time && !a.twice(t, skew) {
		return nil, fmt.Errorf("the cut before %d at %d left out a record of input %d at %d", cut, a.last.Time, i, t)
	}
	return records, nil
}

// end compares rejects, and looks for rounds without feedback.
func (a *audit) end() error {
	stored := map[string]bool{}
	for _, r := range a.w.read("r", 0) {
		x, err := codec.ParseReject(r.Value)
		if err != nil {
			return err
		}
		at := fmt.Sprint(x.Partition, "@", x.Offset)
		if !bytes.Equal(a.rejects[at], r.Value) && a.w.lost == 0 {
			return fmt.Errorf("reject %+v, expected %x", x, a.rejects[at])
		}
		stored[at] = true
	}
	for at := range a.rejects {
		if !stored[at] {
			return fmt.Errorf("the reject of %s is not stored", at)
		}
	}
	for i, records := range a.inputs {
		if a.next[i] < len(records) {
			return fmt.Errorf("input %d is not read to its end", i)
		}
	}
	if a.w.lost > 0 && a.w.rules.Window.Nanos > 0 {
		for p := range a.w.partitions {
			var e loop.DecisionEvent
			for i := range a.inputs[p] {
				if r := &a.inputs[p][i]; e.Parse(r.Type, r.Value) != nil || e.GapTo == 0 && e.D.N > 0 && a.rounds[fmt.Sprint(p, "/", e.D.N)] != 1 {
					return fmt.Errorf("round %d/%d has no feedback", p, e.D.N)
				}
			}
		}
	}
	for at, n := range a.rounds {
		if n != 1 {
			return fmt.Errorf("round %s has %d feedbacks", at, n)
		}
	}
	if a.w.rules.Window.Nanos > 0 {
		for p := range a.w.partitions {
			for n := range a.w.n[p] {
				if a.w.lost > 0 {
					break // asked of the decisions that are left
				}
				if a.rounds[fmt.Sprint(p, "/", n+1)] != 1 {
					return fmt.Errorf("round %d/%d has no feedback", p, n+1)
				}
			}
		}
	}
	return nil
}

func (w *world) dump() {
	for _, r := range w.read("f", 0) {
		switch r.Type {
		case codec.TypeCut:
			var c codec.Cut
			_ = codec.ParseCut(&c, r.Value)
			w.t.Logf("%d cut %+v", r.Offset, c)
		case codec.TypeMark:
			m, _ := codec.ParseFeedbackMark(r.Value)
			w.t.Logf("%d mark N %d cut %d era %d from %d mem %d lost %v pos %+v", r.Offset, m.N, m.Cut, m.Era, m.From, m.Memory, m.LostTails, m.Positions)
		}
	}
	for i := range 2 * w.partitions {
		rs := w.read([]string{"d", "o"}[i/w.partitions], i%w.partitions)
		w.t.Log(i, len(rs), rs[len(rs)-1].Offset)
	}
}
