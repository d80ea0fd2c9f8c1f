package replay

import (
	"math"

	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// BanditLog is a log of decisions that were made and of what came of them: of a round
// only the outcome of the recorded action is known. A learner meets it where it draws
// that action; what it loses by the others is not known, so that without the propensities
// of what was decided its mean loss over the rounds that it met is no unbiased estimate
// of anything. Rows are in the order of decisions; actions in byte order, by number, or
// as a model lists them. Of events ([ReadEvents]) rounds may differ in their actions, which
// bring features. What is kept of every row lies in temporary files once it is more than a
// MiB a column.
type BanditLog struct {
	name    string
	actions []string
	kind    codec.OutcomeKind // [codec.Loss] or [codec.Reward]
	scale   loop.Range        // of the values

	action  []int32           // per row: recorded
	value   []float64         // as recorded; NaN: no outcome
	decided []int64           // log times; nil: the log has none
	came    []int64           // log times of outcomes; nil: the log has none. Only where there is an outcome
	ids     *texts            // nil: the log has none
	props   []float64         // propensities of the recorded actions; nil: the log has none
	items   [][]codec.Feature // per action; nil: actions have no features
	columns []logColumn
	cells   []cell // of features, row by row
	long    []byte // texts of cells that are not among the values of their columns

	texts    bool // some columns are not of numbers
	labelled bool // action is the label: the loss of every action is known, 0 of the label and 1 of the others
	d        int  // expanded columns, the constant included

	rows    *eventRows // contexts that bring their own actions; nil: cells
	weights []float64  // events that a row stands for, at least 1; nil: 1 each
	// baseline is what a baseline would have played, an index into the actions of the row's
	// context; -1: the row does not say; nil: none does.
	baseline []int32
	intake   *Intake // nil: not known

	files *rowFiles // in which rows lie; nil: none

	accept   float64 // of replay, see [Replay]; 0: 1
	rejected []bool  // rows that replay does not accept; nil: none
}

type logColumn struct {
	name   string
	number bool
	values []string // of a column of texts, that occur: the first so many
}

// mostValues is how many texts of a column are told apart: others are kept a row each, and are no columns
// of a model.
const mostValues = mostColumns

var _ Environment = (*BanditLog)(nil)

// Name implements [Environment].
func (b *BanditLog) Name() string { return b.name }

// Len implements [Environment].
func (b *BanditLog) Len() int { return len(b.action) }

// Actions implements [Environment]: all that occur; which of them a round may play says
// [BanditLog.Eligible].
func (b *BanditLog) Actions() []string { return b.actions }

// Eligible appends the actions of row t to dst, as indices into Actions, in the order of
// its context: that of a decision's propensities.
func (b *BanditLog) Eligible(dst []int32, t int) []int32 {
	if b.rows != nil && b.rows.slots != nil {
		var c codec.Context
		b.rows.parse(&c, t)
		return b.indices(dst, &c)
	}
	return b.indices(dst, nil)
}

// indices does so for a row with that context, if it has one of its own.
func (b *BanditLog) indices(dst []int32, c *codec.Context) []int32 {
	if b.rows != nil && b.rows.slots != nil && c.Actions != nil {
		for i := range c.Actions {
			dst = append(dst, b.rows.index[c.Actions[i].Name])
		}
		return dst
	}
	for a := range b.actions {
		dst = append(dst, int32(a))
	}
	return dst
}

// Law appends the propensities of all actions of row t to dst, in the order of Eligible;
// nothing where the log does not hold them.
func (b *BanditLog) Law(dst []float64, t int) []float64 {
	if b.rows == nil {
		return dst
	}
	return b.rows.law(dst, t)
}

// Columns implements [Environment]: a column a number, one a text that occurs, and the
// constant.
func (b *BanditLog) Columns() int { return b.d }

// Context implements [Environment].
func (b *BanditLog) Context(dst *codec.Context, t int) {
	if b.rows != nil {
		b.rows.parse(dst, t)
		if dst.ID = ""; dst.Actions == nil {
			dst.Actions = appendActions(dst.Actions, b.actions)
		}
		return
	}
	*dst = codec.Context{Features: b.features(dst.Features[:0], t), Actions: appendActions(dst.Actions[:0], b.actions)}
	for a := range b.items {
		dst.Actions[a].Features = b.items[a]
	}
}

// features appends the features of a row of cells to dst.
func (b *BanditLog) features(dst []codec.Feature, t int) []codec.Feature {
	for i, v := range b.cells[t*len(b.columns) : (t+1)*len(b.columns)] {
		switch c := &b.columns[i]; {
		case v == absent:
		case c.number:
			dst = append(dst, codec.Feature{Name: c.name, Kind: codec.Number, Value: v.number()})
		default:
			dst = append(dst, codec.Feature{Name: c.name, Kind: codec.Text, Text: v.text(c.values, b.long)})
		}
	}
	return dst
}

// Truth implements [Environment]: it is known where rows have labels.
func (b *BanditLog) Truth(dst []float64, t int) bool {
	if b.labelled {
		for a := range dst {
			dst[a] = 1
		}
		dst[b.action[t]] = 0
	}
	return b.labelled
}

// slot returns where the recorded action of row t stands among those of its context.
func (b *BanditLog) slot(t int) int {
	if b.rows != nil && b.rows.slots != nil {
		return int(b.rows.slots[t])
	}
	return int(b.action[t])
}

// Loss implements [Environment]: that of the recorded action, on the scale [0,1]; NaN
// for the others, and where no outcome came. a is an index into the actions of the row's
// context.
func (b *BanditLog) Loss(t, a int) float64 {
	if b.labelled {
		if int(b.action[t]) == a {
			return 0
		}
		return 1
	}
	if a != b.slot(t) || math.IsNaN(b.value[t]) {
		return math.NaN()
	}
	x := min(max(b.value[t], b.scale.Min), b.scale.Max)
	if b.kind == codec.Reward {
		return (b.scale.Max - x) / (b.scale.Max - b.scale.Min)
	}
	return (x - b.scale.Min) / (b.scale.Max - b.scale.Min)
}

// logView is a bandit log behind row orders and heads: what was recorded goes with the
// row, times stay where they are. So a shuffled order meets the very arrivals of the
// file with other contents.
type logView struct {
	log  *BanditLog
	rows []int32 // nil: the file's
	n    int
}

// logOf returns the bandit log that env shows, nil if it shows none, or one that knows all losses.
func logOf(env Environment) *logView {
	switch e := env.(type) {
	case *BanditLog:
		if e.labelled {
			return nil
		}
		return &logView{log: e, n: e.Len()}
	case *head:
		if v := logOf(e.Environment); v != nil {
			v.n = e.n
			return v
		}
	case *ordered:
		if v := logOf(e.Environment); v != nil {
			if v.rows == nil {
				v.rows = e.rows
				return v
			}
			rows := make([]int32, len(e.rows))
			for t, r := range e.rows {
				rows[t] = int32(v.row(int(r)))
			}
			v.rows = rows
			return v
		}
	}
	return nil
}

// rewardsOf returns the range of the rewards of a log, nil if there is no log or it has losses.
func rewardsOf(v *logView) *words.Rewards {
	if v == nil || v.log.kind != codec.Reward {
		return nil
	}
	return &words.Rewards{Min: v.log.scale.Min, Max: v.log.scale.Max}
}

func (v *logView) row(t int) int {
	if v.rows == nil {
		return t
	}
	return int(v.rows[t])
}

// action returns the recorded action of round t as an index into those of the log.
func (v *logView) action(t int) int { return int(v.log.action[v.row(t)]) }

// slot returns it as an index into those of the round's context.
func (v *logView) slot(t int) int { return v.log.slot(v.row(t)) }

// eligible appends the actions of round t, as indices into those of the log.
func (v *logView) eligible(dst []int32, t int) []int32 { return v.log.Eligible(dst, v.row(t)) }

// stands returns how many events round t stands for.
func (v *logView) stands(t int) float64 {
	if v.log.weights == nil {
		return 1
	}
	return v.log.weights[v.row(t)]
}

// feature returns a feature of the context of round t.
func (v *logView) feature(t int, name string) (f codec.Feature, ok bool) {
	var c codec.Context
	v.log.Context(&c, v.row(t))
	for _, f := range c.Features {
		if f.Name == name {
			return f, true
		}
	}
	return f, false
}

// observed reports whether an outcome of the recorded action came.
func (v *logView) observed(t int) bool { return !math.IsNaN(v.log.value[v.row(t)]) }

// outcome returns the recorded outcome on the scale of the log.
func (v *logView) outcome(t int) (codec.OutcomeKind, float64) {
	return v.log.kind, v.log.value[v.row(t)]
}

func (v *logView) timed() bool { return v.log.decided != nil }

// time returns the log time of decision t.
func (v *logView) time(t int) int64 { return v.log.decided[t] }

// propensity returns that of the recorded action; only of a log that has them.
func (v *logView) propensity(t int) float64 { return v.log.props[v.row(t)] }

// id returns the id of round t of a log that has ids.
func (v *logView) id(t int) string {
	if v.log.rows != nil {
		return v.log.rows.id(v.row(t))
	}
	return v.log.ids.at(v.row(t))
}

// IsLog reports whether env shows a log that knows the outcome of the recorded action only.
func IsLog(env Environment) bool { return logOf(env) != nil }

// Timed reports whether env says when decisions were made; then a window may be a time.
func Timed(env Environment) bool {
	v := logOf(env)
	return v != nil && v.timed()
}

// HasPropensities reports whether env says with which probabilities the recorded actions
// were played.
func HasPropensities(env Environment) bool {
	v := logOf(env)
	return v != nil && v.log.props != nil
}

// RecordsDelays reports whether env says when outcomes came.
func RecordsDelays(env Environment) bool {
	v := logOf(env)
	return v != nil && v.log.came != nil
}
