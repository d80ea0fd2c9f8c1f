package loop

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"testing"
	"unsafe"

	"hindsight/pkg/codec"
)

// cutByHand gives a joiner of one partition cuts of events.
type cutByHand struct {
	t                   *testing.T
	j                   *Joiner
	decisions, outcomes int64
}

func newCutByHand(t *testing.T, limits codec.Limits, rules ...*Rules) *cutByHand {
	return &cutByHand{t: t, j: NewJoiner(1, limits, 1, func(epoch int64) *Rules {
		if epoch < 1 || epoch > int64(len(rules)) {
			return nil
		}
		return rules[epoch-1]
	})}
}

func decidedAt(time, n int64, id string) DecisionEvent {
	return DecisionEvent{Time: time, D: handDecision(n, id)}
}

func lossAt(time int64, id string, loss float64) OutcomeEvent {
	return OutcomeEvent{Time: time, O: codec.Outcome{ID: id, Kind: codec.Loss, Value: loss}}
}

// cut takes decisions and outcomes as one cut.
func (h *cutByHand) cut(time int64, decisions []DecisionEvent, outcomes []OutcomeEvent) error {
	c := codec.Cut{Cut: h.j.LastCut() + 1, Time: time}
	var b []Batch
	if len(decisions) > 0 {
		for i := range decisions {
			decisions[i].Offset = h.decisions + int64(i)
		}
		c.Decisions = []codec.Range{{Next: h.decisions + int64(len(decisions))}}
		b = append(b, Batch{Decisions: decisions})
	}
	if len(outcomes) > 0 {
		for i := range outcomes {
			outcomes[i].Offset = h.outcomes + int64(i)
		}
		c.Outcomes = []codec.Range{{Next: h.outcomes + int64(len(outcomes))}}
		b = append(b, Batch{Outcomes: outcomes})
	}
	err := h.j.Take(&c, b)
	if err == nil {
		h.decisions, h.outcomes = h.decisions+int64(len(decisions)), h.outcomes+int64(len(outcomes))
	}
	return err
}

// takes fails unless the cut is taken and gives these feedbacks and rejects: "id fate reason loss
// closed", and "offset reason time".
func (h *cutByHand) takes(time int64, decisions []DecisionEvent, outcomes []OutcomeEvent, feedback, rejects []string) {
	h.t.Helper()
	if err := h.cut(time, decisions, outcomes); err != nil {
		h.t.Fatal(err)
	}
	var r Ready
	h.j.Ready(&r)
	var fs, rs []string
	for _, f := range r.Feedback {
		fs = append(fs, fmt.Sprintf("%s %v %s %v %d", f.ID, f.Fate, f.Reason, f.Loss, f.ClosedAt))
	}
	for _, x := range r.Rejects {
		rs = append(rs, fmt.Sprintf("%d %s %d", x.Offset, x.Reason, x.Time))
		if x.Cut != h.j.LastCut() || x.Topic != "outcomes" {
			h.t.Errorf("reject %+v of cut %d", x, h.j.LastCut())
		}
	}
	if !reflect.DeepEqual(fs, feedback) || !reflect.DeepEqual(rs, rejects) {
		h.t.Fatalf("cut %d gives\n%q\n%q\nwant\n%q\n%q", h.j.LastCut(), fs, rs, feedback, rejects)
	}
}

var unlimited = codec.Limits{Heart: Heart, Pending: 1000, Dedup: 1000}

// Inside a cut decisions come before outcomes, whatever their times; outcomes are in the order of
// their times, which are never before the log time reached; and nothing waits for its decision.
func TestOrderInsideCut(t *testing.T) {
	h := newCutByHand(t, unlimited, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}})
	h.takes(100, []DecisionEvent{decidedAt(100, 1, "a"), decidedAt(95, 2, "b")},
		[]OutcomeEvent{lossAt(90, "b", .5), lossAt(80, "c", 1), lossAt(99, "a", .25)},
		[]string{"a observed  0.25 99", "b observed  0.5 90"}, []string{"1 orphan 90"})
	// b was decided at 100, as far as its partition's clock had come. Time is 100: what a clock that
	// went back says of an outcome counts as 100.
	h.takes(100, nil, []OutcomeEvent{lossAt(50, "c", 1), lossAt(101, "a", 1)},
		nil, []string{"3 orphan 100", "4 duplicate 101"})
	h.takes(105, []DecisionEvent{decidedAt(105, 3, "c")}, nil, nil, nil)
	if due, known := h.j.Due(); !known || due != 115 {
		t.Errorf("due at %d, %v", due, known)
	}
	h.takes(115, nil, nil, nil, nil) // the deadline itself is in time
	h.takes(116, nil, []OutcomeEvent{lossAt(115, "c", 0), lossAt(116, "c", 1)},
		[]string{"c observed  0 115"}, []string{"6 duplicate 116"})
	h.takes(130, []DecisionEvent{decidedAt(117, 4, "d")}, []OutcomeEvent{lossAt(128, "d", 0)},
		[]string{"d skipped  0 127"}, []string{"7 late 128"})
}

