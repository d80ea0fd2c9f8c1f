package replay

import (
	"math"
	"slices"
	"strconv"
	"unsafe"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/internal/words"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
)

// Rounds are what a run plays: rows of a table or of a built-in world in some order, with what is
// known of them. Their methods are pure functions of the round t = 0 … Len()−1 and safe for
// concurrent use. [Order], [Head], [Tail], [Twist] and [Accepting] return other rounds.
type Rounds struct {
	Name    string          // with its parameters
	Actions []string        // in the order of action indices; must not be changed
	Columns int             // expanded columns of features, the constant included
	Known   bool            // what every action is worth is known
	Log     *dataset.Table  // knows the outcome of the recorded action only; nil: the loss of every action is known
	Intake  *dataset.Intake // what was read of the data; nil: not known
	// Complete adds to the context of a round; nil: nothing is added. All of a context is in it then.
	Complete func(c *codec.Context, t int)
	world.Facts

	table    *dataset.Table // nil: world
	world    *world.World
	n        int
	from     int     // place of round 0: what belongs to places, such as times, does not move with the rows
	rows     []int32 // by round; nil: the places
	Featured bool    // contexts bring their actions with their features, although all rows have the same

	named *named // outcomes, as a model names them; nil: one loss

	// Of twisted rounds, by place.
	truth func(dst []float64, place int)
	loss  func(place, a int) float64
	under *Rounds
	again func(under *Rounds) *Rounds // twists other rounds alike
}

// OfTable returns the rows of a table in their order.
func OfTable(b *dataset.Table) *Rounds {
	r := &Rounds{Name: b.Name, Actions: b.Actions, Columns: b.Columns, Known: b.Labelled, Intake: b.Intake, table: b,
		n: len(b.Action)}
	if !b.Labelled {
		r.Log = b
	}
	return r
}

// OfWorld returns the rounds of a world.
func OfWorld(w *world.World) *Rounds {
	return &Rounds{Name: w.Name, Actions: w.Actions, Columns: len(w.Features) + 1, Known: true, Facts: w.Facts,
		world: w, n: w.Rounds}
}

// NewEnvironment returns the rounds of the built-in environment that a specification names.
func NewEnvironment(spec string, seed uint64, rounds int) (*Rounds, error) {
	w, err := world.New(spec, seed, rounds)
	if err != nil {
		return nil, err
	}
	return OfWorld(w), nil
}

// Len returns the number of rounds.
func (r *Rounds) Len() int { return r.n }

// Row returns which row of the table or world round t is.
func (r *Rounds) Row(t int) int {
	if r.rows == nil {
		return r.from + t
	}
	return int(r.rows[t])
}

// Context sets dst to the context of round t, without an id, reusing its memory.
func (r *Rounds) Context(dst *codec.Context, t int) {
	if r.table != nil {
		r.table.Context(dst, r.Row(t))
		return
	}
	r.world.Context(dst, r.Row(t))
}

// Truth sets dst[a] to the expected loss of action a in round t, of rounds where it is known.
func (r *Rounds) Truth(dst []float64, t int) {
	switch {
	case r.truth != nil:
		r.truth(dst, r.from+t)
	case r.named != nil:
		for a := range dst {
			dst[a] = r.worth(t, a)
		}
	case r.table != nil:
		r.table.Truth(dst, r.Row(t))
	default:
		r.world.Truth(dst, r.Row(t))
	}
}

// Loss returns the loss in [0,1] that action a has in round t. Of a log a is an index into the actions
// of the context, and the loss is NaN where it is not known.
func (r *Rounds) Loss(t, a int) float64 {
	switch {
	case r.loss != nil:
		return r.loss(r.from+t, a)
	case r.named != nil:
		return r.worth(t, a)
	case r.table != nil:
		return r.table.Loss(r.Row(t), a)
	}
	return r.world.Loss(r.Row(t), a)
}

// Order returns the rounds in row order i: order 0 is their own, order i > 0 a shuffle that depends on
// seed and i. What belongs to places stays.
func Order(r *Rounds, i int, seed uint64) *Rounds {
	if i == 0 {
		return r
	}
	if r.under != nil {
		return Head(r.again(Order(r.under, i, seed)), r.n)
	}
	return r.Pick(random.New(seed, "order "+strconv.Itoa(i)).Shuffle(r.n))
}

