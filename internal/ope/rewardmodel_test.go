package ope

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/oracle"
)

// lossLog is a log in which ten actions were played uniformly, with losses of 0 or 1 whose
// means are .6 to .96 and go with a feature x in [−1, 1] by a slope.
type lossLog struct {
	Sample
	x     []float64
	slope float64
}

const lossActions = 10

func (l *lossLog) mean(a int, x float64) float64 {
	side := float64(a%2*2 - 1)
	return .6 + .04*float64(a) + l.slope*side*x
}

func newLossLog(rows int, slope float64) *lossLog {
	l := &lossLog{Sample: Sample{Actions: lossActions}, slope: slope}
	rng := rand.New(rand.NewPCG(3, uint64(rows)))
	for range rows {
		a, x := rng.IntN(lossActions), 2*rng.Float64()-1
		loss := 0.0
		if rng.Float64() < l.mean(a, x) {
			loss = 1
		}
		l.Action, l.Propensity = append(l.Action, int32(a)), append(l.Propensity, 1./lossActions)
		l.Reward, l.x = append(l.Reward, loss), append(l.x, x)
	}
	return l
}

// seen lets the reward model see x.
func (l *lossLog) seen() *lossLog {
	all, actions := make([]int32, lossActions), make([]oracle.Action, lossActions)
	for a := range all {
		all[a] = int32(a)
	}
	l.Context = func(in *oracle.Input, t int) []int32 {
		*in = oracle.Input{Features: []oracle.Feature{{Name: "x", Kind: oracle.Number, Value: l.x[t]}},
			Actions: actions}
		return all
	}
	return l
}

// split plays action 0 where x is above 0, else action 1: the slope makes it better than
// either.
func (l *lossLog) split(dst []float64, t int) {
	if l.x[t] > 0 {
		dst[0] = 1
	} else {
		dst[1] = 1
	}
}

func (l *lossLog) truth(policy Policy) float64 {
	sum, probs := 0.0, make([]float64, lossActions)
	for t, x := range l.x {
		clear(probs)
		policy(probs, t)
		for a, p := range probs {
			sum += p * l.mean(a, x)
		}
	}
	return sum / float64(len(l.x))
}

