package learner

import (
	"slices"
	"strconv"
	"strings"
)

const (
	maxFormulaBytes = 1000
	maxFormulaDepth = 50
)

// formulaParser reads by recursive descent:
//
//	sum     = product {("+" | "-") product}
//	product = factor {("*" | "/") factor}
//	factor  = "-" factor | number | name | "(" sum ")" | ("min" | "max" | "clip") "(" sum {"," sum} ")"
type formulaParser struct {
	text  string
	at    int
	depth int
	scope *Scope
	err   *FormulaError // the first
}

func parseFormula(text string, s *Scope) (*term, error) {
	p := &formulaParser{text: text, scope: s}
	if len(text) > maxFormulaBytes {
		p.failf(maxFormulaBytes, "it has %d bytes, at most %d are allowed", len(text), maxFormulaBytes)
	}
	t := p.sum()
	if p.at < len(text) {
		p.expected("an operator or the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}

// failf notes the first error; what is parsed after it is of no account.
func (p *formulaParser) failf(at int, format string, args ...any) {
	if p.err == nil {
		p.err = wrong(at+1, format, args...)
	}
	p.at = len(p.text)
}

func (p *formulaParser) expected(what string) {
	found := "the end"
	if rest := p.text[p.at:]; rest != "" {
		found = strconv.Quote(string([]rune(rest)[:1]))
	}
	p.failf(p.at, "expected %s, found %s; for example: quality - 0.5*cost", what, found)
}

func (p *formulaParser) skip() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\n' || p.text[p.at] == '\t') {
		p.at++
	}
}

// next takes the next sign if it is one of some.
func (p *formulaParser) next(signs string) (sign byte, column int) {
	if p.skip(); p.at < len(p.text) && strings.IndexByte(signs, p.text[p.at]) >= 0 {
		p.at++
		return p.text[p.at-1], p.at
	}
	return 0, 0
}

func (p *formulaParser) sum() *term     { return p.chain("+-", p.product) }
func (p *formulaParser) product() *term { return p.chain("*/", p.factor) }

// chain reads operands between signs, which are applied from the left.
func (p *formulaParser) chain(signs string, operand func() *term) *term {
	t := operand()
	for {
		op, column := p.next(signs)
		if op == 0 {
			return t
		}
		t = &term{op: op, args: []*term{t, operand()}, column: column}
	}
}

func (p *formulaParser) factor() *term {
	if p.depth++; p.depth > maxFormulaDepth {
		p.failf(p.at, "it is nested more than %d deep", maxFormulaDepth)
	}
	defer func() { p.depth-- }()
	p.skip()
	from := p.at
	t := &term{column: from + 1}
	if sign, _ := p.next("-("); sign == '-' {
		t.op, t.args = negated, []*term{p.factor()}
		if a := t.args[0]; a.op == literal && a.name == "" { // -2 is a number
			return &term{op: literal, values: []float64{-a.values[0]}, column: t.column}
		}
		return t
	} else if sign == '(' {
		t = p.sum()
		p.close()
		return t
	}
	for p.at < len(p.text) && p.inWord(from) {
		p.at++
	}
	word := p.text[from:p.at]
	switch {
	case word == "":
		p.expected(`a number, a name or "("`)
	case word[0] == '.' || word[0] >= '0' && word[0] <= '9':
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || strings.ContainsAny(word, "xX_pP") {
			p.failf(from, "%q is not a number", word)
		}
		t.op, t.values = literal, []float64{x}
	case slices.Contains([]string{"min", "max", "clip"}, word):
		return p.function(word, t)
	default:
		p.named(word, t)
	}
	return t
}

// inWord reports whether the text goes on with the word that began at from: a number may have a sign after its e.
func (p *formulaParser) inWord(from int) bool {
	c := p.text[p.at]
	if c == '+' || c == '-' {
		return p.at > from && p.text[p.at-1]|0x20 == 'e' && p.text[from] <= '9' // a digit, or a point
	}
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (p *formulaParser) named(word string, t *term) {
	t.name = word
	if k := slices.IndexFunc(p.scope.Outcomes, func(v Variable) bool { return v.Name == word }); k >= 0 {
		t.op, t.k = outcome, k
		return
	}
	k := slices.IndexFunc(p.scope.Constants, func(c Constant) bool { return c.Name == word })
	if k < 0 {
		p.failf(t.column-1, "no outcome or constant is called %q; there are %s", word, p.scope.names())
		p.err.Name = word
		return
	}
	t.op, t.values = literal, p.scope.Constants[k].Values
}

// function reads the arguments of a function into t.
func (p *formulaParser) function(name string, t *term) *term {
	if sign, _ := p.next("("); sign == 0 {
		p.expected(`"(" after ` + name)
	}
	args := []*term{p.sum()}
	for sign, _ := p.next(","); sign != 0; sign, _ = p.next(",") {
		args = append(args, p.sum())
	}
	p.close()
	op := byte(least)
	switch {
	case name == "clip" && len(args) != 3:
		p.failf(t.column-1, "clip takes 3 arguments, it has %d; for example: clip(quality, 0, 1)", len(args))
		return t
	case name != "clip" && len(args) < 2:
		p.failf(t.column-1, "%s takes 2 arguments or more, it has 1; for example: %s(quality, 0.5)", name, name)
		return t
	case name == "clip":
		low := &term{op: largest, args: args[:2], column: t.column}
		return &term{op: least, args: []*term{low, args[2]}, name: name, column: t.column}
	case name == "max":
		op = largest
	}
	all := args[0]
	for _, a := range args[1:] {
		all = &term{op: op, args: []*term{all, a}, column: t.column}
	}
	return all
}

func (p *formulaParser) close() {
	if sign, _ := p.next(")"); sign == 0 {
		p.expected(`")"`)
	}
}
