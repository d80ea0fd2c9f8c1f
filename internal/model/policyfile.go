package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// PolicyFile is a finite class of decision lists as its file says it: JSON lines, a
// header and then one policy a line.
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

// ParsePolicies reads a policy file. The error is an *[Error] with the file, the line
// and, within a line, the column.
func ParsePolicies(name string, b []byte) (*PolicyFile, error) {
	if len(b) > MaxClassBytes {
		return nil, &Error{File: name, Msg: fmt.Sprintf("the policy file has %d bytes, at most %d are allowed", len(b), MaxClassBytes)}
	}
	var f *PolicyFile
	line, size := 0, 0
	for len(b) > 0 {
		var text []byte
		text, b, _ = bytes.Cut(b, []byte{'\n'})
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		p := newLineParser(name, line, text)
		var err error
		if f == nil {
			f, err = p.policyHeader()
		} else {
			err = p.policy(f, &size)
		}
		if err == nil {
			err = p.end()
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case f == nil:
		return nil, &Error{File: name, Line: 1, Msg: "the policy file is empty; its first line is for example " + policyHeaderExample}
	case len(f.Policies) == 0:
		return nil, &Error{File: name, Line: line, Msg: "there is no policy; add a line, for example " + policyExample}
	}
	return f, nil
}

func (p *lineParser) policyHeader() (*PolicyFile, error) {
	f, version := &PolicyFile{}, false
	start := p.column()
	err := p.object(func(key string, at int) error {
		switch key {
		case "hindsight_policies":
			v, err := p.number()
			version = true
			if err == nil && v != 1 {
				err = p.errorf(at, "hindsight_policies is %v, this version reads 1", v)
			}
			return err
		case "actions":
			return p.array(func(at int) error {
				a, err := p.text()
				if err != nil {
					return err
				}
				if err := checkText(a); err != nil {
					return p.errorf(at, "an action's name %v", err)
				}
				if slices.Contains(f.Actions, a) {
					return p.errorf(at, "the action %q is there twice", a)
				}
				if len(f.Actions) == codec.MaxActions {
					return p.errorf(at, "more than %d actions", codec.MaxActions)
				}
				f.Actions = append(f.Actions, a)
				return nil
			})
		}
		return p.errorf(at, "unknown key %q; expected hindsight_policies, actions", key)
	})
	switch {
	case err != nil:
		return nil, err
	case !version:
		return nil, p.errorf(start, "the first line is not a policy header: no hindsight_policies; for example %s", policyHeaderExample)
	case len(f.Actions) == 0:
		return nil, p.errorf(start, "actions: expected at least one name; for example %s", policyHeaderExample)
	}
	return f, nil
}

func (p *lineParser) policy(f *PolicyFile, size *int) error {
	l := PolicyLine{Prior: 1}
	start := p.column()
	err := p.object(func(key string, at int) (err error) {
		switch key {
		case "prior":
			if l.Prior, err = p.number(); err == nil && l.Prior < 1e-300 {
				err = p.errorf(at, "prior: expected a positive number, found %v; leave a policy out to give it none", l.Prior)
			}
			return err
		case "rules":
			return p.array(func(at int) error {
				if n := len(l.Rules); n > 0 && len(l.Rules[n-1].If) == 0 {
					return p.errorf(at, "the rule before this one has no conditions: nothing comes here")
				}
				r, err := p.rule(f)
				if *size += 1 + len(r.If); err == nil && *size > MaxClassNumbers {
					err = p.errorf(at, "more than %d rules and conditions in all", MaxClassNumbers)
				}
				l.Rules = append(l.Rules, r)
				return err
			})
		}
		return p.errorf(at, "unknown key %q; expected prior, rules", key)
	})
	switch {
	case err != nil:
		return err
	case len(l.Rules) == 0:
		return p.errorf(start, "rules: expected at least one; for example %s", policyExample)
	case len(l.Rules[len(l.Rules)-1].If) > 0:
		return p.errorf(start, "the last rule must have no \"if\", so that there is always something to play; for example %s", policyExample)
	}
	f.Policies = append(f.Policies, l)
	return nil
}

func (p *lineParser) rule(f *PolicyFile) (r learner.Rule, err error) {
	start := p.column()
	err = p.object(func(key string, at int) (err error) {
		switch key {
		case "if":
			err = p.object(func(feature string, at int) error {
				if err := checkText(feature); err != nil {
					return p.errorf(at, "a feature's name %v", err)
				}
				c, err := p.condition(feature)
				r.If = append(r.If, c)
				return err
			})
			slices.SortFunc(r.If, func(a, b learner.Condition) int { return strings.Compare(a.Feature, b.Feature) })
			return err
		case "then":
			if r.Then, err = p.text(); err == nil && !slices.Contains(f.Actions, r.Then) {
				err = p.errorf(at, "then: %q is not among the actions of the first line", r.Then)
			}
			return err
		}
		return p.errorf(at, "unknown key %q; expected if, then", key)
	})
	if err == nil && r.Then == "" {
		err = p.errorf(start, "a rule has no then; for example {\"then\":%q}", f.Actions[0])
	}
	return r, err
}

// condition reads what a feature must be.
func (p *lineParser) condition(feature string) (learner.Condition, error) {
	c := learner.Condition{Feature: feature}
	at := p.column()
	t, err := p.next()
	if err != nil {
		return c, err
	}
	switch v := t.(type) {
	case string:
		c.Kind, c.Text = oracle.Text, v
		return c, nil
	case bool:
		c.Kind = oracle.Bool
		if v {
			c.Lo, c.Hi = 1, 1
		}
		return c, nil
	case json.Number:
		c.Kind = oracle.Number
		c.Lo, err = p.finite(v, at)
		c.Hi = c.Lo
		return c, err
	case json.Delim:
		if v != '[' {
			break
		}
		c.Kind = oracle.Number
		var bounds []float64
		err := p.rest(func(int) error {
			v, err := p.number()
			bounds = append(bounds, v)
			return err
		})
		if err == nil && (len(bounds) != 2 || bounds[0] > bounds[1]) {
			err = p.errorf(at, "if: %q: expected the least and the largest number, for example [18,30]", feature)
		}
		if err == nil {
			c.Lo, c.Hi = bounds[0], bounds[1]
		}
		return c, err
	}
	return c, p.errorf(at, "if: %q: expected a text, a number, true, false or two numbers", feature)
}

// Append appends the policy file's bytes; equal classes have equal bytes.
func (f *PolicyFile) Append(dst []byte) []byte {
	dst = append(dst, `{"hindsight_policies":1,"actions":`...)
	dst = append(appendStrings(dst, f.Actions), "}\n"...)
	for _, l := range f.Policies {
		dst = append(dst, `{"prior":`...)
		dst = append(appendNumber(dst, l.Prior), `,"rules":[`...)
		for j, r := range l.Rules {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = appendRule(dst, r)
		}
		dst = append(dst, "]}\n"...)
	}
	return dst
}

func appendRule(dst []byte, r learner.Rule) []byte {
	dst = append(dst, '{')
	if len(r.If) > 0 {
		dst = append(dst, `"if":{`...)
		for i, c := range r.If {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSON(dst, c.Feature), ':')
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
	lists := make([]learner.DecisionList, len(f.Policies))
	for i, l := range f.Policies {
		lists[i] = l.Rules
	}
	return learner.NewDecisionLists(f.Actions, lists)
}

// Priors returns the prior weight of each policy, up to a factor.
func (f *PolicyFile) Priors() []float64 {
	q := make([]float64, len(f.Policies))
	for i, l := range f.Policies {
		q[i] = l.Prior
	}
	return q
}

// finite reads a number of a line.
func (p *lineParser) finite(n json.Number, at int) (float64, error) {
	v, err := n.Float64()
	if err != nil || math.IsInf(v, 0) {
		return 0, p.errorf(at, "%s is too large a number", n)
	}
	return v + 0, nil
}

var errLineEnds = errors.New("the line ends inside a JSON object")
