package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// Page makes the report of a backtest.
func (r *Results) Page() *Page {
	b := &builder{Results: r, groups: replay.Groups(r.Runs)}
	p := &Page{Title: "What " + b.name() + " says", Subtitle: b.subtitle(), Foot: b.foot()}
	p.Flags, p.Tiles, p.Says = b.flags(), b.tiles(), b.says()
	p.Sections = []Section{b.intake(), b.health(), b.policies(), b.value(), b.delays(), b.regret(), b.sweep(), b.contexts(), b.parameters()}
	return p
}

// builder makes the parts of a page.
type builder struct {
	*Results
	groups [][]*replay.Result
}

// name names what was replayed.
func (b *builder) name() string {
	switch {
	case b.Data != nil:
		return b.Data.Name
	case len(b.Runs) > 0:
		return b.Runs[0].Environment
	}
	return "the log"
}

func (b *builder) subtitle() string {
	var parts []string
	if d := b.Data; d != nil {
		parts = append(parts, replay.Count(d.Rounds)+" rounds", fmt.Sprintf("%d actions", d.Actions))
		if d.First != nil {
			parts = append(parts, "from "+d.First.Format("2006-01-02 15:04")+" to "+d.Last.Format("2006-01-02 15:04")+" UTC")
		}
	}
	if n := len(b.Runs); n > 0 {
		parts = append(parts, fmt.Sprintf("%d runs", n))
	}
	if n := len(b.Policies); n > 0 {
		parts = append(parts, fmt.Sprintf("%d policies judged", n))
	}
	if b.Interrupted {
		parts = append(parts, "interrupted")
	}
	return strings.Join(parts, " · ")
}

func (b *builder) foot() string {
	text := "Charts by " + Library + " (MIT licence), embedded; this file loads nothing from anywhere."
	if p := b.Parameters; p != nil {
		text = "Made " + p.Made.UTC().Format("2006-01-02 15:04 UTC") + " by replayer " + p.Version + ". " + text
	}
	return text
}

// called names a group of runs.
func called(g []*replay.Result) string {
	return g[0].Learner + ", delays " + g[0].Delays.Spec
}

// manySkipped is the share of rounds without an outcome in time that is flagged.
const manySkipped = .1

// interrupted says what an interrupted backtest is not.
const interrupted = "this backtest was interrupted: what follows is what was finished by then, not all that was asked for. With --resume FILE the same command goes on from there."

// flags are what speaks against believing the figures, the worst first.
func (b *builder) flags() []Flag {
	var out []Flag
	add := func(l Level, format string, args ...any) { out = append(out, Flag{l, fmt.Sprintf(format, args...)}) }
	for _, p := range b.Policies {
		for _, f := range p.Flags {
			add(Bad, "policy %s: %s.", p.Policy, f)
		}
	}
	out = shared(out, b.Policies)
	if b.Interrupted {
		out = slices.Insert(out, 0, Flag{Bad, interrupted})
	}
	for _, g := range b.groups {
		if i := slices.IndexFunc(g, func(r *replay.Result) bool { return r.LateLosses.Differ }); i >= 0 {
			add(Bad, "%s: %s.", called(g), g[i].LateLosses.Warning())
		}
		if s := skipped(g); s > manySkipped {
			add(Warn, "%s: %s of the rounds were not learned, for no outcome came in the window of %s; replayer window prices longer ones.", called(g), replay.Percent(s), g[0].Window)
		}
	}
	if b.Intake != nil {
		for _, note := range b.Intake.Notes() {
			add(Warn, "%s.", note)
		}
	}
	if text := b.vacuous(); text != "" {
		add(Warn, "%s", text)
	}
	if len(out) == 0 {
		add(Good, "none of the checks of this report speaks against its figures.")
	}
	slices.SortStableFunc(out, func(a, b Flag) int { return rank(a.Level) - rank(b.Level) })
	return out
}

func rank(l Level) int { return slices.Index([]Level{Bad, Warn, Good}, l) }

// shared makes one flag of what is said of all of several policies.
func shared(flags []Flag, policies []*ope.Evaluation) []Flag {
	if len(policies) < 2 {
		return flags
	}
	var out []Flag
	for _, f := range policies[0].Flags {
		if !slices.ContainsFunc(policies, func(p *ope.Evaluation) bool { return !slices.Contains(p.Flags, f) }) {
			flags = slices.DeleteFunc(flags, func(x Flag) bool { return strings.HasSuffix(x.Text, ": "+f+".") })
			out = append(out, Flag{Bad, "all policies: " + f + "."})
		}
	}
	return append(out, flags...)
}