// Of several partitions the lower comes first at equal times; a decision's time is that of its
// partition.
func TestOrderOfPartitions(t *testing.T) {
	rules := &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}}
	j := NewJoiner(3, unlimited, 1, func(int64) *Rules { return rules })
	event := func(p int, time, n int64) DecisionEvent {
		e := decidedAt(time, n, fmt.Sprintf("%d/%d", p, n))
		e.Offset, e.D.Partition = n-1, p
		return e
	}
	all := []codec.Range{{Partition: 0, Next: 2}, {Partition: 1, Next: 2}, {Partition: 2, Next: 2}}
	c := &codec.Cut{Cut: 1, Time: 100, Decisions: all}
	b := []Batch{
		{Decisions: []DecisionEvent{event(0, 7, 1), event(0, 3, 2)}},
		{Decisions: []DecisionEvent{event(1, 5, 1), event(1, 7, 2)}},
		{Decisions: []DecisionEvent{event(2, 4, 1), event(2, 20, 2)}},
	}
	if err := j.Take(c, b); err != nil {
		t.Fatal(err)
	}
	var r Ready
	j.Ready(&r)
	var got []string
	for _, f := range r.Feedback {
		got = append(got, fmt.Sprintf("%s at %d", f.ID, f.Time))
	}
	want := []string{"2/1 at 4", "1/1 at 5", "0/1 at 7", "0/2 at 7", "1/2 at 7", "2/2 at 20"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Limits close the oldest rounds at the end of a cut. They count from the mark on that says so.
func TestLimitsByHand(t *testing.T) {
	rules := &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}, Impute: true, DefaultLoss: .75}
	h := newCutByHand(t, unlimited, rules)
	ds := []DecisionEvent{decidedAt(1, 1, "a"), decidedAt(2, 2, "b"), decidedAt(3, 3, "c")}
	h.takes(5, ds, nil, nil, nil)
	var m codec.FeedbackMark
	h.j.Mark(&m)
	m.Limits.Pending = 1
	if err := h.j.SetLimits(&m); err != nil {
		t.Fatal(err)
	}
	h.takes(9, nil, []OutcomeEvent{lossAt(7, "a", 1)},
		[]string{"a observed  1 7", "b imputed overflow 0.75 9"}, nil)
	m.Limits.Heart = Heart + 1
	if err := h.j.SetLimits(&m); !errors.Is(err, codec.ErrVersion) {
		t.Errorf("rules of a later version: %v", err)
	}
	m.Limits = codec.Limits{Heart: Heart, Pending: 10, Bytes: int64(h.j.PendingBytes()) + 1, Dedup: 10}
	if err := h.j.SetLimits(&m); err != nil {
		t.Fatal(err)
	}
	h.takes(10, []DecisionEvent{decidedAt(10, 4, "d")}, nil, []string{"c imputed overflow 0.75 10"}, nil)
}

// A round of an epoch whose record is lost is closed at once; one of an epoch that did not begin is
// refused.
func TestLostEpoch(t *testing.T) {
	rule := Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}}
	rules := []*Rules{&rule, nil, &rule}
	h := newCutByHand(t, unlimited, rules...)
	h.j.Guard().Begin(1, false, rules[0])
	h.j.Guard().Begin(3, false, rules[2])
	of := func(n, epoch int64, id string) DecisionEvent {
		e := decidedAt(n, n, id)
		e.D.Epoch = epoch
		return e
	}
	h.takes(5, []DecisionEvent{of(1, 1, "a"), of(2, 2, "b"), of(3, 3, "c")},
		[]OutcomeEvent{lossAt(5, "b", 1), lossAt(6, "a", 1)},
		[]string{"a observed  1 6", "b skipped lost 0 2"}, []string{"0 late 5"})
	if err := h.cut(9, []DecisionEvent{of(4, 4, "d")}, nil); !errors.Is(err, ErrNoEpoch) {
		t.Errorf("a round of no epoch: %v", err)
	}
}

