// Package dataset makes a table of a log: it joins late outcomes with their events, sorts the rows and accounts
// for every record, and keeps the table at rest in temporary files.
package dataset

import (
	"math"
	"slices"
	"strconv"

	"hindsight/internal/loop"
	"hindsight/internal/random"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
)

// Table is a log of decisions that were made and of what came of them: of a round only the outcome of the recorded
// action is known. A learner meets it where it draws that action; what it loses by the others is not known, so that
// without the propensities of what was decided its mean loss over the rounds that it met is no unbiased estimate of
// anything. Rows are in the order of decisions; actions in byte order, by number, or as a model lists them. Of events
// ([Read]) rounds may differ in their actions, which bring features. What is kept of every row lies in temporary files
// once it is more than a MiB a column.
type Table struct {
	Name    string
	Actions []string
	Kind    codec.OutcomeKind // [codec.Loss] or [codec.Reward]
	Scale   loop.Range        // of the values

	Action  []int32           // per row: recorded
	Value   []float64         // as recorded; NaN: no outcome
	Decided []int64           // log times; nil: the log has none
	Came    []int64           // log times of outcomes; nil: the log has none. Only where there is an outcome
	ids     *spill.Texts      // nil: the log has none
	Props   []float64         // propensities of the recorded actions; nil: the log has none
	Items   [][]codec.Feature // per action; nil: actions have no features
	columns []logColumn
	cells   []cell // of features, row by row
	long    []byte // texts of cells that are not among the values of their columns

	Outcomes []Outcome // that the log names, sorted by name
	Arms     bool      // Outcomes are of every action, and so is what they are worth

	texts bool                   // some columns are not of numbers
	words func(name string) bool // texts of which the words count, of a log of events; nil: none
	// Labelled says that the loss of every action is known: 0 of Action, which is the label, and 1 of the others, or
	// what Arms are worth.
	Labelled bool
	Columns  int // expanded columns, the constant included

	rows    *eventRows // contexts that bring their own actions; nil: cells
	Weights []float64  // events that a row stands for, at least 1; nil: 1 each
	// baseline is what a baseline would have played, an index into the actions of the row's
	// context; -1: the row does not say; nil: none does.
	Baseline []int32
	Unit     []int32 // per row: which of Units it is of; -1: it names none; nil: no row does
	Units    int
	Intake   *Intake // nil: not known

	files *spill.Files // in which rows lie; nil: none

	Accept   float64 // of replay, see [Replay]; 0: 1
	rejected []bool  // rows that replay does not accept; nil: none
}

type logColumn struct {
	name   string
	number bool
	truth  bool
	ngrams bool     // texts whose words count
	values []string // of a column of texts, that occur: the first so many
}

// mostValues is how many texts of a column are told apart: others are kept a row each, and are no columns of a model.
const mostValues = MostColumns

// Eligible appends the actions of row t to dst, as indices into all, in the order of
// its context: that of a decision's propensities.
func (b *Table) Eligible(dst []int32, t int) []int32 {
	if b.rows != nil && b.rows.slots != nil {
		var c codec.Context
		b.rows.parse(&c, t)
		return b.Indices(dst, &c)
	}
	return b.Indices(dst, nil)
}

// Indices does so for a row with that context, if it has one of its own.
func (b *Table) Indices(dst []int32, c *codec.Context) []int32 {
	if b.rows != nil && b.rows.slots != nil && c.Actions != nil {
		for i := range c.Actions {
			dst = append(dst, b.rows.index[c.Actions[i].Name])
		}
		return dst
	}
	for a := range b.Actions {
		dst = append(dst, int32(a))
	}
	return dst
}

// Context sets dst to the context of row t, without an id, reusing its memory.
func (b *Table) Context(dst *codec.Context, t int) {
	if b.rows != nil {
		b.rows.parse(dst, t)
		if dst.ID = ""; dst.Actions == nil {
			dst.Actions = appendActions(dst.Actions, b.Actions)
		}
		return
	}
	*dst = codec.Context{Features: b.features(dst.Features[:0], t), Actions: appendActions(dst.Actions[:0], b.Actions)}
	for a := range b.Items {
		dst.Actions[a].Features = b.Items[a]
	}
}

