package watch

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"hindsight/internal/ope"
	"hindsight/pkg/codec"
)

// windowSize is how many of the last decisions, and of the last rounds released, are kept.
const windowSize = 1000

// decided is what is kept of a decision.
type decided struct {
	action  int32 // in the table of names
	floor   float64
	entropy float64
	shadow  shadowed
}

// ring holds the last values of a kind, in no order.
type ring[T any] struct {
	all [windowSize]T
	n   int // held
	at  int // of the next
}

// add takes a value, and returns that whose place it takes, if any.
func (r *ring[T]) add(v T) (old T, full bool) {
	if full = r.n == windowSize; full {
		old = r.all[r.at]
	} else {
		r.n++
	}
	r.all[r.at] = v
	r.at = (r.at + 1) % windowSize
	return old, full
}

// decisionWindow holds the last decisions, and how often each action is among them.
type decisionWindow struct {
	ring[decided]
	nameTable
}

// nameTable numbers the actions of a window, and counts them.
type nameTable struct {
	names []actionCount
	index map[string]int32
	free  []int32
}

type actionCount struct {
	name string
	n    int
}

// add takes a decision, whose strings are copied where they are kept.
func (w *decisionWindow) add(law []float64, action string, x shadowed) {
	floor, entropy := spread(law)
	if old, full := w.ring.add(decided{w.name(action), floor, entropy, x}); full {
		w.drop(old.action)
	}
}

// name returns the number of an action's name, counted once more.
func (w *nameTable) name(name string) int32 {
	if w.index == nil {
		w.index = map[string]int32{}
	}
	i, ok := w.index[name]
	if !ok {
		if n := len(w.free); n > 0 {
			i, w.free = w.free[n-1], w.free[:n-1]
		} else {
			i = int32(len(w.names))
			w.names = append(w.names, actionCount{})
		}
		name = strings.Clone(name)
		w.names[i] = actionCount{name: name}
		w.index[name] = i
	}
	w.names[i].n++
	return i
}

func (w *nameTable) drop(i int32) {
	c := &w.names[i]
	if c.n--; c.n == 0 {
		delete(w.index, c.name)
		c.name = ""
		w.free = append(w.free, i)
	}
}

// spread returns the least propensity of a law, and its entropy as a share of that of the
// uniform law; 1 for a law of one action.
func spread(law []float64) (floor, entropy float64) {
	floor = 1
	for _, p := range law {
		floor = min(floor, p)
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	if len(law) < 2 {
		return floor, 1
	}
	return floor, entropy / math.Log(float64(len(law)))
}

// exploration says how widely the last decisions explore; all NaN before the first.
type exploration struct {
	Decisions int     // at most [windowSize]
	Floor     float64 // least propensity of any action
	Entropy   float64 // mean of the laws' entropies, each as a share of the uniform law's
}

func (w *decisionWindow) exploration() exploration {
	e := exploration{Decisions: w.n, Floor: math.NaN(), Entropy: math.NaN()}
	if w.n == 0 {
		return e
	}
	e.Floor, e.Entropy = 1, 0
	for i := range w.n {
		e.Floor = min(e.Floor, w.all[i].floor)
		e.Entropy += w.all[i].entropy / float64(w.n)
	}
	return e
}

// playedAction is how often an action is among the last decisions.
type playedAction struct {
	Action    string
	Decisions int
}

// actions returns all actions of the window, the most frequent first.
func (w *decisionWindow) actions() []playedAction {
	var out []playedAction
	for _, c := range w.names {
		if c.n > 0 {
			out = append(out, playedAction{c.name, c.n})
		}
	}
	slices.SortFunc(out, func(a, b playedAction) int {
		return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), strings.Compare(a.Action, b.Action))
	})
	return out
}

// released is what is kept of a feedback.
type released struct {
	fate   codec.Fate
	action int32 // in the table of names
	loss   float64
	weight float64 // of uniform play: 1/(K·p)
	shadow shadowed
}

// worth reports whether a round has a loss, real or imputed.
func (r *released) worth() bool { return r.fate == codec.Observed || r.fate == codec.Imputed }

// feedbackWindow holds the last rounds released.
type feedbackWindow struct {
	ring[released]
	nameTable
}

// add takes a round, whose action's name is copied where it is kept.
func (w *feedbackWindow) add(r released, action string) {
	r.action = w.name(action)
	if old, full := w.ring.add(r); full {
		w.drop(old.action)
	}
}

// actionWorth is what the rounds of an action were worth.
type actionWorth struct {
	Rounds int     // with a loss
	Loss   float64 // mean
}

// worths returns what each action of the last rounds released with a loss was worth.
func (w *feedbackWindow) worths() map[string]actionWorth {
	out := map[string]actionWorth{}
	for i := range w.n {
		if x := &w.all[i]; x.worth() {
			name := w.names[x.action].name
			was := out[name]
			n := was.Rounds + 1
			out[name] = actionWorth{n, was.Loss + (x.loss-was.Loss)/float64(n)}
		}
	}
	return out
}

// Known returns x for JSON, which has finite numbers only: nil if it is not one.
func Known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Recent says what the last rounds released were worth. What nothing is known of is NaN.
type Recent struct {
	Rounds    int     // at most [windowSize]
	JoinRatio float64 // observed, of those that are not withdrawn
	Largest   float64 // the largest weight of uniform play, as a share of all
	Worth
}

// Worth says what rounds were worth beside uniform play, estimated from the same rounds. What
// nothing is known of is NaN.
type Worth struct {
	Losses  int     // rounds with a loss, real or imputed
	Loss    float64 // mean
	Uniform float64 // what uniform play would have lost (self-normalised)
	// what the rounds lost over uniform play, a round: the mean of w·(mean − loss). One round of a large weight is
	// most of it and of its error, which a self-normalised estimate hides; actions that were never played count as
	// losing the mean
	Excess    float64
	StdErr    float64 // of Excess, as if rounds were independent
	Effective float64 // (Σw)²/(n·Σw²): as if so large a share of the rounds told of uniform play
}

// worthSums are what worth is computed from: of rounds with loss ℓ and weight w of uniform play.
type worthSums struct {
	ope.Weighted
	loss float64 // Σ ℓ
}

func (s *worthSums) add(loss, w float64) {
	s.Add(w, loss)
	s.loss += loss
}

// worth returns NaN where there is no round: quotients by 0.
func (s *worthSums) worth() Worth {
	n := float64(s.N)
	m := s.loss / n
	excess := m*s.W/n - s.WL/n
	squares := m*m*s.WW - 2*m*s.WWL + s.WWLL
	return Worth{Losses: int(s.N), Loss: m, Uniform: s.WL / s.W, Excess: excess,
		StdErr: math.Sqrt(max(0, squares/n-excess*excess) / n), Effective: s.W * s.W / (n * s.WW)}
}

func (w *feedbackWindow) recent() Recent {
	var asked, observed, largest float64
	var sums worthSums
	for i := range w.n {
		x := &w.all[i]
		if x.fate != codec.WithdrawnRound {
			asked++
		}
		if x.fate == codec.Observed {
			observed++
		}
		if x.worth() {
			sums.add(x.loss, x.weight)
			largest = max(largest, x.weight)
		}
	}
	return Recent{Rounds: w.n, JoinRatio: observed / asked, Largest: largest / sums.W, Worth: sums.worth()}
}