// What is refused changes nothing, and the right cut is taken after it.
func TestTakeRefuses(t *testing.T) {
	h := newCutByHand(t, unlimited, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}})
	h.takes(5, []DecisionEvent{decidedAt(1, 1, "one")}, []OutcomeEvent{lossAt(2, "two", 1)}, nil,
		[]string{"0 orphan 2"})
	var was, is codec.FeedbackMark
	h.j.Mark(&was)
	two, unknown, foreign := decidedAt(2, 2, "two"), decidedAt(3, 3, "three"), decidedAt(3, 3, "three")
	two.Offset, unknown.Offset, foreign.Offset = 1, 2, 2
	unknown.D.Epoch, foreign.D.Partition = 2, 1
	decisions := func(next int64) []codec.Range { return []codec.Range{{Next: next}} }
	outcomes := func(partition int, next int64) []codec.Range {
		return []codec.Range{{Partition: partition, Next: next}}
	}
	batch := func(events ...DecisionEvent) []Batch { return []Batch{{Decisions: events}} }
	for name, c := range map[string]struct {
		cut  codec.Cut
		b    []Batch
		want error
	}{
		"a gap":           {codec.Cut{Cut: 2, Decisions: decisions(3)}, batch(unknown), ErrGap},
		"no epoch":        {codec.Cut{Cut: 2, Decisions: decisions(3)}, batch(two, unknown), ErrNoEpoch},
		"wrong partition": {codec.Cut{Cut: 2, Decisions: decisions(3)}, batch(two, foreign), codec.ErrCorrupt},
		"number twice":    {codec.Cut{Cut: 1, Decisions: decisions(2)}, batch(two), ErrCut},
		"number too high": {codec.Cut{Cut: 3, Decisions: decisions(2)}, batch(two), ErrCut},
		"decisions back":  {codec.Cut{Cut: 2, Decisions: decisions(1)}, batch(two), ErrCut},
		"outcomes back":   {codec.Cut{Cut: 2, Outcomes: outcomes(0, 1)}, []Batch{{}}, ErrCut},
		"no partition":    {codec.Cut{Cut: 2, Outcomes: outcomes(1, 9)}, []Batch{{}}, ErrCut},
		"no batch":        {codec.Cut{Cut: 2, Outcomes: outcomes(0, 9)}, nil, ErrCut},
	} {
		if err := h.j.Take(&c.cut, c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if h.j.Mark(&is); !reflect.DeepEqual(is, was) || h.j.Pending() != 1 {
			t.Errorf("%s: the joiner has changed: %+v, before %+v", name, is, was)
		}
	}
	h.takes(6, []DecisionEvent{decidedAt(2, 2, "two")}, nil, nil, nil)
	gap := DecisionEvent{Time: 8, D: codec.Decision{N: 3}, GapTo: 5}
	h.takes(7, []DecisionEvent{decidedAt(3, 1, "one"), gap, decidedAt(4, 6, "six")},
		[]OutcomeEvent{lossAt(7, "one", 1), lossAt(7, "two", 1), lossAt(7, "six", 1)},
		[]string{"one observed  1 7", "two observed  1 7", "six observed  1 7"}, nil)
}

