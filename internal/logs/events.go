package logs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// rounds reads our events: contexts, decisions and outcomes, alone or in one, and feedback. A decision without its
// context finds that by its id among the contexts that came before and wait.
type rounds struct {
	o       *Options // nil: those of no file
	round   codec.Round
	ctx     codec.Context
	waiting map[string][]byte // contexts without a decision
	order   []string          // of waiting, oldest first
	held    int               // bytes of waiting
	old     codec.Round       // a context that waited
}

// Contexts wait for their decision until so many came behind them, or so many bytes.
const (
	maxWaiting      = 100_000
	maxWaitingBytes = 256 << 20
)

// parse makes a record of one event.
func (d *rounds) parse(b []byte, r *Record) (class, string, error) {
	o := &d.round
	if err := codec.ParseRound(o, b); err != nil {
		return 0, "", err
	}
	if o.Stage > 0 {
		return isSkipped, "feedback of an earlier stage", nil
	}
	if o.Repeat {
		return isSkipped, "a repeat of the draw of its unit", nil
	}
	if len(o.Arms) > 0 {
		return isEvent, "", d.arms(b, r)
	}
	if !o.Decided {
		switch {
		case o.Kind == 0 && o.Activated, o.Kind != 0:
			return d.outcome(r)
		case o.ID != "" && (len(o.Features) > 0 || o.Actions != nil || len(o.Vector) > 0):
			d.wait(o.ID, b)
			return isSkipped, "context that waits for its decision", nil
		}
		return isSkipped, "neither a decision nor an outcome", nil
	}
	if o.Unsaid {
		return isSkipped, AssignedBare, nil
	}
	if len(o.Features) == 0 && len(o.Vector) == 0 && o.Actions == nil {
		d.recall()
	}
	return isEvent, "", d.event(r)
}

func (d *rounds) outcome(r *Record) (class, string, error) {
	o := &d.round
	r.Kind, r.ID, r.Action, r.Outcome, r.Value, r.OutcomeTime = Outcome, o.ID, o.Action, o.Kind, o.Value, o.OutcomeTime
	if r.OutcomeTime == scan.NoTime {
		r.OutcomeTime = o.Time
	}
	r.Values = append(r.Values, o.Values...)
	if o.Activated {
		r.Flags |= Activation
	}
	if o.ID == "" {
		return 0, "", errors.New("an outcome without id")
	}
	return isDangling, "", validate(&d.ctx, r)
}

// wait keeps a context, and forgets the oldest where there are too many.
func (d *rounds) wait(id string, b []byte) {
	if d.waiting == nil {
		d.waiting = map[string][]byte{}
	}
	if _, ok := d.waiting[id]; ok {
		return
	}
	kept := bytes.Clone(b)
	id = string(append([]byte(nil), id...))
	d.waiting[id] = kept
	d.order = append(d.order, id)
	for d.held += len(kept); len(d.order) > maxWaiting || d.held > maxWaitingBytes; d.order = d.order[1:] {
		d.held -= len(d.waiting[d.order[0]])
		delete(d.waiting, d.order[0])
	}
}

// recall gives a decision the context that waits for it.
func (d *rounds) recall() {
	b, ok := d.waiting[d.round.ID]
	if !ok || codec.ParseRound(&d.old, b) != nil {
		return
	}
	d.held -= len(b)
	d.waiting[d.round.ID] = nil
	d.round.Features, d.round.Vector, d.round.Actions = d.old.Features, d.old.Vector, d.old.Actions
	if d.round.Time == scan.NoTime {
		d.round.Time = d.old.Time
	}
}

var (
	errLawOfWhat = errors.New("propensities and actions are not the same actions")
	errNoLawful  = errors.New("the propensity of the action played is not in (0, 1]")
)

// event makes an event of a round that was decided.
func (d *rounds) event(r *Record) error {
	o := &d.round
	r.ID, r.Time, r.Action, r.Propensity, r.Unit = o.ID, o.Time, o.Action, o.Propensity, o.Unit
	r.Outcome, r.Value, r.OutcomeTime = o.Kind, o.Value, o.OutcomeTime
	if o.Kind == 0 {
		r.OutcomeTime = scan.NoTime
	}
	r.Values = append(r.Values, o.Values...)
	r.Features = append(r.Features, o.Features...)
	r.Features = appendVector(r.Features, o.Vector)
	if o.Actions != nil {
		for i := range o.Actions {
			a := r.another(o.Actions[i].Name)
			a.Features = append(a.Features, o.Actions[i].Features...)
		}
	} else {
		for _, name := range o.LawActions {
			r.another(name)
		}
	}
	if o.Inactive {
		r.Flags |= Inactive
	}
	if o.Defaulted {
		r.Flags |= Defaulted
	}
	if o.Weight != 0 {
		if !(o.Weight >= 1) || math.IsInf(o.Weight, 0) {
			return errors.New("weight is less than 1, or not finite")
		}
		r.Weight = o.Weight
	}
	if err := d.law(r); err != nil {
		return err
	}
	return validate(&d.ctx, r)
}

