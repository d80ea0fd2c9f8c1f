package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/grammar"
	"hindsight/internal/ope"
)

// Targets lists the policies that a log can judge.
func Targets() []grammar.Entry {
	return []grammar.Entry{
		grammar.Word("logging", "", "the policy that made the log"),
		grammar.Word("uniform", "", "every action alike"),
		grammar.Word("always", "ACTION", "one action always"),
		grammar.Word("baseline", "", "the action that each event names as its baseline (_ba of dsjson, baseline of "+
			"our events)"),
		grammar.Word("hash", "FEATURE", "the action whose index is the feature's first 8 hexadecimal digits modulo "+
			"the number of actions (of another text: of its SHA-256)"),
		grammar.Word("eps", "E,POLICY", "any action with probability E, else the other policy"),
		grammar.Word("learner", "LEARNER", "a learner that learns every row of the log, each after it was asked"),
		grammar.Word("model", "FILE", "the same with a model file"),
		grammar.Word("snapshot", "N", "the learner of a live system (--log) as it was after feedback N, which learns "+
			"no more; without N as it is now (or --at N)"),
		grammar.Word("table", "FILE", "a saved table of probabilities: CSV with a column an action, and id or row "+
			"(or in order); or JSON lines with id or row, and propensities"),
	}
}

// target is a policy to be judged on the rows of an [OffPolicy].
type target struct {
	law    ope.Policy   // nil: the one that made the log
	failed func() error // of a law that can; nil: it cannot
	flags  []string     // what speaks against believing what is said of it
	madeOf string       // a digest of what it is made of beside its specification and the log; [unknown]: nothing says
}

var errTarget = errors.New("expected logging, uniform, baseline, always:ACTION, hash:FEATURE, eps:E,POLICY, " +
	"learner:LEARNER, model:FILE, snapshot, snapshot:N or table:FILE; for example always:7, or eps:0.1,hash:country")

// target returns the policy that a specification names.
func (o *OffPolicy) target(spec string) (*target, error) {
	name, rest, has := strings.Cut(spec, ":")
	var t *target
	var err error
	switch {
	case !has && name == "logging":
		t = &target{}
	case !has && name == "uniform":
		t = &target{law: o.uniformly(1)}
	case !has && name == "baseline":
		t, err = o.baseline()
	case has && name == "always":
		t, err = o.always(rest)
	case has && name == "hash":
		t, err = o.hash(rest)
	case has && name == "eps":
		t, err = o.epsilon(rest)
	case has && name == "table":
		t, err = o.table(rest)
	case (has && (name == "learner" || name == "model") || name == "snapshot") && o.learner != nil:
		t, err = o.progressive(name, rest)
	default:
		return nil, fmt.Errorf("policy %q: %w", spec, errTarget)
	}
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", spec, err)
	}
	return t, nil
}

// uniformly returns a law that turns the one in dst into epsilon of the uniform one, over
// what the row may play, and the rest of the law.
func (o *OffPolicy) uniformly(epsilon float64) ope.Policy {
	var eligible []int32
	return func(dst []float64, t int) {
		eligible = o.log.Eligible(eligible[:0], o.row(t))
		for _, a := range eligible {
			dst[a] = epsilon/float64(len(eligible)) + (1-epsilon)*dst[a]
		}
	}
}

func (o *OffPolicy) always(action string) (*target, error) {
	a := slices.Index(o.log.Actions, action)
	if a < 0 {
		return nil, fmt.Errorf("there is no action %q in the log; there are %s", action, strings.Join(o.log.Actions,
			", "))
	}
	var eligible []int32
	return &target{law: func(dst []float64, t int) {
		eligible = o.log.Eligible(eligible[:0], o.row(t))
		if slices.Contains(eligible, int32(a)) {
			dst[a] = 1
			return
		}
		for _, a := range eligible {
			dst[a] = 1 / float64(len(eligible))
		}
	}}, nil
}

// hash plays one of the actions that a row may play by the text of a feature; one that is absent counts as "".
func (o *OffPolicy) hash(feature string) (*target, error) {
	if have := o.log.Features(); have != nil && !slices.Contains(have, feature) {
		return nil, fmt.Errorf("there is no feature %q in the log; there are %s", feature, strings.Join(have, ", "))
	}
	var eligible []int32
	return &target{law: func(dst []float64, t int) {
		eligible = o.log.Eligible(eligible[:0], o.row(t))
		dst[eligible[hashText(o.log.Text(o.row(t), feature))%uint64(len(eligible))]] = 1
	}}, nil
}

// hashText returns the number that a text's first 8 hexadecimal digits are, or if it
// does not begin with so many, those of its SHA-256.
func hashText(text string) uint64 {
	if len(text) >= 8 {
		if v, err := hex.DecodeString(text[:8]); err == nil {
			return uint64(v[0])<<24 | uint64(v[1])<<16 | uint64(v[2])<<8 | uint64(v[3])
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hashText(hex.EncodeToString(sum[:]))
}

func (o *OffPolicy) epsilon(rest string) (*target, error) {
	number, spec, ok := strings.Cut(rest, ",")
	epsilon, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(epsilon >= 0 && epsilon <= 1) {
		return nil, fmt.Errorf("eps takes E,POLICY with E in [0,1], found %q", rest)
	}
	base, err := o.target(spec)
	if err != nil {
		return nil, err
	}
	if base.law == nil {
		return nil, errors.New("the log does not hold the probabilities with which logging would have played other " +
			"actions: it cannot be mixed")
	}
	mix := o.uniformly(epsilon)
	return &target{failed: base.failed, flags: base.flags, madeOf: base.madeOf, law: func(dst []float64, t int) {
		base.law(dst, t)
		mix(dst, t)
	}}, nil
}

// Mixed returns the policy that a specification mixes with uniform play; itself if it mixes none.
func Mixed(spec string) string {
	for strings.HasPrefix(spec, "eps:") {
		_, spec, _ = strings.Cut(spec, ",")
	}
	return spec
}

func (o *OffPolicy) progressive(kind, spec string) (*target, error) {
	p, err := o.learner(kind, spec)
	if err != nil {
		return nil, err
	}
	return &target{failed: func() error { return p.err }, madeOf: p.madeOf, law: func(dst []float64, t int) {
		p.law(dst, int(o.rows[t]))
	}}, nil
}