func judgeLosses(t *testing.T, l *lossLog, policy Policy, change func(o *Options)) *Evaluation {
	t.Helper()
	o := Defaults()
	o.Bootstrap, o.Lambda = 0, 5 // weights are 10, where they are not 0
	change(&o)
	e, err := Evaluate(&l.Sample, "p", policy, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func unchanged(*Options) {}

// modelled are the estimators that use the reward model.
var modelled = []string{"dm", "dr", "sndr", "switchdr5", "dros5"}

// right reports whether an estimate is right as far as it says: within four standard errors
// of the truth, or if it may be biased within its bias and four standard errors of that.
func (e *Estimate) right(truth float64) bool {
	off := math.Abs(float64(e.Value) - truth)
	if e.Bias == nil {
		return off <= 4*float64(e.SE)
	}
	return off <= math.Abs(float64(e.Bias.Value))+4*float64(e.Bias.SE)
}

// TestKnownTruth: all estimates are right on losses, and DM, Switch-DR and DRos near the
// truth. With the prior of the published check values, which is that of clicks, they are far
// off, and the flags say which contradict the mean of the log.
func TestKnownTruth(t *testing.T) {
	l := newLossLog(2000, 0)
	for a := range lossActions {
		policy := func(dst []float64, _ int) { dst[a] = .9; dst[(a+1)%lossActions] += .1 }
		truth := l.truth(policy)
		e := judgeLosses(t, l, policy, unchanged)
		old := judgeLosses(t, l, policy, func(o *Options) { o.Model = published })
		for _, name := range modelled {
			if v := e.Estimates.Get(name); !v.right(truth) || math.Abs(float64(v.Value)-truth) > .1 {
				t.Errorf("action %d, %s: %+v, bias %+v, the truth is %v", a, name, v, v.Bias, truth)
			}
		}
		for _, name := range []string{"dm", "switchdr5", "dros5"} {
			if v := old.Estimates.Get(name); math.Abs(float64(v.Value)-truth) < .15 || v.Mark() != "**" {
				t.Errorf("action %d, %s: %v with the prior of clicks: the plant does not show", a, name, v.Value)
			}
		}
		if flags := strings.Join(e.Flags, "\n"); strings.Contains(flags, "contradicts") {
			t.Error(flags)
		}
		flags := strings.Join(old.Flags, "\n")
		for flag, want := range map[string]bool{
			"dm contradicts what is known exactly: it gives the policy that made the log a mean of 0.5": true,
			"dros5 contradicts": true, "switchdr5 contradicts": false,
		} {
			if strings.Contains(flags, flag) != want {
				t.Errorf("action %d: %q is among the flags: %v. %s", a, flag, !want, flags)
			}
		}
	}
}

// TestLossesAreRewards: 1 − r in place of r gives 1 − the estimate, with and without
// features, and the same standard errors.
func TestLossesAreRewards(t *testing.T) {
	for _, l := range []*lossLog{newLossLog(500, .3), newLossLog(500, .3).seen()} {
		e := judgeLosses(t, l, l.split, unchanged)
		mirror := *l
		mirror.Reward = nil
		for _, r := range l.Reward {
			mirror.Reward = append(mirror.Reward, 1-r)
		}
		m := judgeLosses(t, &mirror, l.split, unchanged)
		if e.RewardModel != m.RewardModel {
			t.Errorf("%s of losses, and %s of rewards", e.RewardModel, m.RewardModel)
		}
		for _, name := range modelled {
			v, w := e.Estimates.Get(name), m.Estimates.Get(name)
			if !(math.Abs(float64(v.Value+w.Value)-1) < 1e-9) || math.Abs(float64(v.SE-w.SE)) > 1e-9 {
				t.Errorf("%s: %v ± %v of losses, %v ± %v of rewards", name, v.Value, v.SE, w.Value, w.SE)
			}
		}
	}
}

// TestFeaturesOfTheModel: a policy that goes by a feature is judged by regressions, where
// means per action are wrong. Where the feature says nothing, means stay.
func TestFeaturesOfTheModel(t *testing.T) {
	l := newLossLog(3000, .35)
	truth := l.truth(l.split)
	blind := judgeLosses(t, l, l.split, unchanged)
	if off := math.Abs(float64(blind.Estimates.Get("dm").Value) - truth); off < .1 || blind.RewardModel != "mean" {
		t.Errorf("a %s without features is off by %v: the plant does not show", blind.RewardModel, off)
	}
	e := judgeLosses(t, l.seen(), l.split, unchanged)
	if e.RewardModel != "ridge" {
		t.Errorf("the reward model is a %s", e.RewardModel)
	}
	for _, name := range modelled {
		if v := e.Estimates.Get(name); !v.right(truth) || math.Abs(float64(v.Value)-truth) > .06 {
			t.Errorf("%s: %+v, bias %+v, the truth is %v", name, v, v.Bias, truth)
		}
	}
	if dr, old := e.Estimates.Get("dr"), blind.Estimates.Get("dr"); dr.SE >= old.SE {
		t.Errorf("DR has the standard error %v with features, and %v without", dr.SE, old.SE)
	}
	if dm := judgeLosses(t, l, nil, unchanged).Estimates.Get("dm"); math.Abs(float64(dm.Bias.Value)) > .004 {
		t.Errorf("DM of the policy that made the log is off its mean by %v", dm.Bias.Value)
	}
	if noise := judgeLosses(t, newLossLog(3000, 0).seen(), l.split, unchanged); noise.RewardModel != "mean" {
		t.Errorf("of a feature that says nothing the reward model is a %s", noise.RewardModel)
	}
}

// TestRidgesBegin: before they learned anything regressions say the mean of each action,
// and beyond what has room there are means.
func TestRidgesBegin(t *testing.T) {
	l := newLossLog(20, 0).seen()
	means := make([]float64, 2*lossActions)
	for i := range means {
		means[i] = float64(i) / 20
	}
	r, err := newRidges(&l.Sample, Range{-1, 1}, means)
	if err != nil {
		t.Fatal(err)
	}
	r.names = r.names[:lossActions-1]
	dst := make([]float64, lossActions)
	dst[lossActions-1] = 7
	r.predict(dst, 0, 1)
	for a, v := range dst[:lossActions-1] {
		near(t, "first prediction", Figure(v), means[lossActions+a])
	}
	near(t, "an action without a regression", Figure(dst[lossActions-1]), 7)
	l.Context = func(*oracle.Input, int) []int32 { return nil }
	if r.fit(&fitted{actions: lossActions, means: means}) {
		t.Error("regressions that no row knows help")
	}
}

// TestRidgesHelp: regressions are compared with the means of the row's own part.
func TestRidgesHelp(t *testing.T) {
	l := newLossLog(400, 0).seen()
	means := make([]float64, 2*lossActions)
	for i := range means {
		means[i] = l.mean(i%lossActions, 0)
	}
	f := &fitted{actions: lossActions, means: means, deal: &dealing{model: rewardModel{Folds: 2}, n: 400}}
	for _, bad := range []bool{false, true} {
		r, err := newRidges(&l.Sample, Range{0, 1}, means)
		if err != nil {
			t.Fatal(err)
		}
		for a := range means[lossActions:] {
			if bad {
				means[lossActions+a] = 9 // of the second part
			}
		}
		if r.fit(f) != bad {
			t.Errorf("the means of the second part are bad: %v, and regressions help: %v", bad, !bad)
		}
	}
	two := newLossLog(2, 0).seen()
	bad := &fitted{actions: lossActions, means: slices.Repeat([]float64{9}, 2*lossActions),
		deal: &dealing{model: rewardModel{Folds: 2}, n: 2}}
	if r, err := newRidges(&two.Sample, Range{0, 1}, make([]float64, 2*lossActions)); err != nil || !r.fit(bad) {
		t.Errorf("the second of two rows is not compared: %v", err)
	}
}

// TestCrossFit: what a model says of a row does not depend on the row's own reward, and on
// those of other parts it does.
func TestCrossFit(t *testing.T) {
	l := newLossLog(60, .3).seen()
	model := defaultRewardModel
	said := func() (means, ridges []float64) {
		f := &fitted{actions: lossActions, deal: &dealing{model: model, n: l.Len()}}
		f.means = model.means(&l.Sample, f.fold)
		dst := make([]float64, lossActions)
		r, err := newRidges(&l.Sample, Range{0, 1}, f.means)
		if err != nil {
			t.Fatal(err)
		}
		r.fit(f)
		for row := range l.x {
			f.ridges = nil
			f.fill(dst, row)
			means = append(means, dst[l.Action[row]])
			f.ridges = r
			f.fill(dst, row)
			ridges = append(ridges, dst[l.Action[row]])
		}
		return means, ridges
	}
	means, ridges := said()
	for _, row := range []int{0, 29, 59} {
		l.Reward[row] = 1 - l.Reward[row]
		m, r := said()
		l.Reward[row] = 1 - l.Reward[row]
		near(t, "mean", Figure(m[row]), means[row])
		near(t, "ridge", Figure(r[row]), ridges[row])
		moved := 0
		for i := range l.x {
			if m[i] != means[i] && r[i] != ridges[i] {
				moved++
			}
		}
		if moved < 30 {
			t.Errorf("row %d moves what is said of %d rows of 60", row, moved)
		}
	}
}

// TestOneRow: there are no others to fit a model to.
func TestOneRow(t *testing.T) {
	s := &Sample{Actions: 2, Action: []int32{0}, Propensity: []float64{.5}, Reward: []float64{.25}}
	e, err := Evaluate(s, "uniform", func(dst []float64, _ int) { spread(dst, 1) }, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	near(t, "DM", e.Estimates.Get("dm").Value, .25)
	near(t, "DR", e.Estimates.Get("dr").Value, .25)
}