// A record of an input is parsed once, to what Take wants.
func TestEventsParse(t *testing.T) {
	d := handDecision(3, "three")
	var e DecisionEvent
	if err := e.Parse("", codec.AppendDecision(nil, &d)); err != nil || e.D.ID != "three" || e.D.N != 3 ||
		e.GapTo != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	gap := codec.AppendDecisionMark(nil, &codec.DecisionMark{GapFrom: 4, GapTo: 6})
	if err := e.Parse(codec.TypeMark, gap); err != nil || e.D.N != 4 || e.GapTo != 6 {
		t.Errorf("%+v, %v", e, err)
	}
	mark := codec.AppendDecisionMark(nil, &codec.DecisionMark{N: 9})
	if err := e.Parse(codec.TypeMark, mark); err != nil || e.through() != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := e.Parse(codec.TypeOpen, nil); err != nil || e.through() != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := e.Parse("", []byte{0xc1}); err == nil || e.through() != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	var o OutcomeEvent
	raw := codec.AppendOutcome(nil, &codec.Outcome{ID: "a", Kind: codec.Loss, Value: 1})
	if o.Parse("", raw, "of the cloud"); o.Err != nil || o.O.OutcomeID != "of the cloud" || o.Pass {
		t.Errorf("%+v", o)
	}
	if o.Parse("", raw[:3], ""); o.Err == nil || o.Pass {
		t.Errorf("%+v", o)
	}
	if o.Parse(codec.TypeOpen, nil, ""); o.Err != nil || !o.Pass {
		t.Errorf("%+v", o)
	}
}

// Several outcomes a round, windows that close, skipped rounds, two partitions, in either order of
// release: taking cuts does not allocate.
func TestNoAllocsCut(t *testing.T) {
	named := namedRules(t, "quality - cost")
	named.Window, named.Named[0].Window, named.Named[1].Window = Window{Rounds: 8}, Window{Rounds: 3}, Window{Rounds: 8}
	named.Named[0].Name, named.Named[0].Take, named.Named[1].Take = "loss", Mean, Mean
	for _, rules := range []*Rules{
		named,
		{MaxActions: 10, Range: Range{Max: 1}, Window: Window{Rounds: 8}, Outcomes: Mean, Arrival: true},
		{MaxActions: 10, Range: Range{Max: 1}, Window: Window{Rounds: 8}},
		{MaxActions: 10, Range: Range{Max: 1}, Window: Window{Nanos: 20}, Outcomes: Sum},
	} {
		j := NewJoiner(2, codec.Limits{Heart: Heart, Pending: 100, Dedup: 50}, 1, func(int64) *Rules { return rules })
		var n, released int64
		ids := [2][]byte{make([]byte, 0, 16), make([]byte, 0, 16)}
		c := codec.Cut{Decisions: make([]codec.Range, 2), Outcomes: make([]codec.Range, 2)}
		b := make([]Batch, 4)
		for p := range 2 {
			d := codec.Decision{Partition: p, Epoch: 1, Actions: []string{"a", "b"},
				Propensities: []float64{0.5, 0.5}, Context: []byte(`{}`)}
			b[p].Decisions = []DecisionEvent{{D: d}}
		}
		var ready Ready
		step := func() {
			n++
			c.Cut, c.Time = n, n
			for p := range 2 {
				ids[p] = strconv.AppendInt(ids[p][:0], 2*n+int64(p), 10)
				e := &b[p].Decisions[0]
				e.Offset, e.Time, e.D.N, e.D.ID = n, n, n, unsafe.String(&ids[p][0], len(ids[p]))
				b[2+p].Outcomes = b[2+p].Outcomes[:0]
				for k := range n % 3 {
					b[2+p].Outcomes = append(b[2+p].Outcomes, OutcomeEvent{Offset: 3*n + k, Time: n,
						O: codec.Outcome{ID: e.D.ID, Kind: codec.Loss, Value: float64(k) / 2}})
				}
				if rules.Outcomes == First && n%3 == 2 {
					b[2+p].Outcomes = b[2+p].Outcomes[:1] // a second one would be rejected, which allocates
				}
				c.Decisions[p] = codec.Range{Partition: p, Next: n + 1}
				c.Outcomes[p] = codec.Range{Partition: p, Next: 3*n + 3}
			}
			if err := j.Take(&c, b); err != nil {
				t.Fatal(err)
			}
			j.Ready(&ready)
			released += int64(len(ready.Feedback))
			if len(ready.Rejects) > 0 {
				t.Fatalf("%+v", ready.Rejects[0])
			}
		}
		for range 30000 {
			step()
		}
		if a := testing.AllocsPerRun(1, func() {
			for range 1000 {
				step()
			}
		}); a > 0 {
			t.Errorf("%+v: %v allocations in 1000 cuts", rules, a)
		}
		if released < 9000 {
			t.Errorf("%d rounds released", released)
		}
	}
}
