package model

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

var modelName = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

// Validate reports what is wrong with a model that was made or changed by hand; what Parse returns is valid.
func (m *Model) Validate() error {
	var es Errors
	m.check(func(key, format string, args ...any) {
		es = append(es, &Error{File: "model", Msg: key + ": " + fmt.Sprintf(format, args...)})
	})
	if es == nil {
		return nil
	}
	return es
}

// adder takes a wrong value, or values that do not go together; key is the one to look at.
type adder func(key, format string, args ...any)

func (m *Model) check(add adder) {
	wrong := false
	outOfRange(m.fields(), "", func(key, format string, args ...any) {
		wrong = true
		add(key, format, args...)
	})
	if wrong {
		return // what follows reckons with the numbers
	}
	if !modelName.MatchString(m.Name) {
		add("name", "expected 1 to 40 of a-z, 0-9, _ and -, found %q; for example: name: shop", m.Name)
	}
	if n := len(m.Actions); n > codec.MaxActions {
		add("actions", "%d actions are listed, at most %d are allowed", n, codec.MaxActions)
	} else if n > m.MaxActions {
		add("max_actions", "it is %d, but %d actions are listed; leave it out or raise it", m.MaxActions, n)
	}
	m.Learner.check(m, add)
	m.orderProblems(add)
	m.hurryProblems(add)
	m.Oracle.kind().check(m, add)
	m.checkListed(add)
	m.certificateProblems(add)
	m.modeProblems(add)
	m.candidateProblems(add)
	m.slotProblems(add)
	m.namedProblems(add)
	m.unitProblems(add)
}

// order is the order in which rounds are learned.
func (m *Model) order() choice {
	at := 0
	if m.Arrival {
		at = 1
	} else if m.Early {
		at = 2
	}
	return choice{[]string{"fifo", "arrival", "early"}, at, func(i int) { m.Arrival, m.Early = i == 1, i == 2 }}
}

// DefaultOrder sets the order of a model that does not name arrival: early where it is allowed
// and nothing watches the learner against a baseline or judges candidates, and draws do not hold, else fifo.
func (m *Model) DefaultOrder() {
	m.Early = !m.Arrival && m.earlyProblem() == "" && !m.Guard.On() && m.Candidates == nil &&
		m.Sticky == 0
}

// earlyProblem says why rounds decided early must wait for their turn, "" if they need not.
func (m *Model) earlyProblem() string {
	switch {
	case !m.UsesOracle() || !m.Oracle.kind().orders.early:
		names := kindNames(true)
		return "early is for oracles over features, which are " + strings.Join(names[:len(names)-1], ", ") +
			" and " + names[len(names)-1] + "; use order: fifo"
	case m.Named != nil:
		return "early is for models with one loss; use order: fifo"
	case m.Impute:
		return "early learns outcomes before silence, which missing: impute makes a loss; use order: fifo, or " +
			"missing: skip"
	case m.Outcomes != loop.First:
		return "early " + m.tooSoon()
	}
	return ""
}

// tooSoon ends a message about an order that does not wait for all outcomes of a round.
func (m *Model) tooSoon() string {
	return fmt.Sprintf("releases at the first outcome, and outcomes: %s waits for the window's end; use order: fifo",
		loop.Aggregates()[m.Outcomes])
}

func (m *Model) orderProblems(add adder) {
	if m.Arrival && m.UsesOracle() && !m.Oracle.kind().orders.arrival {
		add("order", "arrival needs an oracle that does not depend on order, and %s does; use order: fifo, or oracle: "+
			"{kind: hedge, …}", m.Oracle.Kind)
	}
	if m.Arrival && m.Outcomes != loop.First {
		add("order", "arrival %s", m.tooSoon())
	}
	if problem := m.earlyProblem(); m.Early && problem != "" {
		add("order", "%s", problem)
	}
}

// checkText accepts what may be the name of an action, a feature or a file; of
// names, what codec accepts in events. The error continues a sentence that begins with what the text is.
func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > codec.MaxNameBytes:
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), codec.MaxNameBytes)
	}
	return codec.CheckText(s, codec.MaxNameBytes)
}
