package learner

import (
	"reflect"
	"slices"
	"testing"

	"hindsight/pkg/oracle"
)

// newFast is a fast state of many partitions: in the first wait 40 rounds, in the second one that another law played.
func newFast(t *testing.T) *fast {
	reg, err := oracle.NewLinear(oracle.LinearOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fast{reg: reg, lanes: make([]queue[waits], 40), live: 40, gone: 3}
	for i := range 40 {
		f.lanes[0].all = append(f.lanes[0].all, waits{decision: int64(2*i + 1), loss: float64(i%2) / 2})
	}
	f.lanes[0].all = append([]waits{{decision: 77}}, f.lanes[0].all...) // which is gone
	f.lanes[0].from = 1
	f.lanes[1].all = []waits{{9, oracle.Fed{At: 7, Z: make([]float64, 40)}, 1, true}}
	f.lanes[1].all[0].fed.Z[39] = -2
	f.told.all, f.told.from = []int64{1, 5, 5, 8}, 1
	return f
}

// TestFastStateByHand: what waits is read back, in its order, with the losses that it has. Damaged it is refused.
func TestFastStateByHand(t *testing.T) {
	for name, damage := range map[string]func(f *fast){
		"none":           func(*fast) {},
		"nothing waits":  func(f *fast) { f.lanes, f.live = nil, 0 },
		"one lane":       func(f *fast) { f.lanes, f.told = f.lanes[:1], queue[int64]{} },
		"no round":       func(f *fast) { f.lanes[1].all[0].decision = 0 },
		"a round twice":  func(f *fast) { f.lanes[0].all[3].decision = f.lanes[0].all[2].decision },
		"a loss above 1": func(f *fast) { f.lanes[0].all[3].loss = 1.5 },
		"a loss below 0": func(f *fast) { f.lanes[0].all[3].loss = -.5 },
		"told later":     func(f *fast) { f.told.all[1] = 6 },
	} {
		f, g := newFast(t), newFast(t)
		*g = fast{reg: g.reg}
		damage(f)
		w := oracle.NewWriter(nil)
		f.code(&w)
		r := newReader(w.Bytes())
		state := g.code(&r)
		if fine := name == "none" || name == "nothing waits" || name == "one lane"; (r.Err() == nil) != fine {
			t.Errorf("%s: %v", name, r.Err())
		} else if !fine {
			continue
		}
		of, err := f.reg.AppendBinary(nil)
		if err != nil || string(state) != string(of) || len(r.Bytes()) > 0 || g.live != f.live || g.gone != f.gone ||
			!slices.Equal(g.told.items(), f.told.items()) || len(g.lanes) != len(f.lanes) {
			t.Errorf("%s: %v, read back as %+v", name, err, g)
		}
		for i := range g.lanes {
			got, want := g.lanes[i].items(), f.lanes[i].items()
			if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: of partition %d wait %+v, want %+v", name, i, got, want)
			}
		}
	}
}

// TestQueueByHand: items are forgotten from the front, and their room is given back when more than half of it is.
func TestQueueByHand(t *testing.T) {
	q := queue[int]{all: []int{1, 2, 3, 4, 5, 6, 7, 8}}
	for _, c := range []struct{ drop, first, left, room int }{{0, 1, 8, 8}, {3, 4, 5, 8}, {1, 5, 4, 8}, {1, 6, 3, 3},
		{1, 7, 2, 3}, {1, 8, 1, 1}} {
		if q.drop(c.drop); q.items()[0] != c.first || len(q.items()) != c.left || len(q.all) != c.room {
			t.Errorf("%+v: %+v", c, q)
		}
	}
}

// counted is an oracle that notes what it is told, and predicts ¾.
type counted struct {
	oracle.Amender
	told []any
}

func (c *counted) Predict(dst []float64, _ *oracle.Input) {
	for i := range dst {
		dst[i] = .75
	}
}
func (c *counted) Regret() float64         { return 1 }
func (c *counted) Follow(oracle.Regressor) { c.told = append(c.told, "follows") }
func (c *counted) Update(_ *oracle.Input, action int, y float64) {
	c.told = append(c.told, []any{"learns", action, y})
}
func (c *counted) Mark(_ *oracle.Input, action int) oracle.Fed { return oracle.Fed{At: int64(action)} }
func (c *counted) Amend(_ *oracle.Input, action int, of oracle.Fed, was, y float64) {
	c.told = append(c.told, []any{"amends", action, of.At, was, y})
}

