package logs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// vwText reads the text of Vowpal Wabbit: of --cb K, an event a line, or of --cb_adf and --ccb_explore_adf, a line an
// action or a slot and a blank line behind the event. Features are named by their namespace, as ns.name; a number
// follows behind a colon. A feature without one is a category: name=text has that text, and a bare name is true.
// https://github.com/VowpalWabbit/vowpal_wabbit/wiki/Contextual-Bandit-algorithms
type vwText struct {
	lines
	adf   bool   // an example has several lines
	slots bool   // of --ccb_explore_adf
	text  []byte // of the whole example
	ctx   codec.Context
	names scan.JSON // its arena

	several several
}

func (d *vwText) raw() []byte { return d.text } // not the last line alone

func (d *vwText) next(r *Record) (class, string, error) {
	if d.several.more() {
		return d.several.next(r, &d.ctx, codec.Loss)
	}
	d.names.Reset(nil)
	d.text = d.text[:0]
	if d.adf {
		return d.nextADF(r)
	}
	ok, class, reason, err := d.read(r)
	if d.text = d.line; !ok {
		return class, reason, err
	}
	return d.single(r)
}

// cbLabel is a:cost:probability.
type cbLabel struct {
	action            int
	cost, probability float64
	known, shared     bool
}

var errCBLabel = errors.New("expected a label action:cost:probability")

// vwKinds are the kinds of labels that are known by name and not read.
var vwKinds = map[string]string{"slates": "slates", "ca": "continuous actions"}

// labelError says of a kind in [vwKinds] what it is.
func labelError(kind string) error {
	return fmt.Errorf("%s (%s), which are not read: cb, cb_adf and ccb are", vwKinds[kind], kind)
}

// parseLabel reads what stands before the bar; "" is no label. A tag 'tag may follow.
func parseLabel(text []byte) (l cbLabel, err error) {
	fields := bytes.Fields(text)
	if len(fields) > 0 {
		switch kind := string(fields[0]); kind {
		case "shared":
			l.shared = true
			return l, nil
		case "slates", "ca":
			return l, fmt.Errorf("a label of %w", labelError(kind))
		}
	}
	for _, f := range fields {
		if f[0] == '\'' {
			continue
		}
		parts := strings.Split(string(f), ":")
		if len(parts) != 3 {
			if len(parts) == 1 && l.known { // a tag without its mark
				continue
			}
			return l, errCBLabel
		}
		if l.known {
			return l, errors.New("more than one label")
		}
		a, err0 := strconv.Atoi(parts[0])
		cost, err1 := strconv.ParseFloat(parts[1], 64)
		p, err2 := strconv.ParseFloat(parts[2], 64)
		if err0 != nil || err1 != nil || err2 != nil || math.IsNaN(cost) || math.IsInf(cost, 0) {
			return l, errCBLabel
		}
		if !(p > 0 && p <= 1+1e-6) {
			return l, errProbability
		}
		l = cbLabel{action: a, cost: cost, probability: min(p, 1), known: true}
	}
	return l, nil
}

// single reads a line of cb. The file names only the actions that were played; how many
// there are, none says, so that the actions are not known.
func (d *vwText) single(r *Record) (class, string, error) {
	label, rest, ok := bytes.Cut(d.text, []byte("|"))
	if !ok {
		return 0, "", errors.New("there is no | behind the label")
	}
	l, err := parseLabel(label)
	if err == nil && l.known && (l.action < 1 || l.action > 1<<31) {
		err = errors.New("actions count from 1")
	}
	if err == nil && !l.known {
		return isSkipped, "no label", nil
	}
	if err == nil {
		r.Features, err = d.features(r.Features, rest)
	}
	if err == nil {
		r.Action, r.Propensity, r.Outcome, r.Value = ordinal(l.action), l.probability, codec.Loss, l.cost
		r.Actions = nil
		err = validate(&d.ctx, r)
	}
	return isEvent, "", err
}

// features reads |ns:scale name:value … |ns …, without the first bar.
func (d *vwText) features(dst []codec.Feature, text []byte) ([]codec.Feature, error) {
	for part := range bytes.SplitSeq(text, []byte("|")) {
		ns, scale := "", 1.0
		if len(part) > 0 && part[0] != ' ' && part[0] != '\t' {
			name := part
			if end := bytes.IndexAny(part, " \t"); end >= 0 {
				name, part = part[:end], part[end:]
			} else {
				part = nil
			}
			ns = string(name)
			if at := strings.LastIndexByte(ns, ':'); at >= 0 {
				var err error
				if scale, err = strconv.ParseFloat(ns[at+1:], 64); err != nil {
					return dst, errors.New("namespace " + strconv.Quote(ns) + ": its scale is not a number")
				}
				ns = ns[:at]
			}
		}
		for field := range bytes.FieldsSeq(part) {
			f, err := d.feature(dst, ns, unsafe.String(unsafe.SliceData(field), len(field)), scale)
			if err != nil {
				return dst, err
			}
			dst = append(dst, f)
		}
	}
	return dst, nil
}

