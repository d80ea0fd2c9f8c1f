package oracle

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// watchedOracle is one that watches for changes.
type watchedOracle interface {
	Regressor
	Changes() (Changes, bool)
}

// watched returns the oracles that have a watch, in a version.
func watched(version int) map[string]func() watchedOracle {
	return map[string]func() watchedOracle{
		"auto": func() watchedOracle {
			return newAggregate(AggregateOptions{Columns: 4, Beta: 0.5, Fourier: 16, MaxFeatures: 8, Version: version})
		},
		"two cores": func() watchedOracle { return newAggregate(AggregateOptions{MaxFeatures: 8, Version: version}) },
		"linear": func() watchedOracle {
			return newLinear(LinearOptions{Beta: 0.5, MaxFeatures: 8, Version: version})
		},
		"fourier": func() watchedOracle {
			return newLinear(LinearOptions{Beta: 0.5, MaxFeatures: 8, Fourier: 16, Version: version})
		},
		"shared": func() watchedOracle {
			return newShared(SharedOptions{Hashed: 128, MaxFeatures: 8, Version: version})
		},
		"hybrid": func() watchedOracle {
			return newShared(SharedOptions{Hybrid: true, Hashed: 128, MaxFeatures: 8, Version: version})
		},
	}
}

// moving is a stream in which the action of the largest number is right, and from a round on
// the one after it.
type moving struct {
	rng *rand.Rand
	x   Input
	f   [3]float64
}

func newMoving(seed uint64) *moving {
	m := &moving{rng: rand.New(rand.NewPCG(seed, 1)),
		x: Input{Actions: named("a", "b", "c"), Features: []Feature{num("x", 0), num("y", 0), num("z", 0)}}}
	for i := range m.x.Actions { // for shared
		m.x.Actions[i].Features = []Feature{{Name: "which", Kind: Text, Text: m.x.Actions[i].Name}}
	}
	return m
}

// play draws a round, plays the action that is predicted best, and learns it.
func (m *moving) play(o Regressor, shift int) (loss float64) {
	best := 0
	for j := range m.x.Features {
		m.x.Features[j].Value = m.rng.Float64()
		if m.x.Features[j].Value > m.x.Features[best].Value {
			best = j
		}
	}
	o.Predict(m.f[:], &m.x)
	play := slices.Index(m.f[:], slices.Min(m.f[:]))
	if play != (best+shift)%3 {
		loss = 1
	}
	o.Update(&m.x, play, loss)
	return loss
}

// TestChangeIsNoticed: what is right changes at half of the rounds. The alarm is raised soon
// after, and not before; what is played at the end is far better than chance, which loses 2/3;
// and an oracle that is restored from a snapshot every few rounds has the same bits.
func TestChangeIsNoticed(t *testing.T) {
	const half, soon = 1000, 60
	for name, fresh := range watched(2) {
		t.Run(name, func(t *testing.T) {
			o, copied := fresh(), fresh()
			a, b := newMoving(3), newMoving(3)
			lost := 0.0
			for i := range 2 * half {
				shift := min(i/half, 1)
				loss := a.play(o, shift)
				b.play(copied, shift)
				if i >= 2*half-500 {
					lost += loss / 500
				}
				c, _ := o.Changes()
				if i < half && c.Count > 0 {
					t.Fatalf("a false alarm in round %d: %+v", i, c)
				}
				if i == half+soon && c.Count == 0 {
					t.Fatalf("no alarm in %d rounds", soon)
				}
				if i%37 == 0 || c.Count > 0 && i < half+soon {
					copied = restored(t, copied, fresh())
				}
			}
			c, _ := o.Changes()
			t.Logf("mean loss of the last rounds %.3f; %+v", lost, c)
			if lost > .4 {
				t.Errorf("the last rounds lose %.3f", lost)
			}
			if !bytes.Equal(state(t, o), state(t, copied)) {
				t.Error("restored from snapshots it has other bits")
			}
		})
	}
}