// Pick returns so many of the rounds, in the order given.
func (r *Rounds) Pick(rounds []int32) *Rounds {
	out := *r
	if r.rows != nil || r.from > 0 {
		rounds = slices.Clone(rounds)
		for i, t := range rounds {
			rounds[i] = int32(r.Row(int(t)))
		}
	}
	out.rows, out.n = rounds, len(rounds)
	return &out
}

// Head returns the first n rounds; all of them if n ≤ 0 or there are fewer. No class of functions and no
// delays are meant for a part.
func Head(r *Rounds, n int) *Rounds {
	if n <= 0 || n >= r.n {
		return r
	}
	out := *r
	out.n, out.Class, out.Delays = n, nil, ""
	return &out
}

// Tail returns the rounds without the first n.
func Tail(r *Rounds, n int) *Rounds {
	n = min(n, r.n)
	out := *r
	out.from, out.n, out.Facts = r.from+n, r.n-n, world.Facts{}
	if r.rows != nil {
		out.rows = r.rows[n:]
	}
	return &out
}

// For returns the rounds as a model needs them: with the features of actions in each context if its oracle looks at
// them, and with the outcomes that it names. Where every round has the same actions they are else left out.
func (r *Rounds) For(m *model.Model) *Rounds {
	r = r.naming(m)
	if !LooksAtActions(m) {
		return r
	}
	return r.WithFeatures()
}

func (r *Rounds) WithFeatures() *Rounds {
	arms := r.table != nil && r.table.Arms && r.Intake.Featured
	if !arms && (r.Log == nil || r.Log.Items == nil) {
		return r
	}
	out := *r
	out.Featured = true
	return &out
}

// LooksAtActions reports whether the oracle of a model may look at features of actions: models that
// agree in it share [Rounds].
func LooksAtActions(m *model.Model) bool {
	return slices.Contains([]string{model.Shared, model.Hybrid, model.Hedge}, m.Oracle.Kind)
}

// Reference returns the mean expected loss of the uniform policy and of the best one, which plays
// argmin_a f⋆(x,a) in every round; known is false where the truth is not known.
func reference(r *Rounds) (uniform, best float64, known bool) {
	if !r.Known {
		return 0, 0, false
	}
	f := make([]float64, len(r.Actions))
	for t := range r.n {
		r.Truth(f, t)
		sum, low := 0.0, f[0]
		for _, v := range f {
			sum += v
			low = min(low, v)
		}
		uniform += sum / float64(len(f))
		best += low
	}
	n := float64(max(r.n, 1))
	return uniform / n, best / n, true
}

// bestPolicy returns the loss of the best of the policies over all rounds.
func bestPolicy(r *Rounds) float64 {
	best := math.Inf(1)
	for i := range r.Policies.Policies {
		sum := 0.0
		for t := range r.n {
			sum += r.Loss(t, r.Advice(i, r.Row(t)))
		}
		best = min(best, sum)
	}
	return best
}

// Regret returns Σ_a p(a)·f⋆(a) − min f⋆ of one round.
func lawRegret(p, truth []float64) float64 {
	sum, low := 0.0, truth[0]
	for a, v := range truth {
		sum += float64(p[a] * v)
		low = min(low, v)
	}
	return sum - low
}

// Timed reports whether the data says when decisions were made; then a window may be a time.
func (r *Rounds) Timed() bool { return r.Log != nil && r.Log.Decided != nil }

// HasPropensities reports whether the data says with which probabilities the recorded actions were played.
func (r *Rounds) HasPropensities() bool { return r.Log != nil && r.Log.Props != nil }

// HasBaseline reports whether a row says what a baseline would have played.
func (r *Rounds) HasBaseline() bool { return r.Log != nil && r.Log.Baseline != nil }

// RecordsDelays reports whether the data says when outcomes came.
func (r *Rounds) RecordsDelays() bool {
	if r.named == nil {
		return r.Log != nil && r.Log.Came != nil
	}
	return slices.ContainsFunc(r.named.of, func(o *dataset.Outcome) bool { return o.Came != nil })
}

