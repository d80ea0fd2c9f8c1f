package replay

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// LogOptions say how a bandit log is read.
type LogOptions struct {
	Mapping Mapping
	Range   loop.Range // of losses or rewards; zero: [0,1]
	Actions []string   // that may be; nil: those that occur
	// Ledger takes the account of rows; nil, or a strict one, stops at the first malformed
	// row.
	Ledger *logs.Ledger

	Dedup int // ids remembered to find repeats; 0: [logs.DefaultDedup]

	files    *rowFiles // nil: new ones
	numbered bool      // actions are the numbers 0, 1, …, in that order
	backward bool      // a time before that of the row above stands for that one
}

type logParser struct {
	*csvFile
	o    LogOptions
	log  *BanditLog
	rows int

	names []string // of actions, by index
	known int      // actions of the rows so far
	again bool     // the row is a repeat of one before

	places   map[string][]int // of the header: where a name is
	features map[string]int   // of those, the ones that are features

	width                                            int
	time, outcomeTime, action, value, id, propensity int // columns; -1: none
	timeName, outcomeName, valueName                 string
	actions                                          map[string]int32
	ids                                              *logs.Recent[int32] // → line
	key                                              []byte
	values                                           []map[string]int32 // of columns: text → index
	kept                                             tableColumns
	rowCells                                         []cell
	numbers, numeric                                 []bool // of columns: all cells so far are numbers; they are said to be
}

// tableColumns are what is kept of rows while a table is read.
type tableColumns struct {
	action        column[int32]
	value, props  column[float64]
	decided, came column[int64]
	ids           texts
	cells         column[cell]
	long          column[byte]
}

// loadedValues is how many texts of a column are told apart while it is read, mostValues
// how many at all: others are kept a row each, and are no columns of a model.
const (
	loadedValues = 1 << 12
	mostValues   = mostColumns
)

func (p *logParser) header() error {
	row, err := p.head()
	if errors.Is(err, io.EOF) {
		return p.errorf(1, "", "the file is empty; its first line names the columns")
	}
	if err != nil {
		return err
	}
	return p.columns(row)
}

// columns finds what the mapping names among the columns of the header.
func (p *logParser) columns(names []string) error {
	p.width, p.places, p.features = len(names), make(map[string][]int, len(names)), map[string]int{}
	for i, name := range names {
		p.places[name] = append(p.places[name], i)
	}
	m := &p.o.Mapping
	var err error
	p.timeName, p.outcomeName, p.valueName = m.Time, m.OutcomeTime, m.Loss+m.Reward
	for _, c := range []struct {
		name string
		into *int
	}{{m.Time, &p.time}, {m.OutcomeTime, &p.outcomeTime}, {m.Action, &p.action}, {p.valueName, &p.value}, {m.ID, &p.id}, {m.Propensity, &p.propensity}} {
		if *c.into, err = p.column(names, c.name); err != nil {
			return err
		}
	}
	return p.findFeatures(names)
}

// column finds a column by its name; -1 for "".
func (p *logParser) column(names []string, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	at := p.places[name]
	if len(at) == 0 {
		return 0, p.errorf(p.line(0), strconv.Quote(name), "there is no such column; there are %s", strings.Join(names, ", "))
	}
	if len(at) > 1 {
		return 0, p.errorf(p.line(0), name, "the column is there twice")
	}
	return at[0], nil
}

// findFeatures finds the columns of features.
func (p *logParser) findFeatures(names []string) error {
	for _, f := range p.o.Mapping.Features {
		var c logColumn
		if c.name, c.text = strings.CutSuffix(f, ":text"); !c.text {
			c.name, c.number = strings.CutSuffix(f, ":number")
		}
		var err error
		if c.at, err = p.column(names, c.name); err != nil {
			return err
		}
		if err := p.feature(c); err != nil {
			return err
		}
	}
	if prefix := p.o.Mapping.FeaturePrefix; prefix != "" {
		before := len(p.log.columns)
		for i, name := range names {
			if strings.HasPrefix(name, prefix) && !p.used(i, name) {
				if err := p.feature(logColumn{name: name, at: i}); err != nil {
					return err
				}
			}
		}
		if len(p.log.columns) == before {
			return p.errorf(p.line(0), "", "no column begins with %q; there are %s", prefix, strings.Join(names, ", "))
		}
	}
	if n := len(p.log.columns); n > codec.MaxFeatures {
		return p.errorf(p.line(0), "", "%d features, at most %d are allowed", n, codec.MaxFeatures)
	}
	return nil
}

// used reports whether the column i of a name has a meaning already.
func (p *logParser) used(i int, name string) bool {
	at, ok := p.features[name]
	return ok && at == i || slices.Contains([]int{p.time, p.outcomeTime, p.action, p.value, p.id, p.propensity}, i)
}