func state(t *testing.T, o Regressor) []byte {
	t.Helper()
	b, err := o.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func restored(t *testing.T, o, into watchedOracle) watchedOracle {
	t.Helper()
	if err := into.UnmarshalBinary(state(t, o)); err != nil {
		t.Fatal(err)
	}
	before, _ := o.Changes()
	if after, _ := into.Changes(); after.Count != before.Count || !slices.Equal(after.Last, before.Last) {
		t.Fatalf("changes %+v, restored %+v", before, after)
	}
	return into
}

// TestOneAction: one action of three gets worse where it was right. Its regression alone starts
// anew, with the example that raised the alarm: the others keep theirs, and the watch over all
// begins its bet anew.
func TestOneAction(t *testing.T) {
	for _, name := range []string{"auto", "linear"} {
		t.Run(name, func(t *testing.T) {
			o := watched(2)[name]()
			lin, _ := o.(*Linear)
			if a, ok := o.(*Aggregate); ok {
				lin = &a.lin
			}
			rng := rand.New(rand.NewPCG(8, 1))
			x := &Input{Actions: named("a", "b", "c")}
			for i := range 900 {
				a := i % 3
				loss := 0.0
				if rng.Float64() < .1 || a == 1 && i >= 600 {
					loss = 1
				}
				o.Update(x, a, loss)
				if c, _ := o.Changes(); c.Count == 1 && c.Last[0].Example == int64(i+1) {
					one, other := &lin.actions[1], &lin.actions[0]
					if one.w[0] != .5 || one.watch.n != 0 || other.w[0] > .2 || other.watch.n == 0 || lin.all.n == 0 ||
						lin.all.wealth() != 0 {
						t.Errorf("after the alarm: %+v, another action %+v, the watch over all %+v", one,
							other, lin.all)
					}
				}
			}
			c, _ := o.Changes()
			if c.Count != 1 || c.Last[0].Action != "b" || c.Last[0].Example < 600 || c.Last[0].Example > 700 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestVersion1DoesNotWatch: old logs are learned as they were.
func TestVersion1DoesNotWatch(t *testing.T) {
	for name, fresh := range watched(1) {
		o, m := fresh(), newMoving(3)
		for i := range 1300 {
			m.play(o, i/1000)
		}
		if c, ok := o.Changes(); ok || c.Count > 0 {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
	}
}

// TestRememberedChanges: the last 16 are remembered, and counted are all; what was handed out
// stays as it was.
func TestRememberedChanges(t *testing.T) {
	var c Changes
	var old Changes
	for i := range int64(40) {
		c.add(Change{Example: i + 1, Action: fmt.Sprint(i)})
		if i == 20 {
			old = c
		}
	}
	if c.Count != 40 || len(c.Last) != mostChanges || c.Last[0].Example != 25 || c.Last[15] != (Change{Example: 40,
		Action: "39"}) {
		t.Errorf("%+v", c)
	}
	if old.Last[0].Example != 6 || old.Last[15].Example != 21 {
		t.Errorf("what was handed out became %+v", old)
	}
}

// TestExpected holds what a watch allows: the prediction and its mean error, at least the mean
// loss, and the margins.
func TestExpected(t *testing.T) {
	for _, c := range []struct {
		w       watch
		f, want float64
	}{
		{watch{}, .1, 1.12},
		{watch{n: 99, bias: 10, lost: 5}, .1, .32},
		{watch{n: 99, bias: -10, lost: 5}, .1, .22},
		{watch{n: 99, bias: 10, lost: 40}, .1, .52},
		{watch{n: 9999, bias: 1000, lost: 0}, 0, .13},
	} {
		if got := c.w.expected(c.f); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v allows %v, want %v", c.w, got, c.want)
		}
	}
}

// TestWatchKeepsItsRate: where losses are drawn with the expectation that the watch allows at
// most, its alarm is raised in at most α of all streams, at whatever time.
func TestWatchKeepsItsRate(t *testing.T) {
	const streams, alpha = 3000, .05
	rng := rand.New(rand.NewPCG(4, 4))
	for _, q := range []float64{.02, .1, .5} {
		alarms := 0
		for range streams {
			var w watch
			for range 600 {
				loss := 0.0
				if rng.Float64() < q {
					loss = 1
				}
				w.lost = -1e9 // q is what f says
				if w.add(q-w.expected(0), loss, changeOne, 1/alpha) {
					alarms++
					break
				}
			}
		}
		rate := float64(alarms) / streams
		t.Logf("expected loss %v: %.4f of the streams", q, rate)
		if rate > alpha+2*math.Sqrt(alpha*(1-alpha)/streams) {
			t.Errorf("expected loss %v: false alarms in %.4f of the streams, at most %v are allowed", q, rate, alpha)
		}
	}
}

// TestDamagedWatch: no state of a watch is accepted that cannot have come about.
func TestDamagedWatch(t *testing.T) {
	good := watch{n: 60, bias: 3, lost: 7, s: [3]float64{1, 2, 3}}
	for name, damage := range map[string]func(w *watch){
		"none": func(*watch) {}, "more than was fed": func(w *watch) { w.n = 101 },
		"bias":     func(w *watch) { w.bias = -61 },
		"bias NaN": func(w *watch) { w.bias = math.NaN() },
		"lost":     func(w *watch) { w.lost = 61 }, "lost less": func(w *watch) { w.lost = -1 },
		"negative": func(w *watch) { w.s[1] = -1e-9 }, "NaN": func(w *watch) { w.s[2] = math.NaN() },
		"past its alarm": func(w *watch) { w.s[0] = 3000 },
	} {
		w := good
		damage(&w)
		var got watch
		c := NewWriter(nil)
		w.code(&c, 100, 1000)
		r := NewReader(c.Bytes(), "", ErrSnapshot)
		if got.code(&r, 100, 1000); (r.Err() == nil) != (name == "none") {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
	ws := watches{changes: Changes{2, []Change{{Example: 5, Action: "a"}, {Example: 9}}}}
	for name, damage := range map[string]func(w *watches){
		"none": func(*watches) {}, "more than was fed": func(w *watches) {
			w.changes.Last[1].Example = 101
		}, "order": func(w *watches) { w.changes.Last[0].Example = 9 },
		"count": func(w *watches) { w.changes.Count = 3 }, "zero": func(w *watches) { w.changes.Last[0].Example = 0 },
	} {
		w := ws
		w.changes.Last = slices.Clone(ws.changes.Last)
		damage(&w)
		var got watches
		c := NewWriter(nil)
		w.code(&c, 100)
		r := NewReader(c.Bytes(), "", ErrSnapshot)
		if got.code(&r, 100); (r.Err() == nil) != (name == "none") {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}