// TestFastByHand: a round is learned when something is first known of it, and amended when more is: by its feedback,
// to what is predicted if it has no loss. Those before it in its partition are forgotten. The slow state learns
// feedback alone, and counts nothing else.
func TestFastByHand(t *testing.T) {
	slow, quick := &counted{}, &counted{}
	d := NewDAFA(slow, Fixed{G: 4})
	d.Early(quick)
	x := ab()
	r := func(n, through int64, partition int, decision int64, partial bool, fate Fate, loss float64) *Round {
		return &Round{Input: x, Action: int(decision % 2), Propensities: []float64{.5, .5}, Gamma: 4, N: n,
			LearnedThrough: through, Partition: partition, Decision: decision, Partial: partial, Fate: fate, Loss: loss,
			Borrowed: decision == 3}
	}
	for i, c := range []struct {
		r           *Round
		slow, quick []any
		live        int64
		provisional int
		n, through  int64 // of the feedback, as the slow state has it
	}{
		{r(1, 0, 1, 2, true, Observed, .5), nil, []any{[]any{"learns", 0, .5}}, 1, 1, 0, 0},
		{r(2, 0, 1, 1, true, Observed, 1), nil, []any{[]any{"learns", 1, 1.}}, 2, 2, 0, 0},
		{r(3, 0, 1, 3, true, Observed, 0), nil, []any{[]any{"learns", 1, 0.}}, 2, 3, 0, 0},
		{r(4, 0, 1, 1, true, Observed, 1), nil, nil, 2, 3, 0, 0},
		{r(5, 0, 1, 1, true, Observed, .25), nil, []any{[]any{"amends", 1, int64(1), 1., .25}}, 2, 3, 0, 0},
		{r(6, 2, 1, 2, false, Observed, 1), []any{[]any{"learns", 0, 1.}}, []any{[]any{"amends", 0, int64(0), .5, 1.},
			"follows"}, 0, 1, 1, 0},
		{r(7, 6, 0, 1, false, Imputed, .5), []any{[]any{"learns", 1, .5}}, []any{[]any{"learns", 1, .5}, "follows"}, 0,
			1, 2, 1},
		{r(8, 7, 1, 3, false, Withdrawn, 0), nil, []any{[]any{"amends", 1, int64(1), 0., .75}, "follows"}, 0, 0, 3, 2},
		{r(9, 0, 1, 4, false, Skipped, 0), nil, []any{"follows"}, 0, 0, 4, 0},
	} {
		slow.told, quick.told = nil, nil
		d.Learn(c.r)
		if !reflect.DeepEqual(slow.told, c.slow) || !reflect.DeepEqual(quick.told, c.quick) || d.fast.live != c.live ||
			d.Provisional() != c.provisional {
			t.Errorf("record %d: slow %v, fast %v, %d of %d are its own", i+1, slow.told, quick.told, d.fast.live,
				d.Provisional())
		}
		if f := &d.fast.final; !c.r.Partial && (f.N != c.n || f.LearnedThrough != c.through) {
			t.Errorf("record %d: feedback %d, decided after %d", i+1, f.N, f.LearnedThrough)
		}
	}
	if d.fast.gone != 5 || len(d.fast.told.items()) != 0 {
		t.Errorf("%d provisional records are forgotten, %v are not", d.fast.gone, d.fast.told.items())
	}
}

// TestGammaByHand: γ counts own rounds, with those that have a provisional loss; where a baseline is conserved all.
func TestGammaByHand(t *testing.T) {
	for _, c := range []struct {
		d    DAFA
		want float64
	}{{DAFA{}, 5}, {DAFA{lose: .02}, 8}, {DAFA{fast: &fast{reg: &counted{}, live: 11}}, 6},
		{DAFA{fast: &fast{reg: &counted{}, live: 36}, lose: .02}, 10}} {
		c.d.s, c.d.reg, c.d.cert.Learned, c.d.learned = Root{C: 1}, &counted{}, 25, 64
		if got := c.d.gamma(2); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