// ActionsBringFeatures reports whether actions of the data have features.
func (r *Rounds) ActionsBringFeatures() bool {
	return r.table != nil && r.table.Arms && r.Intake.Featured ||
		r.Log != nil && (r.Log.Items != nil || r.Intake != nil && r.Intake.Featured)
}

// DelayOptions returns what the meaning of delays depends on for these rounds.
func (r *Rounds) DelayOptions(seed uint64) delay.Options {
	o := delay.Options{Seed: seed, Unknown: !r.Known}
	o.Decided, o.Came = r.Times()
	if r.named == nil {
		return o
	}
	o.Named = map[string][]int64{}
	for k := range r.named.rules {
		name := r.named.rules[k].Name
		o.Outcomes = append(o.Outcomes, name)
		if came := r.named.of[k].Came; came != nil {
			o.Named[name] = came[r.from : r.from+r.n]
			o.Decided = r.Log.Decided[r.from : r.from+r.n]
		}
	}
	return o
}

// rewards returns the range of the rewards of a log, or of a formula; nil if there is no log or it has losses.
func (r *Rounds) rewards() *words.Rewards {
	if r.named != nil {
		lo, hi := r.named.worth.Range()
		return &words.Rewards{Min: lo, Max: hi}
	}
	if r.Log == nil || r.Log.Kind != codec.Reward {
		return nil
	}
	return &words.Rewards{Min: r.Log.Scale.Min, Max: r.Log.Scale.Max}
}

// Times returns the log times of decisions and outcomes, nil if not both are known. They stay where they are: a
// shuffled order meets the very arrivals of the file with other contents.
func (r *Rounds) Times() (decided, came []int64) {
	if r.Log == nil || r.Log.Came == nil {
		return nil, nil
	}
	to := r.from + r.n
	return r.Log.Decided[r.from:to], r.Log.Came[r.from:to]
}

// Time returns the log time of decision t.
func (r *Rounds) Time(t int) int64 { return r.Log.Decided[r.from+t] }

// drop lets the system take the memory of rounds that were read.
func (r *Rounds) drop() {
	if r.table != nil {
		r.table.Drop(r.rows != nil)
	}
}

// Reader returns what makes contexts and ids for one run, in memory that it uses again.
func (r *Rounds) Reader() *Reader { return &Reader{Rounds: r} }

// Reader makes contexts as bytes, with the ids under which they are injected: those of a log,
// else "r1", "r2", …. Where every round has the same actions they are left out, and the model lists
// them; else, as in logs of events, each context brings its own. It is not safe for concurrent use.
type Reader struct {
	*Rounds
	name []byte
	of   int // the round whose id name is, from 1
	raw  []byte
	ctx  codec.Context
	at   int // the round of a labelled CSV whose features ctx has, from 1

	actions []codec.Action // room for those of ctx
}

// ID returns the id of round t, valid until the next call of ID or Bytes.
func (r *Reader) ID(t int) string {
	if r.Log != nil && r.Log.HasIDs() {
		return r.Log.ID(r.Row(t))
	}
	if r.of != t+1 {
		r.of = t + 1
		r.name = strconv.AppendInt(append(r.name[:0], 'r'), int64(r.of), 10)
	}
	return unsafe.String(unsafe.SliceData(r.name), len(r.name))
}

// Bytes returns the context of round t, valid until the next call.
func (r *Reader) Bytes(t int) []byte {
	if r.Complete == nil && r.Log != nil && r.Log.Events() {
		return r.Log.Bytes(r.Row(t))
	}
	r.raw = codec.AppendContext(r.raw[:0], r.given(t))
	return r.raw
}

// given returns the context of round t itself, valid until the next call of given or bytes, where it
// is not a log's that holds them as bytes.
func (r *Reader) given(t int) *codec.Context {
	c := &r.ctx
	if r.table != nil && r.table.Labelled && !r.table.Arms {
		c.ID = r.ID(t)
		if r.at != t+1 {
			r.at = t + 1
			c.Features = r.table.Again(c.Features, r.Row(t))
		}
		return c
	}
	c.Actions = r.actions[:0]
	r.Context(c, t)
	r.actions = c.Actions
	c.ID = r.ID(t)
	if r.Complete != nil {
		r.Complete(c, t)
	} else if !r.Featured {
		c.Actions = nil
	}
	return c
}
