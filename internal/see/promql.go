package see

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/model"
)

// An alarm is defined by its PromQL. This file evaluates the part of PromQL that alarms use over
// the samples of one process, so that the page and Prometheus judge by the same text. The process
// is one instance of one job: expressions are matched on (job) by matching everything.

// query returns what an expression is worth at a moment, which callers must not change.
type query func(m *moment) vector

// compile parses an expression.
func compile(expr string) (q query, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", expr, r)
		}
	}()
	p := &parser{tokens: append(token.FindAllString(expr, -1), "")}
	q = p.binary(0)
	p.expect("")
	return q, nil
}

var token = regexp.MustCompile(`\w+="[^"]*"|[a-z_]\w*|[0-9.]+[a-z]*|[>=]=|[^\s]`)

// parser reads tokens from the front; the last is empty. It panics where the text is none that it knows.
type parser struct{ tokens []string }

func (p *parser) next() string {
	t := p.tokens[0]
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) expect(tokens ...string) {
	for _, want := range tokens {
		if got := p.next(); got != want {
			panic(fmt.Sprintf("%q where %q should be", got, want))
		}
	}
}

func (p *parser) skip(t string) bool {
	found := p.tokens[0] == t
	if found {
		p.next()
	}
	return found
}

// operators are the binary ones, those that bind least first.
var operators = [][]string{{"or"}, {"and", "unless"}, {"==", ">=", ">", "<"}, {"+", "-"}, {"*"}}

func (p *parser) binary(level int) query {
	if level == len(operators) {
		return p.operand()
	}
	left := p.binary(level + 1)
	for slices.Contains(operators[level], p.tokens[0]) {
		op, all := p.next(), p.skip("on")
		if all {
			p.expect("(", "job", ")")
		}
		left = combine(op, all, left, p.binary(level+1))
	}
	return left
}

// operand parses what stands between operators.
func (p *parser) operand() query {
	t := p.next()
	if x, err := strconv.ParseFloat(t, 64); err == nil {
		return func(*moment) vector { return vector{scalar: x} }
	}
	switch t {
	case "(":
		q := p.binary(0)
		p.expect(")")
		return q
	case "sum", "max":
		return p.aggregate(t)
	case "rate", "increase", "delta", "min_over_time", "avg_over_time":
		return p.overTime(t)
	case "abs":
		q := p.operand()
		return func(m *moment) vector { return q(m).each(math.Abs) }
	case "time":
		p.expect("(", ")")
		return func(m *moment) vector { return vector{scalar: float64(m.at.UnixMilli()) / 1e3} }
	}
	if !strings.HasPrefix(t, "hindsight_") {
		panic(fmt.Sprintf("%q is not known", t))
	}
	var labels []string
	if p.skip("{") {
		labels = append(labels, p.next())
		p.expect("}")
	}
	return func(m *moment) vector {
		if labels == nil {
			return m.values[t]
		}
		out := vector{}
		for have, x := range m.values[t] {
			if matches(have, labels) {
				out[have] = x
			}
		}
		return out
	}
}

// scalar is the key of a number without a metric.
const scalar = "scalar"

func (v vector) each(f func(float64) float64) vector {
	out := vector{}
	for labels, x := range v {
		out[labels] = f(x)
	}
	return out
}

// aggregate parses by (labels) (expression).
func (p *parser) aggregate(name string) query {
	p.expect("by", "(")
	var by []string
	for t := p.next(); t != ")"; t = p.next() {
		by = append(by, t)
	}
	q := p.operand()
	return func(m *moment) vector {
		out := vector{}
		for labels, x := range q(m) {
			kept := slices.DeleteFunc(strings.Split(labels, ","), func(l string) bool {
				name, _, _ := strings.Cut(l, "=")
				return !slices.Contains(by, name)
			})
			key := strings.Join(kept, ",")
			was, ok := out[key]
			switch {
			case ok && name == "sum":
				x += was
			case ok:
				x = max(x, was)
			}
			out[key] = x
		}
		return out
	}
}

// overTime parses (expression[span]), or with a step, which samples have by themselves.
func (p *parser) overTime(name string) query {
	p.expect("(")
	q := p.operand()
	p.expect("[")
	span, err := model.ParseDuration(p.next())
	if err != nil {
		panic(err)
	}
	if p.skip(":") {
		p.next()
	}
	p.expect("]", ")")
	grows := name == "rate" || name == "increase" || name == "delta"
	return func(m *moment) vector {
		past := append(m.h.since(m.at, span), m.sample)
		if grows { // what was not there at the beginning did not grow
			past = []sample{past[0], m.sample}
		}
		at := map[string]course{}
		for i := range past {
			next := m.at.Add(sampleEvery)
			if i+1 < len(past) {
				next = past[i+1].at
			}
			for labels, x := range q(&moment{past[i], m.h}) {
				c, ok := at[labels]
				if !ok {
					c = course{began: past[i].at, first: x, least: x}
				}
				c.last, c.least = x, min(c.least, x)
				c.sum += x * next.Sub(past[i].at).Seconds()
				c.seconds += next.Sub(past[i].at).Seconds()
				at[labels] = c
			}
		}
		out := vector{}
		for labels, c := range at {
			out[labels] = c.of(name, m.at)
		}
		return out
	}
}

// course is how a number went over a span.
type course struct {
	began              time.Time
	first, last, least float64
	sum, seconds       float64 // of the number times seconds
}

func (c *course) of(name string, now time.Time) float64 {
	switch name {
	case "min_over_time":
		return c.least
	case "avg_over_time":
		return c.sum / c.seconds
	case "rate":
		return (c.last - c.first) / max(now.Sub(c.began).Seconds(), 1)
	}
	return c.last - c.first
}

// combine applies a binary operator; all: to all labels alike.
func combine(op string, all bool, left, right query) query {
	return func(m *moment) vector {
		a, b := left(m), right(m)
		of := func(v vector, labels string) (float64, bool) {
			if x, ok := v[scalar]; ok {
				return x, true
			}
			x, ok := v[labels]
			return x, ok || all && len(v) > 0
		}
		if _, ok := a[scalar]; ok { // labels are those of the vector
			a = b.each(func(float64) float64 { return a[scalar] })
		}
		out := vector{}
		for labels, x := range a {
			y, ok := of(b, labels)
			switch op {
			case "or":
				out[labels] = x
			case "unless":
				ok = !ok
				fallthrough
			case "and":
				if ok {
					out[labels] = x
				}
			default:
				if v, holds := apply(op, x, y); ok && holds {
					out[labels] = v
				}
			}
		}
		for labels, y := range b {
			if _, ok := out[labels]; op == "or" && !ok {
				out[labels] = y
			}
		}
		return out
	}
}

// apply applies an operator to two numbers; a comparison filters the left one.
func apply(op string, x, y float64) (v float64, holds bool) {
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "==":
		return x, x == y
	case ">=":
		return x, x >= y
	case ">":
		return x, x > y
	}
	return x, x < y
}
