// Package delay says when outcomes come back: the grammar of delays, adversaries, delays that logs and files
// recorded, and a search for the worst. It measures the delays of a run.
package delay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/grammar"
	"hindsight/internal/logs"
	"hindsight/internal/random"
)

// Never is the delay of an outcome that does not come.
const Never int64 = -1

// Play is what an adversary may look at when it chooses the delay of a round:
// everything but what the learner will draw in later rounds.
type Play struct {
	Round  int       // t = 0, 1, 2, …
	Action int       // played, an index into the environment's actions
	Loss   float64   // in [0,1], that the action has in this round
	Truth  []float64 // expected loss an action; nil where it is not known
}

// Delays says when outcomes come back, as a pure function of the play.
type Delays struct {
	Spec string // which [Parse] reads
	// Delay returns how many later decisions of the partition are made before the outcome of the round is
	// there: 0 means known to the next decision, [Never] that it does not come.
	Delay    func(p *Play) int64
	Times    []int64   // log times at which outcomes come, if those are the log's own; else nil
	Recorded [][]int64 // what of a log or of files they depend on
	// Of are the delays of named outcomes that have some of their own, by name; Delay is that of all others at once,
	// nil if there are none.
	Of map[string]*Delays
}

var errDelays = errors.New("expected NAME or NAME:NUMBER,…, several joined by +; for example: none, exp:50, " +
	"lognormal:20,1.5, constant:10+never:0.05; `replayer list` names them all")

// Options are what the meaning of a specification of delays depends on.
type Options struct {
	Seed          uint64
	Unknown       bool               // the best action is not known
	Decided, Came []int64            // log times of decisions and outcomes; nil: the data has none
	Outcomes      []string           // that the model names, and may have delays of their own
	Named         map[string][]int64 // log times of theirs; of those that have none nothing is there
	// Times names the columns of the times in a CSV file that recorded:FILE lends its
	// delays from; "" stands for decision_ts and outcome_ts.
	Times logs.Mapping
}

// Parse reads a specification of delays: a word with its numbers (pareto:1.5,10), or a sum of them (constant:10+exp:5).
// Terms of a sum draw independently; an outcome that one of them loses is lost. Behind it, or instead of it, named
// outcomes may have delays of their own (exp:50,cost=none,quality=constant:100), which draw independently.
func Parse(spec string, o Options) (*Delays, error) {
	first, named, err := splitNames(spec, o.Outcomes)
	if err != nil {
		return nil, err
	}
	d := &Delays{Spec: first}
	if len(o.Outcomes) == 0 || first != "" && first != Own {
		if d, err = parse(first, "delay ", o); err != nil {
			return nil, err
		}
	}
	for _, name := range o.Outcomes {
		text, has := named[name]
		if !has && d.Delay != nil {
			continue
		}
		o.Came = o.Named[name]
		x, err := parse(cmp.Or(text, Own), "delay "+name+" ", o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if d.Of == nil {
			d.Of = map[string]*Delays{}
		}
		if d.Of[name] = x; has {
			d.Spec += "," + name + "=" + x.Spec
		}
		d.Recorded = append(d.Recorded, x.Recorded...)
	}
	d.Spec = strings.TrimPrefix(d.Spec, ",")
	return d, nil
}

// splitNames splits a specification into its beginning and what it says of named outcomes.
func splitNames(spec string, names []string) (first string, named map[string]string, err error) {
	var name string
	for part := range strings.SplitSeq(spec, ",") {
		if before, after, is := strings.Cut(part, "="); is && !strings.ContainsAny(before, ":+") {
			if name = strings.TrimSpace(before); !slices.Contains(names, name) {
				return "", nil, fmt.Errorf("delays %q: no outcome is called %q; there are %q", spec, name, names)
			}
			if _, again := named[name]; again {
				return "", nil, fmt.Errorf("delays %q: the outcome %s is there twice", spec, name)
			}
			if named == nil {
				named = map[string]string{}
			}
			named[name] = after
		} else if name != "" {
			named[name] += "," + part
		} else {
			first = strings.TrimPrefix(first+","+part, ",")
		}
	}
	return first, named, nil
}

// parse reads delays without names; streams of draws have names that begin with stream.
func parse(spec, stream string, o Options) (*Delays, error) {
	var terms []delayTerm
	var names []string
	d := &Delays{}
	for i, text := range strings.Split(spec, "+") {
		term, err := parseTerm(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("delays %q: %w", spec, err)
		}
		term.stream = random.New(o.Seed, stream+strconv.Itoa(i))
		if term.kind.open != nil {
			if err := term.kind.open(&term, &o); err != nil {
				return nil, fmt.Errorf("delays %q: %w", spec, err)
			}
		}
		terms = append(terms, term)
		names = append(names, term.String())
		d.Recorded = append(d.Recorded, term.delays, term.times)
	}
	if len(terms) == 1 {
		d.Times = terms[0].times
	}
	d.Spec = strings.Join(names, "+")
	d.Delay = func(p *Play) int64 {
		total := int64(0)
		for i := range terms {
			v := terms[i].kind.draw(&terms[i], p)
			if v == Never {
				return Never
			}
			total = min(total+v, grammar.MaxCount)
		}
		return total
	}
	return d, nil
}

type delayTerm struct {
	kind   delayKind
	args   []float64
	file   string // of recorded:FILE
	stream random.Stream
	delays []int64 // recorded by a file
	// Recorded by the log itself, instead of delays: log times of its decisions and outcomes.
	decided, times []int64
}

func parseTerm(text string) (delayTerm, error) {
	name, rest, has := strings.Cut(text, ":")
	for _, k := range delayKinds() {
		if k.Name != name || k.file != (has && k.Name == Own) {
			continue
		}
		if k.file {
			if rest == "" {
				return delayTerm{}, fmt.Errorf("%s takes %s, found none: %w", name, k.Usage(), errDelays)
			}
			return delayTerm{kind: k, file: rest}, nil
		}
		args, err := k.Parse(rest, has)
		if err != nil {
			return delayTerm{}, fmt.Errorf("%w: %w", err, errDelays)
		}
		return delayTerm{kind: k, args: args}, nil
	}
	return delayTerm{}, fmt.Errorf("unknown delay %q: %w", name, errDelays)
}

func (t delayTerm) String() string {
	if t.file != "" {
		return t.kind.Name + ":" + t.file
	}
	return grammar.Write(t.kind.Name, t.args...)
}
