package delay

import (
	"fmt"
	"math"
	"slices"

	"hindsight/internal/grammar"
	"hindsight/pkg/oracle"
)

// delayKind is one word of the grammar of delays.
type delayKind struct {
	grammar.Entry
	file bool // it takes the name of a file instead
	open func(t *delayTerm, o *Options) error
	draw func(t *delayTerm, p *Play) int64
}

// Own is the word for delays that a file holds.
const Own = "recorded"

func delayKinds() []delayKind {
	return slices.Concat(lawKinds(), orderKinds(), adaptiveKinds(), []delayKind{
		{Entry: grammar.Word(Own, "",
			"the log's own times of decisions and outcomes; for a bandit log with --outcome-time-column"),
			open: openOwnDelays, draw: drawRecorded},
		{Entry: grammar.Word(Own, "FILE",
			"the delays of a file: a whole number a line, or the word never; or a CSV with the columns decision_ts "+
				"and outcome_ts (or as the flags say); from its top again when it ends"),
			file: true, open: openFileDelays, draw: drawRecorded},
	})
}

func positiveArg(name string, hi float64) grammar.Argument {
	return grammar.Number(name, 1e-9, hi)
}

// lawKinds are delays drawn from a law.
func lawKinds() []delayKind {
	return []delayKind{
		{Entry: grammar.Word("none", "", "every outcome is known to the next decision"),
			draw: func(*delayTerm, *Play) int64 { return 0 }},
		{Entry: grammar.Word("constant", "d", "every outcome comes after d later decisions", grammar.Count("d")),
			draw: func(t *delayTerm, _ *Play) int64 { return int64(t.args[0]) }},
		{Entry: grammar.Word("exp", "mean", "exponential delays", positiveArg("mean", 1e9)),
			draw: func(t *delayTerm, p *Play) int64 { return whole(-t.args[0] * oracle.Log(t.uniform(p))) }},
		{Entry: grammar.Word("lognormal", "median,sigma", "log-normal delays: half come within the median, some very "+
			"late", positiveArg("median", 1e9), grammar.Number("sigma", 0, 20)),
			draw: func(t *delayTerm, p *Play) int64 {
				return whole(t.args[0] * oracle.Exp(float64(t.args[1]*t.stream.Normal(uint64(p.Round), 0))))
			}},
		{Entry: grammar.Word("pareto", "alpha,min", "heavy-tailed delays of at least min; a mean exists for alpha > "+
			"1 only", positiveArg("alpha", 100), positiveArg("min", 1e9)),
			draw: func(t *delayTerm, p *Play) int64 {
				return whole(t.args[1] * oracle.Exp(-oracle.Log(t.uniform(p))/t.args[0]))
			}},
		{Entry: grammar.Word("never", "p", "an outcome is lost with probability p, and comes at once otherwise",
			grammar.Number("p", 0, 1)),
			draw: func(t *delayTerm, p *Play) int64 { return t.lose(p) }},
	}
}

// orderKinds are delays that play with the order of outcomes.
func orderKinds() []delayKind {
	return []delayKind{
		{Entry: grammar.Word("burst", "every", "outcomes come all at once, after every so many decisions",
			grammar.Size("every")),
			draw: func(t *delayTerm, p *Play) int64 {
				every := int64(t.args[0])
				return every - 1 - int64(p.Round)%every
			}},
		{Entry: grammar.Word("head", "every,wait",
			"one round in so many waits and blocks the line, the others come at "+
				"once", grammar.Size("every"), grammar.Count("wait")),
			draw: func(t *delayTerm, p *Play) int64 {
				if int64(p.Round)%int64(t.args[0]) == 0 {
					return int64(t.args[1])
				}
				return 0
			}},
		{Entry: grammar.Word("hold", "from,to,until",
			"outcomes of the rounds from … to−1 come all at once, right before decision until; the others at once",
			grammar.Count("from"), grammar.Count("to"), grammar.Count("until")),
			draw: func(t *delayTerm, p *Play) int64 {
				if r := int64(p.Round); r >= int64(t.args[0]) && r < int64(t.args[1]) {
					return max(0, int64(t.args[2])-1-r)
				}
				return 0
			}},
		{Entry: grammar.Word("reorder", "window",
			"each outcome comes at one of the next so many decisions, all alike: near ones change "+
				"places", grammar.Size("window")),
			draw: func(t *delayTerm, p *Play) int64 {
				return min(int64(float64(t.args[0]*t.uniform(p))), int64(t.args[0])-1)
			}},
	}
}

// adaptiveKinds are delays that look at what was played and at what it was worth.
func adaptiveKinds() []delayKind {
	return []delayKind{
		{Entry: grammar.Word("starve-best", "extra",
			"outcomes of the best action are held back for so many decisions, the others come at once",
			grammar.Count("extra")), open: needsTruth,
			draw: func(t *delayTerm, p *Play) int64 {
				if p.Truth != nil && p.Truth[p.Action] == slices.Min(p.Truth) {
					return int64(t.args[0])
				}
				return 0
			}},
		{Entry: grammar.Word("loss", "low,high", "the delay depends on the loss: low for loss 0, high for loss 1",
			grammar.Count("low"), grammar.Count("high")),
			draw: func(t *delayTerm, p *Play) int64 {
				return whole(t.args[0] + float64((t.args[1]-t.args[0])*p.Loss))
			}},
		{Entry: grammar.Word("never-bad", "p", "a loss of 1 is lost with probability p, everything else comes at once",
			grammar.Number("p", 0, 1)),
			draw: func(t *delayTerm, p *Play) int64 {
				if p.Loss < 1 {
					return 0
				}
				return t.lose(p)
			}},
	}
}

// uniform is the term's draw for a round.
func (t *delayTerm) uniform(p *Play) float64 { return t.stream.Uniform(uint64(p.Round), 0) }

// lose loses an outcome with the probability that is the first parameter.
func (t *delayTerm) lose(p *Play) int64 {
	if t.uniform(p) < t.args[0] {
		return Never
	}
	return 0
}

func needsTruth(t *delayTerm, o *Options) error {
	if o.Unknown {
		return fmt.Errorf("%s: the best action is not known of this data; it is of a built-in environment and of a "+
			"labelled CSV", t.kind.Name)
	}
	return nil
}

// whole rounds a positive delay to a whole number of decisions.
func whole(x float64) int64 {
	if !(x < grammar.MaxCount) {
		return grammar.MaxCount
	}
	return int64(math.Floor(float64(x) + 0.5)) // the conversion keeps x·y + ½ from being fused
}

// List lists the delays.
func List() []grammar.Entry {
	var out []grammar.Entry
	for _, k := range delayKinds() {
		out = append(out, k.Entry)
	}
	return out
}
