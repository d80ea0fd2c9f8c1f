package dataset

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/recent"
	"hindsight/internal/scan"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
)

// Options say how events become a bandit log.
type Options struct {
	// of losses or rewards; zero: [0,1] if it holds all, else from the least to the largest
	Range   loop.Range
	Reward  *bool                  // what Range is of; nil: whatever the log has
	Actions []string               // that a model lists, the only ones that may be; nil: any
	Long    func(name string) bool // texts whose words count, for the schema of a model that is made for a log of arms
	Heap    int                    // bytes of a column that stay in memory, others are in a file; 0: 1 MiB
	// outcomes that may lie before their event; 0: [recent.DefaultIDs]. How many events an outcome may find says the
	// reader's
	Dedup int
}

// eventRows are rows whose contexts bring their own actions: each as it will be asked, with its id before it.
type eventRows struct {
	data   []byte
	places []rowPlace
	// per row: where the recorded action stands among those of its context; nil: the actions of the log are those of
	// every row, in order
	slots   []int32
	index   map[string]int32
	largest int // most actions of a row
}

// rowPlace says where a row lies: id and context.
type rowPlace struct {
	at      int64
	context int32
	id      uint16
}

func (e *eventRows) id(r int) string {
	p := e.places[r]
	b := e.data[p.at : p.at+int64(p.id)]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (e *eventRows) context(r int) []byte {
	p := e.places[r]
	from := p.at + int64(p.id)
	return e.data[from : from+int64(p.context) : from+int64(p.context)]
}

// parse sets dst to the context of a row.
func (e *eventRows) parse(dst *codec.Context, r int) {
	if err := codec.ParseContext(dst, e.context(r)); err != nil {
		panic(fmt.Sprintf("replay: a context that was written here does not parse: %v", err))
	}
}

// row flags while a log is loaded.
const (
	rowInactive = 1 << iota
	rowWithdrawn
	rowDefaulted
)

// eventLoader makes a bandit log of records.
type eventLoader struct {
	o      Options
	log    *Table
	rows   *eventRows
	in     *Intake
	kept   *eventColumns
	reader *logs.Reader             // knows the rows of ids
	early  *recent.Memory[*outcome] // outcomes before their event
	waits  int64                    // of early, without event
	inSets bool                     // rows differ in their actions
	bare   bool                     // a row does not say its actions
	sets   [2]int                   // fewest and most actions of a row that says them
	buf    []byte
	ctx    codec.Context
	cols   map[string]struct{}
	units  map[string]int32
	schema *logs.Schema // of CSV, whose rows are put into a grid; nil: contexts bring what they have
	grid   *gridLoader

	armCount int // actions of a row of arms
}

// outcome is an observation that waits for its event.
type outcome struct {
	kind   codec.OutcomeKind
	flags  logs.Flags
	value  float64
	at     int64
	action string
	values []codec.TimedValue
}

// Read makes a bandit log of what r reads, and closes r, which should be opened with Inactive, or events that are
// activated later are lost, and Typed. Outcomes find their events whether they lie before or behind them. Rows are in
// the order of time, where every event has one.
func Read(name string, r *logs.Reader, o Options) (b *Table, err error) {
	files := &spill.Files{Most: o.Heap}
	defer func() { err = errors.Join(err, r.Close()) }()
	l := &eventLoader{o: o, in: &Intake{}, rows: &eventRows{index: map[string]int32{}}, reader: r,
		early: recent.New[*outcome](o.Dedup),
		kept:  newEventColumns(files), cols: map[string]struct{}{}, units: map[string]int32{}}
	l.log = &Table{Name: name, rows: l.rows, Intake: l.in, files: files, words: o.Long}
	if l.schema = r.Schema(); l.schema != nil {
		l.begin()
	}
	for _, a := range l.o.Actions {
		l.actionIndex(a)
	}
	err = r.Each(func(rec *logs.Record) error {
		switch {
		case files.Err != nil:
			return files.Err
		case rec.Kind == logs.Outcome:
			return l.outcome(rec)
		}
		return l.event(rec)
	})
	if err != nil {
		return nil, err
	}
	l.in.Account = *r.Account()
	l.in.FirstMalformed = l.in.Errors()
	return l.finish()
}

func (l *eventLoader) actionIndex(name string) int32 {
	a, ok := l.rows.index[name]
	if !ok {
		a = int32(len(l.log.Actions))
		name = strings.Clone(name)
		l.log.Actions = append(l.log.Actions, name)
		l.rows.index[name] = a
	}
	return a
}

// begin takes what the log in CSV says of its rows.
func (l *eventLoader) begin() {
	b, s := l.log, l.schema
	b.Name, b.Items, b.Labelled = filepath.Base(s.File), s.Items, s.Format == logs.Labelled
	if b.Labelled {
		l.o.Range = loop.Range{}
	}
	for _, c := range s.Columns {
		b.columns = append(b.columns, logColumn{name: c.Name, number: c.Type == logs.Number,
			ngrams: c.Type == logs.Ngrams})
	}
	l.grid, l.o.Actions = newGridLoader(b.files, len(b.columns)), s.Actions
	if l.o.Range == (loop.Range{}) {
		l.o.Range = loop.Range{Min: 0, Max: 1}
	}
}

// event adds a row.
func (l *eventLoader) event(r *logs.Record) error {
	if len(r.Arms) > 0 {
		return l.arms(r)
	}
	c := l.kept
	t := len(c.action.All)
	if l.log.Arms {
		return fmt.Errorf("%s:%d: a decision in a log of arms: it must have one of both", r.File, r.Line)
	}
	id := r.ID
	if l.schema != nil {
		r.Actions = nil
	} else if id == "" {
		id = RoundID(t)
	}
	a, slot := l.play(r)
	if n := len(l.o.Actions); n > 0 && len(l.log.Actions) > n {
		return fmt.Errorf("%s:%d: the model does not list the action %q", r.File, r.Line, l.log.Actions[n])
	}
	if l.schema == nil {
		l.place(id, r)
		l.columns(r.Features)
	} else {
		l.grid.add(l.log, r.Features)
		if l.schema.IDs {
			l.grid.ids.Add(id)
		}
	}
	if c.action.Add(a); l.log.Labelled {
		return nil
	}
	c.slots.Add(slot)
	c.props.Add(r.Propensity)
	c.weights.Add(r.Weight)
	if r.Learned {
		l.in.Learned++
	}
	baseline := int32(-1)
	if len(r.Baseline) > 0 {
		baseline = int32(r.Baseline[0])
	}
	sparse(&c.baseline, t, baseline)
	sparse(&c.unit, t, l.unitIndex(r.Unit))
	c.decided.Add(r.Time)
	c.value.Add(math.NaN())
	c.came.Add(scan.NoTime)
	flags := uint8(0)
	if r.Flags&logs.Inactive != 0 {
		flags |= rowInactive
	}
	c.flags.Add(flags)
	if err := l.came(t, r.Outcome, r.Value, r.OutcomeTime, r); err != nil {
		return err
	}
	if _, err := l.values(t, r.Values, r.OutcomeTime); err != nil {
		return err
	}
	if r.Flags&logs.Defaulted != 0 {
		c.flags.All[t] |= rowDefaulted
	}
	if r.ID == "" || l.schema != nil {
		return nil
	}
	if o, ok := l.early.Get(0, []byte(r.ID)); ok && o != nil {
		l.waits--
		l.early.Put(0, []byte(r.ID), nil)
		return l.join(t, o, r)
	}
	return nil
}

// play returns the index of the action of an event, and where it stands among those of the event.
func (l *eventLoader) play(r *logs.Record) (action, slot int32) {
	if r.Actions == nil {
		l.bare = true
		a := l.actionIndex(r.Action)
		return a, a
	}
	for i := range r.Actions {
		l.inSets = l.actionIndex(r.Actions[i].Name) != int32(i) || l.inSets
		l.in.Featured = l.in.Featured || len(r.Actions[i].Features) > 0
	}
	n := len(r.Actions)
	if l.sets[1] == 0 {
		l.sets[0] = n
	}
	l.sets = [2]int{min(l.sets[0], n), max(l.sets[1], n)}
	return l.rows.index[r.Actions[r.Chosen].Name], int32(r.Chosen)
}

// unitIndex returns the number of a unit, -1 where none is named.
func (l *eventLoader) unitIndex(name string) int32 {
	if name == "" {
		return -1
	}
	u, ok := l.units[name]
	if !ok {
		u = int32(len(l.units))
		l.units[strings.Clone(name)] = u
	}
	return u
}

// place keeps the context of an event.
func (l *eventLoader) place(id string, r *logs.Record) {
	l.ctx = codec.Context{ID: id, Features: r.Features, Actions: r.Actions}
	l.buf = append(l.buf[:0], id...)
	l.buf = codec.AppendContext(l.buf, &l.ctx)
	p := rowPlace{at: int64(len(l.kept.data.All)), context: int32(len(l.buf) - len(id)), id: uint16(len(id))}
	l.kept.data.Add(l.buf...)
	l.kept.places.Add(p)
}

// MostColumns bounds how many columns are told apart.
const MostColumns = 1 << 16

// columns counts expanded columns: one a number or a truth, one a text that occurs.
func (l *eventLoader) columns(features []codec.Feature) {
	for i := range features {
		if len(l.cols) == MostColumns {
			return
		}
		f := &features[i]
		l.buf = append(l.buf[:0], f.Name...)
		if f.Kind == codec.Text && len(f.Text) <= codec.MaxTextBytes {
			l.buf = append(append(l.buf, 0), f.Text...)
		}
		if _, ok := l.cols[string(l.buf)]; !ok {
			l.cols[string(l.buf)] = struct{}{}
		}
	}
}

// came notes the outcome of row t; r is the record that says it.
func (l *eventLoader) came(t int, kind codec.OutcomeKind, value float64, at int64, r *logs.Record) error {
	switch kind {
	case codec.Withdrawn:
		l.kept.flags.All[t] |= rowWithdrawn
		return nil
	case codec.Loss, codec.Reward:
	default:
		return nil
	}
	if l.log.Kind == 0 {
		l.log.Kind = kind
	}
	if kind != l.log.Kind {
		return fmt.Errorf("%s:%d: the log has losses and rewards: it must have one of both", r.File, r.Line)
	}
	if l.o.Reward != nil && *l.o.Reward != (kind == codec.Reward) {
		return fmt.Errorf("%s:%d: the model gives the range of a %s, and the log has the other", r.File, r.Line,
			map[bool]string{true: "reward", false: "loss"}[*l.o.Reward])
	}
	if scale := l.o.Range; scale != (loop.Range{}) && !scale.Clip && !(value >= scale.Min && value <= scale.Max) {
		return fmt.Errorf("%s:%d: %v is not in [%v, %v], the model's range", r.File, r.Line, value, scale.Min,
			scale.Max)
	}
	l.kept.value.All[t], l.kept.came.All[t] = value, at
	return nil
}

// outcome joins an observation with its event, or keeps it until that comes.
func (l *eventLoader) outcome(r *logs.Record) error {
	o := &outcome{kind: r.Outcome, flags: r.Flags, value: r.Value, at: r.OutcomeTime, action: strings.Clone(r.Action)}
	for _, v := range r.Values {
		if v.Time == scan.NoTime {
			v.Time = r.OutcomeTime
		}
		v.Name = strings.Clone(v.Name)
		o.values = append(o.values, v)
	}
	if t, ok := l.reader.EventOf(r.ID); ok {
		return l.join(t, o, r)
	}
	if have, ok := l.early.Get(0, []byte(r.ID)); ok && have != nil {
		if have.values = append(have.values, o.values...); len(o.values) == 0 {
			l.in.Extra++
		}
		return nil
	}
	l.early.Put(0, []byte(r.ID), o)
	l.waits++
	return nil
}

// join gives row t an outcome that came by itself: the first counts.
func (l *eventLoader) join(t int, o *outcome, r *logs.Record) error {
	flags := &l.kept.flags.All[t]
	if o.action != "" && o.action != l.log.Actions[l.kept.action.All[t]] {
		l.in.Mismatch++
		return nil
	}
	if o.flags&logs.Activation != 0 && *flags&rowInactive != 0 {
		*flags &^= rowInactive
		l.in.Activated++
	}
	if len(o.values) > 0 && *flags&rowWithdrawn == 0 {
		repeats, err := l.values(t, o.values, o.at)
		if l.in.Extra += repeats; repeats < int64(len(o.values)) {
			l.in.Joined++
		}
		return err
	}
	switch {
	case o.kind == 0:
		return nil
	case !math.IsNaN(l.kept.value.All[t]) && *flags&rowDefaulted == 0 || *flags&rowWithdrawn != 0:
		l.in.Extra++
		return nil
	}
	l.in.Joined++
	*flags &^= rowDefaulted
	return l.came(t, o.kind, o.value, o.at, r)
}

// RoundID is the id of round t = 0, 1, 2, … where the data has none.
func RoundID(t int) string { return "r" + strconv.Itoa(t+1) }