func (p *logParser) feature(c logColumn) error {
	_, twice := p.features[c.name]
	switch {
	case c.at == p.value || c.at == p.outcomeTime:
		return p.errorf(p.line(0), c.name, "it is what is known after the decision only: it cannot be a feature of it")
	case c.at == p.action:
		return p.errorf(p.line(0), c.name, "it is the action: it cannot be a feature of the decision")
	case c.at == p.propensity:
		return p.errorf(p.line(0), c.name, "it is the propensity of the action: it cannot be a feature of the decision")
	case twice:
		return p.errorf(p.line(0), c.name, "the feature is there twice")
	case !isText(c.name, codec.MaxNameBytes) || c.name == "":
		return p.errorf(p.line(0), strconv.Quote(c.name), "a feature's name is UTF-8 of 1 to %d bytes without control characters", codec.MaxNameBytes)
	}
	p.features[c.name] = c.at
	p.log.columns = append(p.log.columns, c)
	p.values = append(p.values, map[string]int32{})
	p.rowCells, p.numbers, p.numeric = append(p.rowCells, absent), append(p.numbers, true), append(p.numeric, c.number)
	return nil
}

func (p *logParser) row(row []string) error {
	p.again = false
	if len(row) != p.width {
		return p.errorf(p.line(0), "", "%d cells, but the header has %d columns", len(row), p.width)
	}
	for _, part := range []func([]string) error{p.rowID, p.rowAction, p.rowPropensity, p.rowValue, p.rowTimes, p.rowFeatures} {
		if err := part(row); err != nil {
			return err
		}
	}
	return p.log.files.err
}

func (p *logParser) rowID(row []string) error {
	if p.id < 0 {
		return nil
	}
	id, name := row[p.id], p.o.Mapping.ID
	switch before, ok := p.ids.Get(0, p.idKey(id)); {
	case id == "":
		return p.errorf(p.line(p.id), name, "the id is missing")
	case !isText(id, codec.MaxIDBytes):
		return p.errorf(p.line(p.id), name, "an id is UTF-8 of at most %d bytes without control characters", codec.MaxIDBytes)
	case ok:
		p.again = true
		return p.errorf(p.line(p.id), name, "the id %q is that of line %d, too", id, before)
	}
	p.kept.ids.add(id)
	return nil
}

func (p *logParser) rowAction(row []string) error {
	if p.action < 0 {
		return nil
	}
	name := row[p.action]
	a, ok := p.actions[name]
	switch {
	case ok:
	case name == "":
		return p.errorf(p.line(p.action), p.o.Mapping.Action, "the action is missing")
	case !isText(name, codec.MaxNameBytes):
		return p.errorf(p.line(p.action), p.o.Mapping.Action, "an action is UTF-8 of at most %d bytes without control characters", codec.MaxNameBytes)
	case p.o.numbered && !isItem(name, len(p.o.Actions)):
		return p.errorf(p.line(p.action), p.o.Mapping.Action, "%s", itemHint(name, len(p.o.Actions)))
	case p.o.Actions != nil && !slices.Contains(p.o.Actions, name):
		return p.errorAll(p.line(p.action), p.o.Mapping.Action, "the model does not list the action %q", name)
	case len(p.actions) == codec.MaxActions:
		return p.errorf(p.line(p.action), p.o.Mapping.Action, "more than %d different actions", codec.MaxActions)
	default:
		a = int32(len(p.actions))
		p.names = append(p.names, strings.Clone(name))
		p.actions[p.names[a]] = a
	}
	p.kept.action.add(a)
	return nil
}

func (p *logParser) rowValue(row []string) error {
	if p.value < 0 {
		return nil
	}
	v := math.NaN()
	if cell := strings.TrimSpace(row[p.value]); cell != "" {
		var err error
		v, err = strconv.ParseFloat(cell, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return p.errorf(p.line(p.value), p.valueName, "%q is not a finite number; leave the cell empty where no outcome came", cell)
		}
		if r := p.o.Range; !r.Clip && (v < r.Min || v > r.Max) {
			return p.errorAll(p.line(p.value), p.valueName, "%v is not in [%v, %v]; a model file may give another range, for example %s: {min: 0, max: 100}", v, r.Min, r.Max, p.rangeKey())
		}
	}
	p.kept.value.add(v)
	return nil
}

func (p *logParser) rangeKey() string {
	if p.log.kind == codec.Reward {
		return "reward"
	}
	return "loss"
}

func (p *logParser) rowTimes(row []string) error {
	if p.time < 0 {
		return nil
	}
	at, err := parseTime(row[p.time])
	if err != nil {
		return p.errorf(p.line(p.time), p.timeName, "%v", err)
	}
	if n := len(p.kept.decided.s); n > 0 && at < p.kept.decided.s[n-1] {
		if p.o.backward {
			at = p.kept.decided.s[n-1]
		} else {
			return p.errorAll(p.line(p.time), p.timeName, "%q is before the time of the row above: sort the rows by %s", row[p.time], p.timeName)
		}
	}
	p.kept.decided.add(at)
	if p.outcomeTime < 0 {
		return nil
	}
	observed := p.value < 0 || !math.IsNaN(p.kept.value.s[len(p.kept.value.s)-1])
	came := noTime
	switch cell := strings.TrimSpace(row[p.outcomeTime]); {
	case cell == "" && p.value >= 0 && observed:
		return p.errorf(p.line(p.outcomeTime), p.outcomeName, "the outcome has no time; leave %s empty, too, where none came", p.valueName)
	case cell != "" && !observed:
		return p.errorf(p.line(p.value), p.valueName, "the outcome is missing, but it has a time; leave %s empty, too, where none came", p.outcomeName)
	case cell != "":
		if came, err = parseTime(cell); err != nil {
			return p.errorf(p.line(p.outcomeTime), p.outcomeName, "%v", err)
		}
	}
	p.kept.came.add(came)
	return nil
}