// arms makes an event of a round that tells what every action would have brought. Its features are those of
// the line where it has them, else the keys of the line that are named.
func (d *rounds) arms(b []byte, r *Record) error {
	o := &d.round
	r.ID, r.Time, r.Unit, r.Arms = o.ID, o.Time, o.Unit, o.Arms
	r.Features = appendVector(append(r.Features, o.Features...), o.Vector)
	if len(r.Features) == 0 && d.o != nil && len(d.o.Keys) > 0 && codec.IsJSON(b) {
		all, err := Features(b)
		if err != nil {
			return err
		}
		for _, f := range all {
			if slices.Contains(d.o.Keys, f.Name) {
				r.Features = append(r.Features, f)
			}
		}
	}
	for i := range o.Arms {
		a := r.another(o.Arms[i].Action)
		if len(o.Arms[i].Values) == 0 {
			return fmt.Errorf("arms: %q has no outcome that is a number", a.Name)
		}
		if at := actionIndex(o.Actions, a.Name, i); at >= 0 {
			a.Features = append(a.Features, o.Actions[at].Features...)
		}
	}
	return validate(&d.ctx, r)
}

// appendVector names the numbers of a vector by their places.
func appendVector(dst []codec.Feature, vector []float64) []codec.Feature {
	for i, x := range vector {
		dst = append(dst, codec.Feature{Name: ordinal(i), Kind: codec.Number, Value: x})
	}
	return dst
}

// law finds what was played and the law among the actions.
func (d *rounds) law(r *Record) error {
	o := &d.round
	if len(r.Actions) == 0 {
		r.Actions = nil
		if len(o.Baseline) > 0 {
			return errors.New("a baseline without actions")
		}
	} else if r.Chosen = actionIndex(r.Actions, o.Action, 0); r.Chosen < 0 {
		return errors.New("the action played is not among the actions")
	}
	if len(o.Propensities) > 0 {
		if len(o.Propensities) != len(r.Actions) {
			return errLawOfWhat
		}
		for range r.Actions {
			r.Propensities = append(r.Propensities, -1)
		}
		for i, name := range o.LawActions {
			a := actionIndex(r.Actions, name, i)
			if a < 0 || r.Propensities[a] >= 0 {
				return errLawOfWhat
			}
			if !(o.Propensities[i] >= 0 && o.Propensities[i] <= 1+1e-6) {
				return errNoLawful
			}
			r.Propensities[a] = o.Propensities[i]
		}
		if p := r.Propensities[r.Chosen]; r.Propensity == 0 {
			r.Propensity = p
		} else if math.Abs(p-r.Propensity) > Printed {
			return errors.New("propensity is not that of the action played in propensities")
		}
		if r.Propensity == 0 {
			return errNoLawful
		}
	}
	if !(r.Propensity >= 0 && r.Propensity <= 1+1e-6) {
		return errNoLawful
	}
	r.Propensity = min(r.Propensity, 1)
	for i, name := range o.Baseline {
		a := actionIndex(r.Actions, name, i)
		if a < 0 {
			return errors.New("the baseline names an action that is not there")
		}
		r.Baseline = append(r.Baseline, a)
	}
	return nil
}

// Printed is how far propensities may be off because they were printed with six digits.
const Printed = 1e-4

// actionIndex finds an action by its name; hint is where it may be.
func actionIndex(actions []codec.Action, name string, hint int) int {
	if hint < len(actions) && actions[hint].Name == name {
		return hint
	}
	for i := range actions {
		if actions[i].Name == name {
			return i
		}
	}
	return -1
}

// jsonEvents reads our events as JSON, an object a line, or CloudEvents.
type jsonEvents struct {
	rounds
	lines
}

func (d *jsonEvents) next(r *Record) (class, string, error) {
	ok, class, reason, err := d.read(r)
	switch {
	case !ok:
		return class, reason, err
	case !codec.IsJSON(d.line):
		return 0, "", errors.New("expected a JSON object")
	}
	return d.parse(d.line, r)
}

// packEvents reads our events as MessagePack, one map behind the other.
type packEvents struct {
	rounds
	r    *bufio.Reader
	buf  []byte // what was read
	from int    // of the record to come
	rec  []byte
	n    int64
	end  bool
}

func (d *packEvents) raw() []byte { return d.rec }

// next reads the next map. What is no map ends the file, since nothing says where the next begins.
func (d *packEvents) next(r *Record) (class, string, error) {
	for {
		n, incomplete, err := codec.RecordLength(d.buf[d.from:])
		switch {
		case err == nil && n > 0:
			d.rec, d.from, d.n = d.buf[d.from:d.from+n], d.from+n, d.n+1
			r.Line = d.n
			return d.parse(d.rec, r)
		case d.end && d.from == len(d.buf):
			return 0, "", ended{io.EOF}
		case !incomplete || d.end || len(d.buf)-d.from > scan.MaxLineBytes:
			d.rec, d.from, d.end = d.buf[d.from:], len(d.buf), true
			d.n++
			r.Line = d.n
			return 0, "", fmt.Errorf("not a MessagePack map, so that the rest of the file cannot be read: %w", err)
		}
		if err := d.fill(); err != nil {
			return 0, "", ended{err}
		}
	}
}

// fill reads on. It reads at least as much as is there, so that a long record is not looked at again and again.
func (d *packEvents) fill() error {
	left := copy(d.buf, d.buf[d.from:])
	d.buf, d.from = d.buf[:left], 0
	want := max(left, scan.BufferBytes)
	if cap(d.buf) < left+want {
		d.buf = append(make([]byte, 0, 2*(left+want)), d.buf...)
	}
	for end := left + want; len(d.buf) < end; {
		n, err := d.r.Read(d.buf[len(d.buf):end])
		d.buf = d.buf[:len(d.buf)+n]
		if errors.Is(err, io.EOF) {
			d.end = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
