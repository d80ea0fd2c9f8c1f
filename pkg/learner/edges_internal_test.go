package learner

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"hindsight/pkg/oracle"
)

// constants is a class whose functions have a loss of each of two actions, whatever the context.
func constants(t *testing.T, of ...[2]float64) oracle.Class {
	t.Helper()
	var w [][][]float64
	for _, v := range of {
		w = append(w, [][]float64{{v[0]}, {v[1]}})
	}
	class, err := oracle.NewLinearClass(nil, []string{"a", "b"}, w)
	if err != nil {
		t.Fatal(err)
	}
	return class
}

func ab() *oracle.Input { return &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}} }

func modelsOf(t *testing.T, o ModelsOptions, of ...[2]float64) *Models {
	t.Helper()
	m, err := NewModels(constants(t, of...), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMixtureByHand: weights of 1, ½ and ¼, of an even and of an odd number of functions; of none it is the middle.
func TestMixtureByHand(t *testing.T) {
	m := modelsOf(t, ModelsOptions{}, [2]float64{0.5, 0}, [2]float64{0.5, 0}, [2]float64{0.5, 0})
	copy(m.weight, []float64{1, 0.5, 0.25})
	m.total = 1.75
	if got, want := m.mixture([]float64{0.2, 0.4, 0.8}), (0.2+0.2+0.2)/1.75; math.Abs(got-want) > 1e-15 {
		t.Errorf("mixture %v, want %v", got, want)
	}
	m.total = 1.5
	if got, want := m.mixture([]float64{0.2, 0.4}), (0.2+0.2)/1.5; math.Abs(got-want) > 1e-15 {
		t.Errorf("mixture %v, want %v", got, want)
	}
	m.total = 1
	if got := m.mixture([]float64{0.2}); got != 0.2 {
		t.Errorf("of one function it is %v", got)
	}
	Refute(m, 0)
	m.judge(1)
	if got := m.mixture(nil); got != 0.5 {
		t.Errorf("without any model it is %v", got)
	}
}

// TestDropByHand: what is refuted at level εα is left out of all that runs along the functions, the others move up.
func TestDropByHand(t *testing.T) {
	m := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{}, [2]float64{}, [2]float64{}, [2]float64{})
	for k, s := range m.slices() {
		for i := range *s {
			(*s)[i] = float64(10*k + i)
		}
	}
	m.top = []float64{m.floor, m.floor - 1e-9, m.floor + 1, 0}
	copy(m.alarm.refuted, []bool{false, true, true, false})
	for a := range m.alarm.z {
		copy(m.alarm.z[a], []float64{1, 2, 3, float64(4 + a)})
	}
	m.drop()
	if !slices.Equal(m.which, []int32{1, 3}) || m.total != 41+43 || m.Left() != 2 ||
		!slices.Equal(m.alarm.refuted, []bool{true, false}) || !slices.Equal(m.top, []float64{m.floor - 1e-9, 0}) {
		t.Errorf("%v are left, of weight %v, refuted %v", m.which, m.total, m.alarm.refuted)
	}
	for k, s := range m.slices() {
		if want := []float64{float64(10*k + 1), float64(10*k + 3)}; k != 3 && !slices.Equal(*s, want) {
			t.Errorf("sum %d: %v, want %v", k, *s, want)
		}
	}
	for a, z := range m.alarm.z {
		if !slices.Equal(z, []float64{2, float64(4 + a)}) {
			t.Errorf("action %d: %v", a, z)
		}
	}
}

// TestDropAtOnce: a function that is refuted to the bit is dropped at the next look; an alarm is raised once.
func TestDropAtOnce(t *testing.T) {
	m := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{}, [2]float64{}, [2]float64{})
	if math.Abs(m.floor-math.Log(128/.05)) > 1e-12 || math.Abs(m.log-math.Log(3)) > 1e-12 {
		t.Errorf("dropped at %v, log|F| %v", m.floor, m.log)
	}
	m.top[0], m.alarm.raised = m.floor, 5
	clear(m.alarm.refuted)
	m.alarm.rival = [rivals]float64{-99, -99, -99} // against which all have lost
	m.judge(9)
	if !slices.Equal(m.which, []int32{1, 2}) || m.alarm.raised != 5 || m.alarm.refuted[0] {
		t.Errorf("%v are left, raised at %d, refuted %v", m.which, m.alarm.raised, m.alarm.refuted)
	}
	m.alarm.raised = 0
	if m.judge(9); m.alarm.raised != 9 {
		t.Errorf("raised at %d", m.alarm.raised)
	}
	if _, err := NewModels(levels{}, ModelsOptions{}); err == nil {
		t.Error("an empty class is watched")
	}
}

// picked is a class that notes how it is evaluated.
type picked struct {
	levels
	all, some int
}

func (p *picked) Eval(dst []float64, x *oracle.Input, action int) {
	p.all++
	p.levels.Eval(dst, x, action)
}

func (p *picked) EvalSome(dst []float64, which []int32, _ *oracle.Input, _ int) {
	p.some++
	for i, f := range which {
		dst[i] = p.levels[f]
	}
}

