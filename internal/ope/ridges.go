package ope

import (
	"slices"
	"strconv"

	"hindsight/pkg/oracle"
)

// ridges are regressions of rewards on the features of a row, one an action, for each fold fitted to the others. They
// are the linear oracle's without optimism. Each is shrunk to the action's mean by λ + 1 events: it starts with a row
// without features whose reward is (1+λ)·mean, since λw² + (w − (1+λ)m)² = (1+λ)(w − m)² + a constant.
//
// Predictions may leave the range of rewards by half its length. A regression that is right
// on average is not if what is outside is cut off.
type ridges struct {
	s      *Sample
	within Range            // of predictions
	of     []*oracle.Linear // [folds]
	names  []string         // of the actions that have one, the first so many
	x      oracle.Input     // of the row at hand, with the actions that have a regression
	index  []int32          // of these, in the sample
	given  oracle.Input     // scratch: the row with all its actions
	out    []float64        // scratch: predictions
}

// What the regressions of a log may take: rows are learned Folds − 1 times, and a log may
// have thousands of actions. Further columns read 0, further actions keep their mean.
const (
	ridgeColumns = 64
	ridgeBytes   = 64 << 20 // of all folds
)

func newRidges(s *Sample, r Range, means []float64) (*ridges, error) {
	folds := len(means) / s.Actions
	o := oracle.LinearOptions{Lambda: oracle.AutoLambda(ridgeColumns + 1), MaxFeatures: ridgeColumns}
	slack := (r.Max - r.Min) / 2
	out := &ridges{s: s, within: Range{r.Min - slack, r.Max + slack}}
	most := int(ridgeBytes / (float64(folds) * oracle.LinearBytes(1, ridgeColumns+1)))
	for a := range min(s.Actions, most) {
		out.names = append(out.names, strconv.Itoa(a))
	}
	o.MaxActions = max(len(out.names), 1)
	for fold := range folds {
		linear, err := oracle.NewLinear(o)
		if err != nil {
			return nil, err
		}
		for a, name := range out.names {
			mean := out.unit(means[fold*s.Actions+a])
			linear.Update(&oracle.Input{Actions: []oracle.Action{{Name: name}}}, 0, (1+o.Lambda)*mean)
		}
		out.of = append(out.of, linear)
	}
	return out, nil
}

// unit maps rewards to [0,1], which oracles predict in.
func (r *ridges) unit(reward float64) float64 {
	return (reward - r.within.Min) / (r.within.Max - r.within.Min)
}

func (r *ridges) reward(unit float64) float64 {
	return r.within.Min + float64(unit*(r.within.Max-r.within.Min))
}

// look takes row t to hand and returns where its action stands there; -1 if it has no regression.
func (r *ridges) look(t int) int {
	index := r.s.Context(&r.given, t)
	r.x.Features, r.x.Vector = r.given.Features, r.given.Vector
	r.x.Actions, r.index = r.x.Actions[:0], r.index[:0]
	at := -1
	for i, a := range index {
		if int(a) >= len(r.names) {
			continue
		}
		if a == r.s.Action[t] {
			at = len(r.index)
		}
		r.x.Actions = append(r.x.Actions, oracle.Action{Name: r.names[a], Features: r.given.Actions[i].Features})
		r.index = append(r.index, a)
	}
	return at
}

// predict sets dst[a] for the actions of row t that have a regression.
func (r *ridges) predict(dst []float64, t, fold int) {
	r.look(t)
	r.out = slices.Grow(r.out[:0], len(r.index))[:len(r.index)]
	r.of[fold].Predict(r.out, &r.x)
	for i, a := range r.index {
		dst[a] = r.reward(r.out[i])
	}
}

// fit learns the rows and reports whether features help: over the second half of the rows, each predicted by the
// regressions of its fold as they are by then, the square error is below that of the means.
func (r *ridges) fit(f *fitted) bool {
	s := r.s
	ridge, mean := 0.0, 0.0
	for t := range s.all() {
		at := r.look(t)
		if at < 0 {
			continue
		}
		own, reward := f.fold(t), s.Reward[t]
		if 2*t >= s.Len() {
			x := r.x
			x.Actions = x.Actions[at : at+1]
			var q [1]float64
			r.of[own].Predict(q[:], &x)
			d, e := reward-r.reward(q[0]), reward-f.means[own*f.actions+int(s.Action[t])]
			ridge += float64(s.events(t) * d * d)
			mean += float64(s.events(t) * e * e)
		}
		for fold, o := range r.of {
			if fold != own {
				o.Update(&r.x, at, r.unit(reward))
			}
		}
	}
	return ridge < mean
}
