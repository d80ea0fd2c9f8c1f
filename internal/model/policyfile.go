package model

import (
	"slices"
	"strconv"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// PolicyFile is a finite class of decision lists as its file says it: JSON lines, a header and then one policy a line.
//
//	{"hindsight_policies":1,"actions":["red","green"]}
//	{"prior":1,"rules":[{"if":{"country":"DE","age":[18,30],"vip":true},"then":"red"},{"then":"green"}]}
//
// The first rule whose conditions all hold and whose action is eligible is played. A
// condition is a text, a bool or a number that the feature must equal, or the least and
// the largest number that it may be. The last rule has no conditions.
type PolicyFile struct {
	Actions  []string
	Policies []PolicyLine // at least one
}

// PolicyLine is one line of a policy file.
type PolicyLine struct {
	Prior float64 // > 0, up to a common factor
	Rules learner.DecisionList
}

const (
	policyHeaderExample = `{"hindsight_policies":1,"actions":["red","green"]}`
	policyExample       = `{"rules":[{"if":{"country":"DE"},"then":"red"},{"then":"green"}]}`
)

// ParsePolicies reads a policy file. The error is an *[Error] with the file, the line and, within a line, the column.
func ParsePolicies(name string, b []byte) (*PolicyFile, error) {
	var f *PolicyFile
	size := 0
	lines, err := jsonLines(name, "policy", policyHeaderExample, b, func(line int, text []byte) error {
		r := &lineReader{file: name, line: line, body: text}
		r.Reset(text)
		if f == nil {
			f = &PolicyFile{}
			f.readHeader(r)
		} else {
			f.readPolicy(r, &size)
		}
		return r.end()
	})
	if err == nil && len(f.Policies) == 0 {
		err = &Error{File: name, Line: int64(lines), Msg: "there is no policy; add a line, for example " +
			policyExample}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *PolicyFile) readHeader(r *lineReader) {
	start, version := r.column(), false
	r.object(member{"hindsight_policies", func(at int) {
		version = true
		if v := r.Number(); v != 1 {
			r.fail(at, "hindsight_policies is %v, this version reads 1", v)
		}
	}}, member{"actions", func(int) { r.list(func(at int) { f.readAction(r, at) }) }})
	if !version {
		r.fail(start, "the first line is not a policy header: no hindsight_policies; for example %s",
			policyHeaderExample)
	}
	if len(f.Actions) == 0 {
		r.fail(start, "actions: expected at least one name; for example %s", policyHeaderExample)
	}
}

func (f *PolicyFile) readAction(r *lineReader, at int) {
	a := r.Text()
	if err := checkText(a); err != nil {
		r.fail(at, "an action's name %v", err)
	}
	if slices.Contains(f.Actions, a) {
		r.fail(at, "the action %q is there twice", a)
	}
	if len(f.Actions) == codec.MaxActions {
		r.fail(at, "more than %d actions", codec.MaxActions)
	}
	f.Actions = append(f.Actions, a)
}

func (f *PolicyFile) readPolicy(r *lineReader, size *int) {
	l, start := PolicyLine{Prior: 1}, r.column()
	closed := func() bool { n := len(l.Rules); return n > 0 && len(l.Rules[n-1].If) == 0 }
	rule := func(at int) {
		if closed() {
			r.fail(at, "the rule before this one has no conditions: nothing comes here")
		}
		rule := f.readRule(r)
		if *size += 1 + len(rule.If); *size > maxClassNumbers {
			r.fail(at, "more than %d rules and conditions in all", maxClassNumbers)
		}
		l.Rules = append(l.Rules, rule)
	}
	r.object(member{"prior", func(at int) {
		if l.Prior = r.Number(); l.Prior < 1e-300 {
			r.fail(at, "prior: expected a positive number, found %v; leave a policy out to give it none", l.Prior)
		}
	}}, member{"rules", func(int) { r.list(rule) }})
	if len(l.Rules) == 0 {
		r.fail(start, "rules: expected at least one; for example %s", policyExample)
	}
	if !closed() {
		r.fail(start, "the last rule must have no \"if\", so that there is always something to play; for example %s",
			policyExample)
	}
	f.Policies = append(f.Policies, l)
}

func (f *PolicyFile) readRule(r *lineReader) (rule learner.Rule) {
	start := r.column()
	r.object(member{"if", func(int) {
		r.members(func(feature string, at int) {
			if err := checkText(feature); err != nil {
				r.fail(at, "a feature's name %v", err)
			}
			rule.If = append(rule.If, readCondition(r, feature))
		})
		slices.SortFunc(rule.If, func(a, b learner.Condition) int { return strings.Compare(a.Feature, b.Feature) })
	}}, member{"then", func(at int) {
		if rule.Then = r.Text(); !slices.Contains(f.Actions, rule.Then) {
			r.fail(at, "then: %q is not among the actions of the first line", rule.Then)
		}
	}})
	if rule.Then == "" {
		r.fail(start, "a rule has no then; for example {\"then\":%q}", f.Actions[0])
	}
	return rule
}

// readCondition reads what a feature must be.
func readCondition(r *lineReader, feature string) learner.Condition {
	c, at := learner.Condition{Feature: feature, Kind: oracle.Number}, r.column()
	switch b := r.Peek(); {
	case b == '"':
		c.Kind, c.Text = oracle.Text, r.Text()
	case b == 't' || b == 'f':
		if c.Kind = oracle.Bool; r.Boolean() {
			c.Lo, c.Hi = 1, 1
		}
	case b == '[':
		var bounds []float64
		if bounds = r.Numbers(bounds); len(bounds) != 2 || bounds[0] > bounds[1] {
			r.fail(at, "if: %q: expected the least and the largest number, for example [18,30]", feature)
			return c
		}
		c.Lo, c.Hi = bounds[0]+0, bounds[1]+0
	case b == '-' || b >= '0' && b <= '9':
		c.Lo = r.Number() + 0
		c.Hi = c.Lo
	default:
		r.fail(at, "if: %q: expected a text, a number, true, false or two numbers", feature)
	}
	return c
}

// Append appends the policy file's bytes; equal classes have equal bytes.
func (f *PolicyFile) Append(dst []byte) []byte {
	dst = appendStrings(append(dst, `{"hindsight_policies":1,"actions":`...), f.Actions)
	dst = append(dst, "}\n"...)
	for _, l := range f.Policies {
		dst = appendNumber(append(dst, `{"prior":`...), l.Prior)
		dst = appendList(append(dst, `,"rules":`...), l.Rules, appendRule)
		dst = append(dst, "}\n"...)
	}
	return dst
}

func appendRule(dst []byte, r learner.Rule) []byte {
	dst = append(dst, '{')
	if len(r.If) > 0 {
		for i, c := range r.If {
			start := `,`
			if i == 0 {
				start = `"if":{`
			}
			dst = append(appendJSON(append(dst, start...), c.Feature), ':')
			switch {
			case c.Kind == oracle.Text:
				dst = appendJSON(dst, c.Text)
			case c.Kind == oracle.Bool:
				dst = strconv.AppendBool(dst, c.Lo != 0)
			case c.Lo == c.Hi:
				dst = appendNumber(dst, c.Lo)
			default:
				dst = appendNumbers(dst, []float64{c.Lo, c.Hi})
			}
		}
		dst = append(dst, "},"...)
	}
	return append(appendJSON(append(dst, `"then":`...), r.Then), '}')
}

// Class returns the policies in the form that a learner asks.
func (f *PolicyFile) Class() (*learner.DecisionLists, error) {
	lists := each(f.Policies, func(l *PolicyLine) learner.DecisionList { return l.Rules })
	return learner.NewDecisionLists(f.Actions, lists)
}

// Priors returns the prior weight of each policy, up to a factor.
func (f *PolicyFile) Priors() []float64 {
	return each(f.Policies, func(l *PolicyLine) float64 { return l.Prior })
}
