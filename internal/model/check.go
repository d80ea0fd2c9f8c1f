package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// MaxMemory bounds the bytes of the linear oracle and of the aggregate: in version 1 at the
// model's limits, since then as they come.
const MaxMemory = 1 << 30

var modelName = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

// problem is a wrong value, or values that do not go together; key names the
// one to look at.
type problem struct{ key, msg string }

// Validate reports what is wrong with a model that was made or changed by hand;
// what Parse returns is valid.
func (m *Model) Validate() error {
	var es Errors
	for _, bad := range m.problems() {
		es = append(es, &Error{File: "model", Msg: bad.key + ": " + bad.msg})
	}
	if es == nil {
		return nil
	}
	return es
}

func (m *Model) problems() []problem {
	var out []problem
	add := func(key, format string, args ...any) {
		out = append(out, problem{key, fmt.Sprintf(format, args...)})
	}
	if !modelName.MatchString(m.Name) {
		add("name", "expected 1 to 40 of a-z, 0-9, _ and -, found %q; for example: name: shop", m.Name)
	}
	if n := len(m.Actions); n > codec.MaxActions {
		add("actions", "%d actions are listed, at most %d are allowed", n, codec.MaxActions)
	} else if n > m.MaxActions {
		add("max_actions", "it is %d, but %d actions are listed; leave it out or raise it", m.MaxActions, n)
	}
	if l := m.Learner; l.Kind == Fixed && m.Actions != nil && !slices.Contains(m.Actions, l.Action) {
		add("learner", "fixed plays %q, which is not in actions; name one of them", l.Action)
	}
	m.exp4Problems(add)
	if m.DefaultLoss < 0 || m.DefaultLoss > 1 {
		add("default_loss", "expected a loss in [0,1], on the scale where 1 is worst, found %v; for example: default_loss: 1", m.DefaultLoss)
	}
	if m.Arrival && m.usesOracle() && m.Oracle.Kind != Hedge && m.Oracle.Kind != Own {
		add("order", "arrival needs an oracle that does not depend on order, and %s does; use order: fifo, or oracle: {kind: hedge, …}", m.Oracle.Kind)
	}
	if m.Arrival && m.Outcomes != loop.First {
		add("order", "arrival releases at the first outcome, and outcomes: %s waits for the window's end; use order: fifo", aggregates()[m.Outcomes])
	}
	m.earlyProblems(add)
	switch m.Oracle.Kind {
	case Hedge:
		m.hedgeProblems(add)
	case Auto:
		m.autoProblems(add)
	case Shared, Hybrid:
		m.sharedProblems(add)
	default:
		m.linearProblems(add)
	}
	m.certificateProblems(add)
	m.modeProblems(add)
	return out
}

func (m *Model) hedgeProblems(add func(key, format string, args ...any)) {
	o := m.Oracle
	if o.Class == "" {
		add("oracle", "hedge needs a class file; for example: oracle: {kind: hedge, class: shop.class.jsonl}")
	} else if err := checkText(o.Class); err != nil {
		add("oracle", "class: the file name %v", err)
	}
	if !(o.Eta > 0 && o.Eta <= 1e6) {
		add("oracle", "eta: expected a number in (0, 1e6], found %v; for example: eta: 0.5", o.Eta)
	} else if o.Eta > 0.5 && !o.Unproved {
		add("oracle", "eta: above 1/2 no regret bound is proved, found %v; use eta: 0.5, or add unproved: true", o.Eta)
	}
	if o.Vovk && (!o.Unproved || o.Eta > oracle.VovkEta) {
		add("oracle", "substitution: vovk: it needs unproved: true, because its stability is not proved, and an eta of at most 2, found %v; for example: oracle: {kind: hedge, class: FILE, substitution: vovk, unproved: true}", o.Eta)
	}
	if m.Explore.Name == Paper && m.Learner.Kind == DAFA && o.Eta != PaperEta {
		add("oracle", "eta: explore: {paper: T} stands for eta = 1/18, found %v; leave eta out", o.Eta)
	}
}

func (m *Model) linearProblems(add func(key, format string, args ...any)) {
	o := m.Oracle
	if o.Kind == Unstable || o.Kind == Own {
		return
	}
	if o.Kind != Linear {
		add("oracle", "kind: expected auto | linear | hedge | shared | hybrid, found %q", o.Kind)
		return
	}
	if f := o.Forget; f != 0 && !(f >= 0.5 && f < 1) {
		add("oracle", "forget: expected a number in [0.5, 1), found %v; for example: forget: 0.998", f)
	}
	m.lambdaProblem(add)
	m.randomProblems(add)
	if m.fourierProblems(add) {
		return
	}
	m.regressionProblems(add)
}

func (m *Model) lambdaProblem(add func(key, format string, args ...any)) {
	if l := m.Oracle.Lambda; !l.Auto && !(l.Value >= 1e-9 && l.Value <= 1e9) {
		add("oracle", "lambda: expected auto or a number in [1e-9, 1e9], found %v; for example: lambda: 1", l.Value)
	}
}

// regressionProblems are those that all oracles over features share.
func (m *Model) regressionProblems(add func(key, format string, args ...any)) {
	o := m.Oracle
	if b := o.Beta; !b.Auto && (b.Value < 0 || b.Value > 1) {
		add("oracle", "beta: expected auto or a number in [0,1], found %v; for example: beta: 0.5", b.Value)
	}
	if m.Explore.Name == Paper && m.Learner.Kind == DAFA {
		add("explore", "the paper's preset is for a finite class; use oracle: {kind: hedge, class: FILE}, or explore: theory")
	}
	if bytes := m.Memory(); bytes > MaxMemory && !m.follows() {
		lower := "lower max_features or max_actions"
		if o.Fourier.Value > 0 {
			lower = "lower max_features, max_actions or fourier"
		}
		add("max_features", "with up to %d actions and %d columns the %s oracle may need %.3g GiB, more than 1 GiB; %s",
			m.mostActions(), m.MaxFeatures+1, o.Kind, float64(bytes)/(1<<30), lower)
	}
}

// Memory returns the bytes of the learner's state at its largest, as far as the
// model alone tells: for the linear oracle ([oracle.AggregateBytes] for auto), per action, a packed triangle of
// d(d+1)/2 numbers and d weights, with d, random features included, and K as large as the model allows
// (actions may bring features of their own beside those that are listed).
func (m *Model) Memory() int64 {
	switch {
	case !m.usesOracle():
		return 0
	case m.Oracle.Kind == Auto:
		return m.autoMemory()
	case m.Oracle.Kind == Shared || m.Oracle.Kind == Hybrid:
		return m.sharedMemory()
	case m.Oracle.Kind != Linear:
		return 0
	}
	return m.linearMemory()
}

var (
	errEmpty = errors.New("is empty")
	errUTF8  = errors.New("is not UTF-8")
	errCtrl  = errors.New("has a control character")
)

// checkText accepts what may be the name of an action, a feature or a file; of
// names, what codec accepts in events. The error continues a sentence that begins with what the text is.
func checkText(s string) error {
	switch {
	case s == "":
		return errEmpty
	case len(s) > codec.MaxNameBytes:
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), codec.MaxNameBytes)
	case !utf8.ValidString(s):
		return errUTF8
	case strings.ContainsFunc(s, unicode.IsControl):
		return errCtrl
	}
	return nil
}