// TestEvaluatedByHand: of a class that can be evaluated in part those are that are left, and all while half of them are
// where the oracle needs them anyhow.
func TestEvaluatedByHand(t *testing.T) {
	for left, c := range []struct {
		all, some  int
		wide, none bool // none: if the class is evaluated as a whole alone
	}{{0, 1, false, true}, {0, 1, false, true}, {0, 1, true, true}, {0, 1, true, true}, {1, 0, true, true}} {
		class := &picked{levels: levels{.1, .2, .3, .4}}
		m, err := NewModels(class, ModelsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.cut(left)
		v := m.values(ab(), 0)
		if class.all != c.all || class.some != c.some || m.wide() != c.wide || !slices.Equal(v, class.levels[:left]) {
			t.Errorf("%d left: %v, %d and %d times in part, wide %t", left, v, class.all, class.some, m.wide())
		}
		if m.picker = nil; m.wide() != c.none {
			t.Errorf("%d left of what has no parts: wide %t", left, m.wide())
		}
	}
}

// TestBestByHand: what is best by a function that survives, the first of equal ones.
func TestBestByHand(t *testing.T) {
	m := modelsOf(t, ModelsOptions{}, [2]float64{.5, .25}, [2]float64{.5, .5}, [2]float64{.25, .5})
	level := oracle.Log(1 / 0.05)
	for _, c := range []struct{ top, want []float64 }{{[]float64{0, 0, 0}, []float64{0, 1}},
		{[]float64{0, level, level}, []float64{1}}, {[]float64{level, 0, level}, []float64{0}},
		{[]float64{level, level, 0}, []float64{0}}, {[]float64{level, level, level}, nil}} {
		copy(m.top, c.top)
		var got []float64
		for _, a := range m.appendBest(nil, ab()) {
			got = append(got, float64(a))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestBlendByHand: the law of a share is appended, as it is drawn from.
func TestBlendByHand(t *testing.T) {
	got := Blend([]float64{7}, []float64{.75, .25, 0}, []float64{.25, .25, .5}, .5)
	if want := []float64{7, .5, .25, .25}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestStartByHand: where K is the mean of c the start is √K, to the bit.
func TestStartByHand(t *testing.T) {
	if got := start(2, 2); got != math.Sqrt2 {
		t.Errorf("%v", got)
	}
}

// TestWeightsByHand: e^−½(L−min L), which from e^−16 on is nothing.
func TestWeightsByHand(t *testing.T) {
	m := modelsOf(t, ModelsOptions{Alpha: 1e-300}, [2]float64{}, [2]float64{}, [2]float64{}, [2]float64{})
	copy(m.loss, []float64{5, 5 + 2, 5 + 2*forgotten, 5 + 2*forgotten - 1e-9})
	m.judge(1)
	for i, want := range []float64{1, math.Exp(-1), 0, math.Exp(-forgotten)} {
		if got := m.weight[i]; math.Abs(got-want) > 1e-12*want+1e-16 {
			t.Errorf("weight %d is %v, want %v", i, got, want)
		}
	}
	if want := 1 + math.Exp(-1) + math.Exp(-forgotten); math.Abs(m.total-want) > 1e-12 {
		t.Errorf("the weights sum to %v, want %v", m.total, want)
	}
}

// TestNothingLeft: where no function survives nothing may be played but the baseline, elimination leaves all actions,
// and bounds are infinite.
func TestNothingLeft(t *testing.T) {
	d := NewDAFA(nil, Anytime{C: Balanced})
	d.models = modelsOf(t, ModelsOptions{}, [2]float64{0.5, 0.25}, [2]float64{0.75, 0.25})
	none := func(func(*Round) bool) {}
	law, base := []float64{1, 0}, []float64{0, 1}
	d.Conserve(0.2, 0.05)
	// the second gives up ¾ − ¼ of the gain and may ⅕ of ¾: 0.15/0.5
	if got := d.Share(law, base, ab()); math.Abs(got-0.3) > 1e-15 {
		t.Errorf("share %v", got)
	}
	near := *d // the least gain there is, all of which would be given up
	near.models = modelsOf(t, ModelsOptions{}, [2]float64{1, 1 - 0x1p-53})
	if got := near.Share(law, base, ab()); got != 0.2 {
		t.Errorf("losses next to 1: share %v", got)
	}
	lost := *d // nothing is gained, and nothing given up
	lost.models = modelsOf(t, ModelsOptions{}, [2]float64{1, 1})
	if got := lost.Share(law, base, ab()); got != 1 {
		t.Errorf("where all is lost: share %v", got)
	}
	if p := d.Decided(none); p.Surviving != 2 || math.IsInf(p.Bound, 0) || math.IsInf(p.Random, 0) {
		t.Errorf("%+v", p)
	}
	for i := range d.models.top {
		d.models.top[i] = oracle.Log(1 / 0.05)
	}
	if got := d.Share(law, base, ab()); got != 0 {
		t.Errorf("nothing left: share %v", got)
	}
	if left, err := d.models.Append(nil, 0); err != nil || len(left) != 0 {
		t.Errorf("%+v are left, %v", left, err)
	}
	if _, err := d.models.Append(nil, d.models.LeastAlpha()); err != nil {
		t.Error(err)
	}
	fhat, over, all := []float64{0.5, 0.25}, make([]float64, 2), make([]float64, 2)
	d.solveLeft(over, fhat, ab(), 8)
	if Solve(all, fhat, 8); !slices.Equal(over, all) {
		t.Errorf("elimination with nothing left: law %v, over all actions %v", over, all)
	}
	if p := d.Decided(none); p.Surviving != 0 || !math.IsInf(p.Bound, 1) || !math.IsInf(p.Random, 1) {
		t.Errorf("%+v", p)
	}
	n, bound, random := d.models.bound(oracle.Log(1 / 0.05))
	if n != 0 || !math.IsInf(bound, 1) || !math.IsInf(random, 1) {
		t.Errorf("%d functions, bounds %v and %v", n, bound, random)
	}
	if p := NewDAFA(nil, Anytime{C: Balanced}).Decided(none); p != (Plausible{}) || p.Refuted() {
		t.Errorf("without models: %+v", p)
	}
}

// TestDecidedByHand: a decided round costs what it would lose under each function, one that another law played nothing.
func TestDecidedByHand(t *testing.T) {
	d := NewDAFA(nil, Anytime{C: Balanced})
	d.models = modelsOf(t, ModelsOptions{}, [2]float64{0.5, 0.25}, [2]float64{0.125, 0.25})
	d.models.unknown, d.models.charged, d.models.waiting = 1, 1, 2 // of which 1 each is all that is known
	p := d.Decided(func(yield func(*Round) bool) {
		for n, borrowed := range []bool{false, true, false} {
			if !yield(&Round{Input: ab(), Action: 1, Propensities: []float64{0.25, 0.75}, Decision: int64(n + 1),
				Borrowed: borrowed}) {
				return
			}
		}
	})
	// under the first ¼·½ + ¾·¼ − ¼ = 1/16 each, under the second ¼·⅛ + ¾·¼ − ⅛ = 3/32
	if want := 3 + 2*3./32; p.Ahead != 3 || math.Abs(p.Bound-want) > 1e-15 || math.Abs(p.Random-want) > 1e-15 {
		t.Errorf("%+v, want a bound of %v", p, want)
	}
	if got := d.Turn(); got != 0 {
		t.Errorf("in the order of decisions it is the turn of %d", got)
	}
	d.BeginAfter(9)
	if d.ordered != nil {
		t.Error("the order of arrival has come of itself")
	}
}

// TestDecidedWithoutLosses: where no loss waits for its turn the functions are those of the last look, and where no
// function is left losses that wait do nothing.
func TestDecidedWithoutLosses(t *testing.T) {
	d := NewDAFA(nil, Anytime{C: Balanced})
	d.models = modelsOf(t, ModelsOptions{}, [2]float64{0.5, 0.25}, [2]float64{0.125, 0.25})
	d.ordered = &inOrder{next: 1}
	d.models.loss[1] = 50 // not looked at yet
	r := &Round{Input: ab(), Propensities: []float64{0.5, 0.5}, Decision: 2, N: 1, Fate: Skipped}
	d.ordered.take(d.models, r)
	before := func(yield func(*Round) bool) {
		yield(&Round{Input: ab(), Propensities: []float64{0.5, 0.5}, Decision: 1})
	}
	if p := d.Decided(before); p.Surviving != 2 || p.Ahead != 1 {
		t.Errorf("%+v", p)
	}
	r.Decision, r.N, r.Fate = 3, 2, Observed
	d.ordered.take(d.models, r)
	if p := d.Decided(before); p.Surviving != 1 || p.Ahead != 1 {
		t.Errorf("with a loss that waits: %+v", p)
	}
	d.models.cut(0)
	if p := d.Decided(before); p.Surviving != 0 || !math.IsInf(p.Bound, 1) {
		t.Errorf("with nothing left: %+v", p)
	}
}

func TestWagerIsBounded(t *testing.T) {
	for x, want := range map[float64]float64{-40: math.Exp(-40), -40.001: 0, 0: 1, 600: math.Exp(600),
		601: math.Exp(600), math.Inf(1): math.Exp(600), math.Inf(-1): 0} {
		if got := wager(x); math.Abs(got-want) > 1e-12*want {
			t.Errorf("wager of %v: %v, want %v", x, got, want)
		}
	}
}

// TestAlarmActions: by its place where its name stands there, by its name elsewhere; of an action that no function
// knows nothing is counted.
func TestAlarmActions(t *testing.T) {
	m := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{0.5, 0.25}, [2]float64{0.75, 0.25})
	for _, c := range []struct {
		at   int
		name string
		want int
	}{{0, "a", 0}, {1, "b", 1}, {0, "b", 1}, {1, "a", 0}, {2, "b", 1}, {0, "c", -1}, {7, "a", 0}} {
		if got := m.alarm.action(c.at, c.name); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	strange := &oracle.Input{Actions: []oracle.Action{{Name: "c"}}}
	m.alarm.observe(&Round{Input: strange, Loss: 1}, []float64{0.5, 0.75}, 0.5)
	if a := m.alarm; a.played[0]+a.played[1] != 0 || a.rival != [rivals]float64{} {
		t.Errorf("played %d, rivals lost %v", a.played, a.rival)
	}
	m.alarm.observe(&Round{Input: ab(), Action: 1, Loss: 1}, []float64{0.5, 0.75}, 0.25)
	if a := m.alarm; a.played[0] != 0 || a.played[1] != 1 || a.bias[1] != 0.75 || a.z[1][0] != 0.5 ||
		a.z[1][1] != 0.25 || a.rival != [rivals]float64{0.5625, 0.5625, 0.5625} {
		t.Errorf("%+v", a.alarmSums)
	}
	again := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{0.5, 0.25}, [2]float64{0.75, 0.25})
	c := newReader(stateOf(t, m))
	if again.code(&c); c.Err() != nil || !slices.Equal(again.alarm.z[1], m.alarm.z[1]) {
		t.Errorf("%v: read back as %+v", c.Err(), again.alarm.alarmSums)
	}
	if m.Evidence() == 0 || math.IsInf(m.Evidence(), 1) || modelsOf(t, ModelsOptions{}, [2]float64{}).Evidence() != 0 {
		t.Errorf("evidence %v", m.Evidence())
	}
	m.alarm.raised = 1
	if p := m.Plausible(); !math.IsInf(m.Evidence(), 1) || !p.Refuted() || p.Raised != 1 || !p.Alarm {
		t.Errorf("raised: evidence %v, %+v", m.Evidence(), p)
	}
}

// TestAlarmAsksTheLosses: of the rivals the last predicts losses by themselves, whatever the class says, once five of
// an action are there: where all are 0 it errs no more, where all are 1 by little.
func TestAlarmAsksTheLosses(t *testing.T) {
	for _, loss := range []float64{0, 1} {
		m := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{0.5, 0.25})
		for n := range 12 {
			before, most := m.alarm.rival[2], loss/16
			m.alarm.observe(&Round{Input: ab(), Action: 1, Loss: loss}, []float64{0.25}, 0.25)
			if n < 5 {
				most = (loss - 0.25) * (loss - 0.25)
			}
			if lost := m.alarm.rival[2] - before; lost > most || n < 5 && lost != most {
				t.Errorf("loss %v, example %d: it lost %v, want %v", loss, n+1, lost, most)
			}
		}
	}
}

// TestAlarmAsksTheResiduals: without features a ridge of an action's residuals is their mean, which the first rival
// adds, once five are there, within [0,1]. Of a round nothing is retained.
func TestAlarmAsksTheResiduals(t *testing.T) {
	m := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{0.5, 0.25})
	sum := 0.0 // of residuals
	for n, r := range [][2]float64{{0, 1}, {0, 1}, {.25, 1}, {0, .75}, {0, 1}, {.5, .25}, {.9, .5}, {.25, .5}, {1, 0},
		{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {.1, .7}} {
		fhat, loss, before := r[0], r[1], m.alarm.rival
		m.alarm.observe(&Round{Input: ab(), Loss: loss}, []float64{0.5}, fhat)
		mean := max(0, min(fhat+sum/float64(n+1), 1))
		want := [2]float64{(mean - loss) * (mean - loss), (mean - loss) * (mean - loss)}
		if n < 5 {
			want[1] = (fhat - loss) * (fhat - loss)
		}
		for i, lost := range want {
			if got := m.alarm.rival[i] - before[i]; math.Abs(got-lost) > 1e-9 {
				t.Errorf("example %d: rival %d lost %v, want %v", n+1, i, got, lost)
			}
		}
		sum += loss - fhat
	}
	if !reflect.DeepEqual(m.alarm.one, oracle.Input{}) {
		t.Errorf("%+v is retained", m.alarm.one)
	}
}

// TestAlarmJudges: where nothing was played E_f = ½(e^{2(L_f − L_g)} + 1), and the alarm is raised when (1−ε)·E_f
// was 1/α for each function, at one look or another.
func TestAlarmJudges(t *testing.T) {
	edge := math.Log(2*20*128./127-1) / 2 // of L_f − L_g, at α = .05
	for _, c := range []struct {
		was, now [2]bool
		ahead    [2]float64
		alpha    float64
		raised   int64
	}{
		{ahead: [2]float64{edge + 1e-9, edge - 1e-9}, now: [2]bool{true, false}},
		{ahead: [2]float64{edge - 1e-9, edge + 1e-9}},
		{ahead: [2]float64{edge + 1e-9, edge + 1e-9}, now: [2]bool{true, true}, raised: 7},
		{was: [2]bool{true, false}, now: [2]bool{true, true}, ahead: [2]float64{0, edge + 1e-9}, raised: 7},
		{was: [2]bool{true, false}, now: [2]bool{true, false}, ahead: [2]float64{0, edge - 1e-9}},
		{alpha: 128. / 127, now: [2]bool{true, true}, raised: 7}, // 1/α, not more
	} {
		a := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{}, [2]float64{}).alarm
		a.rival = [rivals]float64{3, 3, 3}
		copy(a.refuted, c.was[:])
		if c.alpha == 0 {
			c.alpha = 0.05
		}
		a.judge(7, []float64{3 + c.ahead[0], 3 + c.ahead[1]}, c.alpha)
		if a.raised != c.raised || !slices.Equal(a.refuted, c.now[:]) {
			t.Errorf("%+v: raised at %d, refuted %v", c, a.raised, a.refuted)
		}
	}
}

// TestAlarmEvidenceByHand: of one function at two actions, n_a = 4 and 1, Z = 3 and −½, rivals ahead by ½, 0
// and −1.
func TestAlarmEvidenceByHand(t *testing.T) {
	a := modelsOf(t, ModelsOptions{Alarm: true}, [2]float64{}).alarm
	a.rival, a.played, a.z = [rivals]float64{1.5, 2, 3}, []int64{4, 1}, [][]float64{{3}, {-.5}}
	e1, e2 := (math.Exp(1)+1+math.Exp(-2))/3, 0.0
	for _, l := range []float64{.1, -.1, .2, -.2, .4, -.4, .8, -.8} {
		e2 += (math.Exp(3*l-l*l*4/8) + math.Exp(-.5*l-l*l/8)) / 16
	}
	if got, want := a.evidence(0, 2), (e1+e2)/2; math.Abs(got-want) > 1e-12 || a.least([]float64{2}) != got {
		t.Errorf("%v, want %v", got, want)
	}
	if a.refuted[0] = true; !math.IsInf(a.least([]float64{2}), 1) {
		t.Error("nothing is left, and there is evidence against it")
	}
}

// TestDelayGridByHand: 0 and the series up to the first that is not below the longest delay.
func TestDelayGridByHand(t *testing.T) {
	for longest, want := range map[int64][]int64{0: {0}, 1: {0, 1}, 4: {0, 1, 1, 2, 3, 5},
		51: {0, 1, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75}, 100: {0, 1, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100}} {
		if got := delayGrid(longest); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v", longest, got)
		}
	}
}

// TestTargetByHand: what is asked of a budget by what was spent before, of a cost and of a good.
func TestTargetByHand(t *testing.T) {
	for _, c := range []struct {
		atLeast bool
		own     int64
		debt    float64
		want    float64
	}{
		{false, 0, 0, 1}, {false, 0, 250, 0.75}, {false, 0, -250, 1.25}, {false, 0, 900, 0.5},
		{false, 0, -900, 1.5},
		{false, 500, 250, 0.5}, {false, 2000, 500, 0.75}, {false, Never, 250, 1},
		{true, 0, 0, -1}, {true, 0, 250, -1.25}, {true, 0, -250, -0.75}, {true, Never, 250, -1}, {true, 500, 125,
			-1.25},
	} {
		b := budgets{of: []Budget{{Mean: 2}, {Mean: 3, AtLeast: c.atLeast, PayBack: c.own}},
			debt: []float64{77, c.debt}}
		if got := b.target(1, 1000); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// watching is an oracle that tells of changes, silent one that does not.
type watching struct{ oracle.Regressor }

func (watching) Changes() (oracle.Changes, bool) { return oracle.Changes{Count: 7}, true }

func TestChangesOfOracles(t *testing.T) {
	for name, c := range map[string]struct {
		l  Learner
		n  int64
		ok bool
	}{"watches": {NewGreedy(watching{}), 7, true}, "does not": {NewGreedy(nil), 0, false},
		"no oracle": {NewUniform(), 0, false}} {
		if got, ok := Changes(c.l); ok != c.ok || int64(got.Count) != c.n {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

// TestDrawEnds: the last action of a width above 0 has what is left, for numbers beyond the law, too.
func TestDrawEnds(t *testing.T) {
	for _, c := range []struct {
		law  []float64
		u    uint64
		want int
	}{{[]float64{0.5, 0.5}, 0, 0}, {[]float64{0.5, 0.5}, 1<<52 - 1, 0}, {[]float64{0.5, 0.5}, 1 << 52, 1},
		{[]float64{0, 1, 0}, 0, 1}, {[]float64{0, 1, 0}, 1<<53 - 1, 1}, {[]float64{0.25, 0.25, 0}, 1<<53 - 1, 1},
		{[]float64{0.25, 0x1p-53, 0}, 1<<53 - 1, 1},
		{[]float64{0.25, 0, 0.75}, 1 << 51, 2}} {
		if got := Draw(c.law, c.u); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestTellByHand: a cost of 3 where 2 may be spent is half a budget of debt, and of a good the less; one that another
// law spent is none, and is looked at for its unit all the same. Of a sum the first outcome brings the budget, and each
// what it costs. A cost of no outcome is spent once a round is shown.
func TestTellByHand(t *testing.T) {
	one, two := []float64{1, 0}, []float64{1, 2}
	for _, c := range []struct {
		w           []float64
		first, last bool // known
		r           Round
		atLeast     bool
		about       float64
		debt        float64
		told        int64
		strange     int64
		tells       bool
	}{
		{w: one, first: true, about: 3, debt: 0.5, told: 1, tells: true},
		{w: one, first: true, last: true, about: 3, debt: 0.5, told: 1, tells: true},
		{w: one, first: true, atLeast: true, debt: -0.5, told: 1, tells: true},
		{w: one, first: true, r: Round{Borrowed: true}, about: 0.02, strange: 1, tells: true}, {w: one, about: 3},
		{w: one, first: true, about: 301, debt: 0.5, told: 1, strange: 1, tells: true},
		{w: one, first: true, about: 0.03, debt: 0.5, told: 1, tells: true},
		{w: one, first: true, about: 300, debt: 0.5, told: 1, tells: true}, // a hundredth is not below it
		{w: two, first: true, about: 301, debt: 0.5, told: 1, tells: true}, // it is not whole
		{w: two, last: true, about: 301, debt: 4},
		{w: two, first: true, last: true, about: 1200, debt: 4.5, told: 1, strange: 1, tells: true},
		{w: two[1:], first: true, debt: 2, told: 1, tells: true},
		{w: []float64{0, 2}, first: true, tells: true}, {w: []float64{0, 2}, last: true, debt: 3, told: 1, tells: true},
		{debt: -1, told: 1, tells: true}, {r: Round{Partial: true}}, {r: Round{Fate: Withdrawn}},
		{r: Round{Fate: Skipped}, debt: -1, told: 1, tells: true},
	} {
		b := budgets{of: []Budget{{Mean: 2, AtLeast: c.atLeast, About: map[string]float64{"b": c.about},
			Of: func(string) (float64, []float64) { return 0, c.w }}}, debt: make([]float64, 2),
			told: make([]int64, 2), strange: make([]int64, 2),
			known: []Outcome{{Value: 3, Known: c.first}, {Value: 4, Known: c.last}}}
		b.of = append(b.of, Budget{Mean: 3, About: map[string]float64{"b": .02}, Of: func(string) (float64, []float64) {
			return 0, []float64{1}
		}}) // whose mean the first outcome is
		c.r.Input, c.r.Action = ab(), 1
		tells := b.tell(&c.r)
		if tells != c.tells || b.debt[0] != c.debt || b.told[0] != c.told || b.strange[0] != c.strange ||
			b.debt[1] != 0 || (b.told[1] == 1) != (c.first && !c.r.Borrowed) || (b.strange[1] == 1) != c.first {
			t.Errorf("%+v: %t, debt %v of %d, strange %d", c, tells, b.debt, b.told, b.strange)
		}
	}
}

// TestOutstandingByHand: in the order of decisions rounds count by their feedback, in that of arrival as they were
// decided.
func TestOutstandingByHand(t *testing.T) {
	r := &Round{N: 4, Decision: 10, LearnedThrough: 1}
	for want, d := range map[int64]*DAFA{2: {}, 8: {ordered: &inOrder{}}} {
		if got := d.outstanding(r); got != want {
			t.Errorf("%d are outstanding, want %d", got, want)
		}
	}
}

// TestNoDrift: what was decided by the state of now has no drift, whatever its law; but where provisional losses are
// learned, and may have decided it.
func TestNoDrift(t *testing.T) {
	heads := func() *oracle.Heads {
		h, err := oracle.NewHeads([]oracle.Head{{Name: "y", Regressor: &counted{}}}, func(string) (float64, []float64) {
			return 0, []float64{1}
		})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for i, c := range []struct {
		d       *DAFA
		through int64
		want    float64
	}{{NewDAFA(heads(), Fixed{G: 4}), 6, 0}, {NewDAFA(heads(), Fixed{G: 4}), 5, .5},
		{NewDAFA(&counted{}, Fixed{G: 4}), 6, 0}, {NewDAFA(&counted{}, Fixed{G: 4}), 5, .5},
		{&DAFA{reg: &counted{}, s: Fixed{G: 4}, fast: &fast{reg: &counted{}}}, 6, .5}} {
		// f̂ is ¾ of each action now and 1/(4p) then, but for a constant: g = ¾ − ⅓ and ¾ − 1, so that
		// p·g − min g = ½
		c.d.learnFinal(&Round{Input: ab(), Propensities: []float64{.75, .25}, Gamma: 4, N: 7, LearnedThrough: c.through,
			Fate: Observed})
		if got := c.d.cert.Drift; math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%d: a drift of %v, want %v", i, got, c.want)
		}
	}
}

// TestFinalsByHand: of the feedbacks up to one those count that are no provisional records, as far as it is known.
func TestFinalsByHand(t *testing.T) {
	f := &fast{gone: 2}
	f.told.all = []int64{5, 6}
	for n, want := range map[int64]int64{0: 0, 1: 0, 3: 1, 4: 2, 5: 2, 6: 2, 8: 4} {
		if got := f.finals(n); got != want {
			t.Errorf("up to %d: %d, want %d", n, got, want)
		}
	}
}

// TestObservedByHand: the last round that waits with a loss may be the first that waits.
func TestObservedByHand(t *testing.T) {
	for want, fates := range map[int64][2]Fate{0: {Skipped, Withdrawn}, 5: {Observed, Skipped},
		7: {Observed, Observed}} {
		m, o := newLevels(), &inOrder{}
		for i, fate := range fates {
			o.take(m, &Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: fate, Decision: int64(5 + 2*i),
				N: int64(i + 1)})
		}
		if got := o.observed(); got != want {
			t.Errorf("%v: decision %d, want %d", fates, got, want)
		}
	}
}

// TestDamagedModels: sums that no run can leave are refused. A regret may be below 0 by rounding.
func TestDamagedModels(t *testing.T) {
	for i, values := range map[int][2]float64{0: {0, -1e-9}, 1: {-1, -1.5}, 2: {-1, -1.5}, 3: {-7, math.NaN()}, 4: {0,
		-1e-9}} {
		for k, v := range values {
			m := newLevels()
			(*m.slices()[i])[0] = v
			c := newReader(stateOf(t, m))
			if newLevels().code(&c); (c.Err() == nil) != (k == 0) {
				t.Errorf("sum %d of %v: %v", i, v, c.Err())
			}
		}
	}
}

// first plays the first action.
type first int

func (n first) Size() int                         { return int(n) }
func (first) Advise(dst []int32, _ *oracle.Input) { clear(dst) }

// TestVoteByHand: of four policies the weights of the first two and of the last two are added first, to the bit; others
// are added to those of every fourth.
func TestVoteByHand(t *testing.T) {
	const little = 0x1p-53
	for _, c := range []struct {
		w    []float64
		want float64
	}{{[]float64{1, 0, little, little}, 1 + 2*little}, {[]float64{1, little, little, 0}, 1},
		{[]float64{little, 0, 1, 0, little}, 1 + 2*little}, {[]float64{1, 0, 0, 0, little, little}, 1},
		{[]float64{0, 1, little, 0, 0, 0, 0, little}, 1 + 2*little}} {
		e, err := NewEXP4(first(len(c.w)), EXP4Options{})
		if err != nil {
			t.Fatal(err)
		}
		copy(e.w, c.w)
		if e.vote(ab()); e.q[0] != c.want || e.q[1] != 0 {
			t.Errorf("weights %v: %v, want %v", c.w, e.q, c.want)
		}
	}
}

// TestEXP4Damaged: sums that no run can leave are refused, and states of other parameters; what it was remains.
func TestEXP4Damaged(t *testing.T) {
	fresh := func(n first, o EXP4Options) *EXP4 {
		e, err := NewEXP4(n, o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	prior := EXP4Options{Prior: []float64{1, 2}}
	for name, c := range map[string]struct {
		of     *EXP4
		change func(e *EXP4)
		fine   bool
	}{
		"as it is": {fresh(2, prior), func(*EXP4) {}, true},
		"little": {fresh(2, prior), func(e *EXP4) {
			e.tally.loss, e.tally.measured, e.tally.apriori, e.tally.actions = .1, .2, .3, .4
			e.spent, e.losses[0] = .5, .6
		}, true},
		"nothing":       {fresh(2, prior), func(e *EXP4) { e.learned, e.spent = 0, 0 }, true},
		"spent nothing": {fresh(2, prior), func(e *EXP4) { e.spent = 0 }, false},
		"spent before":  {fresh(2, prior), func(e *EXP4) { e.learned = 0 }, false},
		"lost":          {fresh(2, prior), func(e *EXP4) { e.tally.loss = -.5 }, false},
		"measured":      {fresh(2, prior), func(e *EXP4) { e.tally.measured = -.5 }, false},
		"of a policy":   {fresh(2, prior), func(e *EXP4) { e.losses[1] = -.5 }, false},
		"prior":         {fresh(2, EXP4Options{Prior: []float64{1, 3}}), func(*EXP4) {}, false},
		"rate":          {fresh(2, EXP4Options{Prior: []float64{1, 2}, Eta: 1}), func(*EXP4) {}, false},
		"plain":         {fresh(2, EXP4Options{Prior: []float64{1, 2}, Plain: true}), func(*EXP4) {}, false},
		"policies":      {fresh(3, EXP4Options{Prior: []float64{1, 2, 2}}), func(*EXP4) {}, false},
	} {
		into := fresh(2, prior)
		before := into.AppendWeights(nil)
		for _, e := range []*EXP4{c.of, into} {
			e.learned, e.spent = 1, 2
		}
		c.change(c.of)
		state, err := c.of.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		switch err := into.UnmarshalBinary(state); {
		case (err == nil) != c.fine:
			t.Errorf("%s: %v", name, err)
		case !c.fine && (into.learned != 1 || into.spent != 2 || !slices.Equal(into.AppendWeights(nil), before)):
			t.Errorf("%s: refused, and taken", name)
		case c.fine:
			c.of.weigh()
			again, _ := into.AppendBinary(nil)
			if string(again) != string(state) || !slices.Equal(into.w, c.of.w) {
				t.Errorf("%s: read back as %+v", name, into)
			}
		}
	}
}

// TestBaselinesCount: baselines learn rounds with a loss, and no record before.
func TestBaselinesCount(t *testing.T) {
	for fate, want := range map[Fate]int64{Observed: 1, Imputed: 1, Skipped: 0, Withdrawn: 0} {
		reg := &counted{}
		for _, l := range []Learner{NewUniform(), NewFixed("a"), NewGreedy(reg)} {
			l.Learn(&Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: fate, Partial: true})
			l.Learn(&Round{Input: ab(), Propensities: []float64{.5, .5}, Fate: fate})
			if l.Learned() != want {
				t.Errorf("fate %v: %T has learned %d", fate, l, l.Learned())
			}
		}
		if int64(len(reg.told)) != want {
			t.Errorf("fate %v: the oracle is told %v", fate, reg.told)
		}
	}
}

// TestFormulaEnds: where a formula is wrong it is not read on, however long it is and whatever it asks for.
func TestFormulaEnds(t *testing.T) {
	p := &formulaParser{text: "quality"}
	if p.failf(2, "wrong"); p.at != 7 || p.err == nil || p.err.Column != 3 {
		t.Errorf("%+v", p)
	}
}

// TestDamagedWhich: the functions that are left are read in their order, each once, and no others.
func TestDamagedWhich(t *testing.T) {
	for name, c := range map[string]struct {
		which []int32
		fine  bool
	}{"all": {[]int32{0, 1, 2, 3, 4}, true}, "some": {[]int32{1, 4}, true}, "none": {nil, true},
		"one twice": {[]int32{1, 1}, false}, "back": {[]int32{2, 1}, false}, "another": {[]int32{1, 5}, false},
		"negative": {[]int32{-1, 1}, false}, "too many": {[]int32{0, 1, 2, 3, 4, 5}, false}} {
		m, into := newLevels(), newLevels()
		if len(c.which) > len(m.which) {
			for _, s := range m.slices() {
				*s = append(*s, 0)
			}
			m.alarm.refuted = append(m.alarm.refuted, false)
		} else {
			m.cut(len(c.which))
		}
		m.which, m.unknown, m.charged, m.evidence, m.total = c.which, 1, 2, 3, float64(len(c.which))/2
		r := newReader(stateOf(t, m))
		if into.code(&r); (r.Err() == nil) != c.fine {
			t.Errorf("%s: %v", name, r.Err())
		} else if c.fine && (!slices.Equal(into.which, c.which) || into.unknown != 1 || into.charged != 2 ||
			into.evidence != 3 || into.total != m.total || into.Left() != len(into.loss) || len(r.Bytes()) > 0) {
			t.Errorf("%s: read back as %+v", name, into.modelSums)
		}
	}
	other, err := NewModels(levels{.1, .3, .5, .7, .9}, ModelsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(stateOf(t, newLevels()))
	if other.code(&r); r.Err() == nil {
		t.Error("models with an alarm are read by models without")
	}
}

// TestBoxShareByHand: of two actions that lose .2 to .6 and .3 to .5, of which the baseline plays the second, the first
// is played with share s if at its worst .4·s − .7·(s − lose) is not below 0.
func TestBoxShareByHand(t *testing.T) {
	lo, hi, base := []float64{.2, .3}, []float64{.6, .5}, []float64{0, 1}
	for _, c := range []struct {
		law  []float64
		lose float64
		want float64
	}{{base, 0, 1}, {[]float64{1, 0}, .1, .7 / 3}, {[]float64{1, 0}, 0, 0}, {[]float64{.5, .5}, .1, 1.4 / 3},
		{[]float64{.15, .85}, .1, 1}} {
		got := boxShare(c.law, base, lo, hi, c.lose)
		if math.Abs(got-c.want) > 2e-6 || (got == 1) != (c.want == 1) { // one that is played whole is not held back
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestShareOfOracles: that of a certified regression is by the intervals of its losses at the level that was asked for;
// an oracle without a theorem has none, nor have models whose rounds come in another order.
func TestShareOfOracles(t *testing.T) {
	reg, err := oracle.NewFrozen(oracle.FrozenOptions{Actions: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDAFA(reg, Anytime{C: Cautious})
	for n := range int64(200) {
		d.Learn(&Round{Input: ab(), Action: int(n % 2), Propensities: []float64{.5, .5}, Gamma: 4, N: n + 1,
			LearnedThrough: n, Fate: Observed, Loss: .5 - float64(n%2)/8})
	}
	law, base := []float64{1, 0}, []float64{0, 1}
	shares := map[float64]bool{}
	for _, delta := range []float64{.05, .5} {
		lo, hi := make([]float64, 2), make([]float64, 2)
		reg.Interval(lo, hi, ab(), delta)
		d.Conserve(.125, delta)
		got := d.Share(law, base, ab())
		if shares[got] = true; got != boxShare(law, base, lo, hi, .125) || !(got > 0) {
			t.Errorf("level %v: %v of losses in %v to %v", delta, got, lo, hi)
		}
	}
	if len(shares) != 2 {
		t.Errorf("shares %v", shares)
	}
	other := NewDAFA(&counted{}, Fixed{G: 1})
	arrivals := NewDAFA(nil, Fixed{G: 1})
	arrivals.models, arrivals.ordered = modelsOf(t, ModelsOptions{}, [2]float64{0.5, 0.5}), &inOrder{}
	for _, d := range []*DAFA{other, arrivals} {
		d.Conserve(.125, .05)
		if got := d.Share(law, base, ab()); got != 0 {
			t.Errorf("without a theorem a share of %v", got)
		}
	}
}