// features appends the features of a row of cells to dst.
func (b *Table) features(dst []codec.Feature, t int) []codec.Feature {
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

// Truth sets dst to the losses of all actions in row t, which has a label.
func (b *Table) Truth(dst []float64, t int) {
	for a := range dst {
		dst[a] = 1
	}
	dst[b.Action[t]] = 0
}

// Slot returns where the recorded action of row t stands among those of its context.
func (b *Table) Slot(t int) int {
	if b.rows != nil && b.rows.slots != nil {
		return int(b.rows.slots[t])
	}
	return int(b.Action[t])
}

// Loss returns that of the recorded action in row t, on the scale [0,1]; NaN for the others, and where no outcome came.
// a is an index into the actions of the row's context.
func (b *Table) Loss(t, a int) float64 {
	if b.Labelled {
		if int(b.Action[t]) == a {
			return 0
		}
		return 1
	}
	if a != b.Slot(t) || math.IsNaN(b.Value[t]) {
		return math.NaN()
	}
	x := min(max(b.Value[t], b.Scale.Min), b.Scale.Max)
	if b.Kind == codec.Reward {
		return (b.Scale.Max - x) / (b.Scale.Max - b.Scale.Min)
	}
	return (x - b.Scale.Min) / (b.Scale.Max - b.Scale.Min)
}

// Again is features into what it returned for another row, or nil.
func (b *Table) Again(dst []codec.Feature, row int) []codec.Feature {
	k := len(b.columns)
	if len(dst) != k || b.texts {
		return b.features(dst[:0], row)
	}
	for i, v := range b.cells[row*k : (row+1)*k] { // there are all columns, and all are numbers
		if v == absent {
			return b.features(dst[:0], row)
		}
		dst[i].Value = v.number()
	}
	return dst
}

// Fits reports whether all rounds of a labelled CSV surely fit into records: names, texts,
// actions and room for what is written with each.
func (b *Table) Fits() bool {
	if b.Arms {
		return false
	}
	const room = 64
	size := 1 << 14
	for i := range b.columns {
		if b.columns[i].ngrams {
			return false
		}
		text := 0
		for _, v := range b.columns[i].values {
			text = max(text, len(v))
		}
		size += len(b.columns[i].name) + text + room
	}
	for _, label := range b.Actions {
		size += 3*len(label) + room
	}
	return size <= codec.MaxRecordBytes
}

// Stands returns how many events a row stands for.
func (b *Table) Stands(row int) float64 {
	if b.Weights == nil {
		return 1
	}
	return b.Weights[row]
}

// Features returns the names of the columns of features of a log of one schema, else nil.
func (b *Table) Features() []string {
	if b.rows != nil {
		return nil
	}
	names := []string{}
	for _, c := range b.columns {
		names = append(names, c.name)
	}
	return names
}

// Words reports whether a feature is a text of which the words count.
func (b *Table) Words(feature string) bool {
	return b.words != nil && b.words(feature) ||
		slices.ContainsFunc(b.columns, func(c logColumn) bool { return c.name == feature && c.ngrams })
}

// Text returns a feature of a row as text, "" where it has none.
func (b *Table) Text(row int, feature string) string {
	if b.rows == nil {
		i := slices.IndexFunc(b.columns, func(c logColumn) bool { return c.name == feature })
		switch v := b.cells[row*len(b.columns)+i]; {
		case v == absent:
			return ""
		case b.columns[i].number:
			return strconv.FormatFloat(v.number(), 'g', -1, 64)
		default:
			return v.text(b.columns[i].values, b.long)
		}
	}
	var c codec.Context
	b.rows.parse(&c, row)
	for _, f := range c.Features {
		switch {
		case f.Name != feature:
		case f.Kind == codec.Text:
			return f.Text
		default:
			return strconv.FormatFloat(f.Value, 'g', -1, 64)
		}
	}
	return ""
}

// Events reports whether rows bring their own contexts, as logs of events do.
func (b *Table) Events() bool { return b.rows != nil }

// Sets reports whether rows differ in the actions that they may play.
func (b *Table) Sets() bool { return b.rows != nil && b.rows.slots != nil }

// Largest returns how many actions a row has at most, of a log of events.
func (b *Table) Largest() int { return b.rows.largest }

// Bytes returns the context of a row of a log of events.
func (b *Table) Bytes(row int) []byte { return b.rows.context(row) }

// Pass is called with each row of a pass over the log: the system may take the memory of rows.
func (b *Table) Pass(t int) { b.files.Pass(t) }

// Drop lets the system take the memory of all rows; of a labelled CSV whose rows are in any order not
// before it is large, since its rounds are so quick that reading a row again would take a fifth.
func (b *Table) Drop(shuffled bool) {
	if b.Labelled && shuffled {
		b.files.DropBeyond(128 << 20)
	} else {
		b.files.Drop()
	}
}

// Observed reports whether an outcome of the recorded action came.
func (b *Table) Observed(row int) bool { return !math.IsNaN(b.Value[row]) }

// HasIDs reports whether the log has ids.
func (b *Table) HasIDs() bool { return b.rows != nil || b.ids != nil }

// ID returns that of a row of a log that has ids.
func (b *Table) ID(row int) string {
	if b.rows != nil {
		return b.rows.id(row)
	}
	return b.ids.At(row)
}

// Played reports whether replay takes action a for that of a row.
func (b *Table) Played(row, a int) bool {
	return a == b.Slot(row) && (b.rejected == nil || !b.rejected[row])
}

// Kept returns the probability that the action of a row was played and the event kept.
func (b *Table) Kept(row int) float64 { return b.Props[row] / b.Stands(row) }

// Weight returns that of an accepted row; of a log without propensities the events that it stands for.
func (b *Table) Weight(row int) float64 {
	if b.Props == nil {
		return b.Stands(row)
	}
	p := b.Kept(row)
	if b.Accept > 0 {
		p = min(b.Accept, p)
	}
	return 1 / p
}

// Accepting returns the log such that replay accepts rows by c, as draws have it; 0: by the smallest
// probability with which an action was played and the event kept.
func (b *Table) Accepting(c float64, draws random.Stream) (*Table, error) {
	if c == 0 {
		c = 1
		for t := range b.Props {
			b.files.Pass(t)
			c = min(c, b.Kept(t))
		}
	}
	rejected := spill.Column[bool]{In: b.files}
	for t := range b.Props {
		b.files.Pass(t)
		rejected.Add(draws.Uniform(uint64(t), 0)*b.Kept(t) >= c)
	}
	out := *b
	out.Accept, out.rejected = c, rejected.All
	return &out, b.files.Err
}

func appendActions(dst []codec.Action, names []string) []codec.Action {
	dst = slices.Grow(dst, len(names))
	for _, name := range names {
		dst = append(dst, codec.Action{Name: name})
	}
	return dst
}