// vacuous says which runs have no bound below T.
func (b *builder) vacuous() string {
	var names []string
	for _, g := range b.groups {
		if bounds := boundsOf(g[0]); len(bounds) > 0 && !slices.ContainsFunc(bounds, func(x bound) bool { return !x.Vacuous }) {
			names = append(names, called(g))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if len(names) == len(b.groups) && len(names) > 1 {
		names = []string{"all runs"}
	}
	return "no bound on the regret says anything for " + strings.Join(names, "; ") + ": each is at least as large as the number of rounds. What is seen may be good; it is not guaranteed."
}

// mean is that of runs, NaN where one has no value; se is that of the mean, NaN of one.
func meanOf(g []*replay.Result, of func(*replay.Result) float64) (mean, se float64) {
	values := make([]float64, len(g))
	for i, r := range g {
		values[i] = of(r)
	}
	e := replay.NewEstimate(values)
	if e.SE == nil {
		return e.Value, math.NaN()
	}
	return e.Value, *e.SE
}

// lossOf is the value of a group with its standard error: over row orders, or of a
// weighted mean.
func lossOf(g []*replay.Result) (loss, se float64) {
	loss, se = meanOf(g, func(r *replay.Result) float64 { v, _ := r.Value(); return v })
	if len(g) == 1 {
		_, se = g[0].Value()
	}
	return loss, se
}

func skipped(g []*replay.Result) float64 {
	s, _ := meanOf(g, func(r *replay.Result) float64 { return float64(r.Fates.Skipped) / float64(max(r.Rounds, 1)) })
	return s
}

// plusMinus writes a value with its standard error if that is known.
func plusMinus(value, se float64) string {
	switch {
	case math.IsNaN(value):
		return "–"
	case math.IsNaN(se) || se == 0:
		return replay.Digits(value)
	}
	return strings.Replace(replay.WithError(value, se), "±", " ± ", 1)
}

// undelayed returns the group of the same learner without delays, nil if there is none.
func (b *builder) undelayed(learner string) []*replay.Result {
	for _, g := range b.groups {
		if g[0].Learner == learner && g[0].Delays.Spec == "none" {
			return g
		}
	}
	return nil
}

// delayed returns the first group with delays, else the first.
func (b *builder) delayed() []*replay.Result {
	for _, g := range b.groups {
		if g[0].Delays.Spec != "none" {
			return g
		}
	}
	if len(b.groups) > 0 {
		return b.groups[0]
	}
	return nil
}

func (b *builder) tiles() []Tile {
	var out []Tile
	if g := b.delayed(); g != nil {
		r := g[0]
		loss, se := lossOf(g)
		out = append(out, Tile{"Mean loss of " + r.Learner, replay.Digits(loss), within(se) + "a round, delays " + r.Delays.Spec})
		if r.UniformLoss != nil {
			out = append(out, Tile{"To compare with", replay.Digits(*r.UniformLoss), "the uniform policy; the best has " + replay.Digits(*r.BestLoss)})
		}
		if none := b.undelayed(r.Learner); none != nil && none[0] != r {
			without, _ := lossOf(none)
			out = append(out, Tile{"What delays cost", signed(loss - without), "loss a round above that without delay"})
		}
		out = append(out, Tile{"Rounds that wait", replay.Digits(r.Delays.Released.Mean), fmt.Sprintf("on average when one is decided; %s wait for their outcome alone", replay.Digits(r.Delays.Raw.Mean))})
	}
	if p := b.best(); p != nil {
		e := judge(p)
		out = append(out, Tile{"Best policy: " + p.Policy, replay.Digits(float64(e.Value)), fmt.Sprintf("%s by %s; 95 %%: %s to %s", b.Estimators.Of, strings.ToUpper(e.Name), replay.Digits(float64(e.Low)), replay.Digits(float64(e.High)))})
	}
	return out
}

// within writes a standard error before a note.
func within(se float64) string {
	if math.IsNaN(se) || se == 0 {
		return ""
	}
	return "± " + replay.Short(se) + " "
}

// signed writes a difference.
func signed(x float64) string {
	if x > 0 {
		return "+" + replay.Digits(x)
	}
	return strings.Replace(replay.Digits(x), "-", "−", 1)
}

// says are the sentences at the top.
func (b *builder) says() []string {
	var out []string
	if g := b.delayed(); g != nil {
		out = append(out, b.saysLoss(g))
		if text := b.saysDelay(g); text != "" {
			out = append(out, text)
		}
	}
	if text := b.saysPolicies(); text != "" {
		out = append(out, text)
	}
	return out
}

func (b *builder) saysLoss(g []*replay.Result) string {
	r := g[0]
	loss, se := lossOf(g)
	text := fmt.Sprintf("%s lost %s a round over %s rounds of %s", r.Learner, plusMinus(loss, se), replay.Count(r.Rounds), r.Environment)
	if r.UniformLoss != nil {
		text += fmt.Sprintf(": %s less than the uniform policy, and %s more than the best that could be done", replay.Digits(*r.UniformLoss-loss), replay.Digits(loss-*r.BestLoss))
	}
	if r.Matched != nil {
		text += fmt.Sprintf(", judged on the %s rounds in which it drew the action of the log", replay.Percent(float64(*r.Matched)/float64(max(r.Rounds, 1))))
	}
	return text + "."
}

// saysDelay compares a group with the same learner without delay.
func (b *builder) saysDelay(g []*replay.Result) string {
	none := b.undelayed(g[0].Learner)
	if none == nil || none[0] == g[0] {
		return ""
	}
	loss, _ := lossOf(g)
	without, _ := lossOf(none)
	text := fmt.Sprintf("Without delay it would have lost %s a round: ", replay.Digits(without))
	diffs := make([]float64, min(len(g), len(none)))
	for i := range diffs {
		x, _ := g[i].Value()
		y, _ := none[i].Value()
		diffs[i] = x - y
	}
	e := replay.NewEstimate(diffs)
	if _, a := lossOf(g); e.SE == nil && !math.IsNaN(a) { // of weighted means
		_, b := lossOf(none)
		apart := math.Hypot(a, b)
		e.SE = &apart
	}
	switch {
	case e.SE == nil:
		return text + fmt.Sprintf("the delays cost %s, in one row order, whose noise is not known; --orders 5 measures it.", signed(loss-without))
	case math.Abs(e.Value) <= 2**e.SE:
		return text + fmt.Sprintf("the difference of %s is within twice its standard error of %s, and may be chance.", signed(e.Value), replay.Short(*e.SE))
	}
	return text + fmt.Sprintf("the delays cost %s.", plusMinus(e.Value, *e.SE))
}