func (p *logParser) rowFeatures(row []string) error {
	for i := range p.log.columns { // before any is kept
		c, text := &p.log.columns[i], row[p.log.columns[i].at]
		v := absent
		switch {
		case text == "":
		case c.number:
			x, ok := parseNumber(text)
			if !ok {
				return p.errorf(p.line(c.at), c.name, "%q is not a finite number; leave the cell empty where there is none, or name the feature %s:text", text, c.name)
			}
			v = numberCell(x)
		default:
			if v = p.knownCell(i, text); v == newText && !isText(text, codec.MaxTextBytes) {
				return p.errorf(p.line(c.at), c.name, "a text is UTF-8 of at most %d bytes without control characters", codec.MaxTextBytes)
			}
		}
		p.rowCells[i] = v
	}
	for i, v := range p.rowCells {
		if v == newText {
			p.rowCells[i] = p.newCell(i, row[p.log.columns[i].at])
		}
	}
	p.kept.cells.add(p.rowCells...)
	return nil
}

// newText stands for a text that is not among the values of its column.
const newText = absent - 1

// knownCell returns the cell of a text of column i, or newText. Among many numbers, which differ
// from row to row, it does not look.
func (p *logParser) knownCell(i int, text string) cell {
	if p.numbers[i] && len(p.log.columns[i].values) == loadedValues {
		return newText
	}
	if v, ok := p.values[i][text]; ok {
		return cell(v)
	}
	return newText
}

// newCell returns the cell of a text that is not known, and keeps it.
func (p *logParser) newCell(i int, text string) cell {
	if p.numbers[i] {
		_, p.numbers[i] = parseNumber(text)
	}
	if len(p.log.columns[i].values) < loadedValues {
		return cell(p.addValue(i, text))
	}
	return addLong(&p.kept.long, text)
}

// addValue adds a text to the values of column i.
func (p *logParser) addValue(i int, text string) int32 {
	c := &p.log.columns[i]
	v := int32(len(c.values))
	text = strings.Clone(text)
	p.values[i][text] = v
	c.values = append(c.values, text)
	return v
}

// parseNumber returns the finite number that a text is.
func parseNumber(text string) (x float64, ok bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// finish sorts the actions, decides which columns are numbers, and counts.
func (p *logParser) finish() {
	b := p.log
	b.actions = p.o.Actions
	if b.actions == nil {
		for name := range p.actions {
			b.actions = append(b.actions, name)
		}
		slices.Sort(b.actions)
		if p.o.numbered {
			b.actions = itemNames(b.actions)
		}
	}
	index := make([]int32, len(p.actions))
	for i, name := range b.actions {
		if a, ok := p.actions[name]; ok {
			index[a] = int32(i)
		}
	}
	k := &p.kept
	for t, a := range k.action.s {
		k.action.s[t] = index[a]
		b.files.pass(t)
	}
	b.d = 1
	for i := range b.columns {
		c := &b.columns[i]
		if c.number = c.number || !c.text && len(c.values) > 0 && p.numbers[i]; c.number {
			b.d++
		}
	}
	p.finishCells()
	b.action, b.value, b.props, b.decided, b.came, b.cells, b.long = k.action.s, k.value.s, k.props.s, k.decided.s, k.came.s, k.cells.s, k.long.s
	if p.id >= 0 {
		b.ids = &k.ids
	}
}

// finishCells makes numbers of the cells of numbers, and finds those of other texts among
// the values of their columns, as many as these may have.
func (p *logParser) finishCells() {
	b, cells, long := p.log, p.kept.cells.s, p.kept.long.s
	width := len(b.columns)
	if width == 0 {
		return
	}
	for t := range len(cells) / width {
		b.files.pass(t)
		for i, v := range cells[t*width : (t+1)*width] {
			c := &b.columns[i]
			switch {
			case v == absent || p.numeric[i]:
			case c.number:
				x, _ := parseNumber(v.text(c.values, long))
				cells[t*width+i] = numberCell(x)
			case v&longText != 0:
				text := v.text(nil, long)
				at, ok := p.values[i][text]
				if !ok && len(c.values) < mostValues {
					at, ok = p.addValue(i, text), true
				}
				if ok {
					cells[t*width+i] = cell(at)
				}
			}
		}
	}
	for i := range b.columns {
		if c := &b.columns[i]; c.number {
			c.values = nil
		} else {
			b.d += len(c.values)
		}
	}
}