// feature reads one feature, which comes after others. A name may have several texts in one
// example, as in tag=red tag=blue: those after the first are true under their whole name.
func (d *vwText) feature(others []codec.Feature, ns, text string, scale float64) (f codec.Feature, err error) {
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		v, err := strconv.ParseFloat(text[at+1:], 64)
		if err != nil {
			return f, errors.New("feature " + strconv.Quote(text) + ": its value is not a number")
		}
		f = codec.Feature{Kind: codec.Number, Name: d.names.Join(ns, text[:at]), Value: v * scale}
	} else if scale != 1 {
		f = codec.Feature{Kind: codec.Number, Name: d.names.Join(ns, text), Value: scale}
	} else if name, category, ok := strings.Cut(text, "="); ok && name != "" {
		f = codec.Feature{Kind: codec.Text, Name: d.names.Join(ns, name), Text: category}
		if slices.ContainsFunc(others, func(o codec.Feature) bool { return o.Name == f.Name }) {
			f = codec.Feature{Kind: codec.Bool, Name: d.names.Join(ns, text), Value: 1}
		}
	} else {
		f = codec.Feature{Kind: codec.Bool, Name: d.names.Join(ns, text), Value: 1}
	}
	if f.Name == "" {
		return f, errors.New("a feature without a name")
	}
	return f, nil
}

// nextADF reads the lines of an example.
func (d *vwText) nextADF(r *Record) (class, string, error) {
	for {
		line, tooLong, err := d.lines.Next()
		if err != nil {
			if len(d.text) == 0 {
				return 0, "", ended{err}
			}
			break // the last example; the end comes again
		}
		if isBlank(line) && !tooLong {
			if len(d.text) == 0 {
				continue // several blank lines end one example
			}
			break
		}
		if len(d.text) == 0 {
			r.Line = d.lines.N
		}
		if tooLong || len(d.text)+len(line) > scan.MaxLineBytes {
			d.passADF()
			return 0, "", fmt.Errorf("an example of more than %d MiB", scan.MaxLineBytes>>20)
		}
		d.text = append(append(d.text, line...), '\n')
	}
	if d.slots {
		return d.ccb(r)
	}
	return d.example(r)
}

// passADF passes the rest of an example.
func (d *vwText) passADF() {
	for {
		if line, tooLong, err := d.lines.Next(); err != nil || isBlank(line) && !tooLong {
			return
		}
	}
}

// each gives f the lines of an example, counted from 0.
func (d *vwText) each(r *Record, f func(r *Record, line []byte, n int) error) error {
	n := 0
	for line := range bytes.Lines(d.text) {
		if err := f(r, bytes.TrimSuffix(line, []byte("\n")), n); err != nil {
			return &scan.LineError{Line: r.Line + int64(n), Msg: err.Error()}
		}
		n++
	}
	return nil
}

// example makes a record of an example's lines.
func (d *vwText) example(r *Record) (class, string, error) {
	err := d.each(r, d.adfLine)
	switch {
	case err != nil:
		return 0, "", err
	case len(r.Actions) == 0:
		return 0, "", errors.New("an example without actions")
	case r.Chosen < 0:
		return isSkipped, "no label", nil
	}
	for i := range r.Actions {
		r.Actions[i].Name = ordinal(i + 1)
	}
	r.Action = r.Actions[r.Chosen].Name
	return isEvent, "", validate(&d.ctx, r)
}

// adfLine reads line n of an example.
func (d *vwText) adfLine(r *Record, line []byte, n int) error {
	label, rest, _ := bytes.Cut(line, []byte("|")) // an action may have no features
	l, err := parseLabel(label)
	switch {
	case err != nil:
		return err
	case l.shared && n > 0:
		return errors.New("shared is the first line of an example")
	case l.shared:
		r.Features, err = d.features(r.Features, rest)
		return err
	case len(r.Actions) == codec.MaxActions:
		return errors.New("more than " + strconv.Itoa(codec.MaxActions) + " actions")
	case l.known && r.Chosen >= 0:
		return errors.New("two actions of an example have a label")
	}
	a := r.another("")
	if l.known {
		r.Chosen, r.Propensity, r.Outcome, r.Value = len(r.Actions)-1, l.probability, codec.Loss, l.cost
	}
	a.Features, err = d.features(a.Features, rest)
	return err
}
