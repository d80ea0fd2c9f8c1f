package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/style"
	"hindsight/internal/words"
)

// Page makes the report of a backtest.
func (r *Results) Page() *Page {
	if r.Summary == nil {
		r.Summarise()
	}
	b := &builder{Results: r, groups: groupsOf(r.Runs)}
	p := &Page{Title: "What " + b.name() + " says", Subtitle: b.subtitle(), Foot: b.foot()}
	p.Verdict = b.verdict()
	b.flags(p)
	p.Tiles, p.Says = b.tiles(), b.says()
	value := b.value()
	value.add(b.candidateCourse(), candidates(b.groups))
	p.Sections = []section{b.intake(), b.health(), b.policies(), value, b.delays(), b.regret(), b.sweep(),
		b.contexts(), b.parameters()}
	if named := b.outcomes(); len(named.Parts) > 0 {
		p.Sections = slices.Insert(p.Sections, 4, named)
	}
	return p
}

// builder makes the parts of a page.
type builder struct {
	*Results
	groups [][]*replay.Result // in the order of Summary
}

// rewards is what the worth of rounds is shown as.
func (b *builder) rewards() *words.Rewards {
	if len(b.Runs) == 0 {
		return nil
	}
	return b.Runs[0].Rewards
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
		parts = append(parts, number(d.Rounds, "round"), number(int64(d.Actions), "action"))
		if d.First != nil {
			parts = append(parts, "from "+d.First.Format("2006-01-02 15:04")+" to "+d.Last.Format("2006-01-02 15:04")+
				" UTC")
		}
	}
	if n := len(b.Runs); n > 0 {
		parts = append(parts, number(int64(n), "run"))
	}
	if n := len(b.Policies); n > 0 {
		parts = append(parts, fmt.Sprintf("policies judged: %d", n))
	}
	if text := replay.InventedDelays(b.Runs); text != "" {
		parts = append(parts, text)
	}
	if b.Interrupted {
		parts = append(parts, "interrupted")
	}
	return strings.Join(parts, " · ")
}

// number writes how many there are of something.
func number(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return words.Count(n) + " " + what
}

func (b *builder) foot() string {
	text := "Charts by " + style.Library + " (MIT licence), embedded; this file loads nothing from anywhere."
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
const interrupted = "this backtest was interrupted: the report shows only the runs that were finished. With --resume " +
	"FILE the same command continues from there."

// flags adds what speaks against believing the figures, the worst first.
func (b *builder) flags(page *Page) {
	add := page.flag
	if b.Interrupted {
		add(bad, interrupted)
	}
	all := ope.SharedFlags(b.Policies)
	for _, f := range all {
		add(bad, "all policies: %s.", f)
	}
	for _, p := range b.Policies {
		if own := slices.DeleteFunc(slices.Clone(p.Flags), func(f string) bool {
			return slices.Contains(all, f)
		}); len(own) > 0 {
			add(bad, "policy %s: %s.", p.Policy, strings.Join(own, ". And: "))
		}
	}
	if r := b.unweighted(); r != nil {
		add(warn, "the log has no propensities. The mean %s of a learner is taken over the rounds in which it drew "+
			"the recorded action, and is a biased estimate. If the log has propensities, name their column with "+
			"--propensity-column.", r.Rewards.Of())
	}
	for k, g := range b.groups {
		if i := slices.IndexFunc(g, func(r *replay.Result) bool { return r.LateLosses.Differ }); i >= 0 {
			add(bad, "%s: %s.", called(g), g[i].LateLosses.Warning(g[i].Rewards))
		}
		for _, text := range g[0].LateWarnings() {
			add(bad, "%s: %s.", called(g), text)
		}
		if void := b.Summary[k].Void; void != "" {
			add(bad, "%s: bounds on the regret are void: %s.", called(g), void)
		}
		if s := float64(b.Summary[k].Skipped); s > manySkipped {
			add(warn, "%s: %s of the rounds were not learned, because no outcome came in the window of %s; replayer "+
				"window computes what longer ones cost.", called(g), words.Percent(s), g[0].Window)
		}
	}
	if b.Intake != nil {
		for _, note := range b.Intake.Notes() {
			add(warn, "%s.", note)
		}
	}
	if text := b.vacuous(); text != "" {
		add(warn, "%s", text)
	}
	if len(page.Flags) == 0 {
		add(good, "no check of this report found a problem.")
	}
	slices.SortStableFunc(page.Flags, func(a, b pageFlag) int { return rank(a.Level) - rank(b.Level) })
}

func rank(l level) int { return slices.Index([]level{bad, warn, good}, l) }

// unweighted returns a run that met a log without propensities, nil if none did.
func (b *builder) unweighted() *replay.Result {
	for i := range b.Runs {
		if r := &b.Runs[i]; r.Matched != nil && r.Replay == nil {
			return r
		}
	}
	return nil
}

// vacuous says which runs have no bound below T; those with void ones have their own flag.
func (b *builder) vacuous() string {
	var names []string
	for i, g := range b.groups {
		bounds := g[0].Certificate.Bounds()
		if len(bounds) > 0 && b.Summary[i].Void == "" && !slices.ContainsFunc(bounds,
			func(x certify.KindOfBound) bool { return !x.Vacuous }) {
			names = append(names, called(g))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if len(names) == len(b.groups) && len(names) > 1 {
		names = []string{"all runs"}
	}
	return "for " + strings.Join(names, "; ") + " every bound on the regret is vacuous: it is at least as large as " +
		"the number of rounds. The results may be good, but they are not guaranteed."
}

// typographic writes a text with signs for a page, where a line may break before an error.
func typographic(text string) string {
	return strings.NewReplacer("±", " ±\u00a0", "-", "−").Replace(text)
}

// delayed returns the place of the first group with delays, else the first; −1 of none.
func (b *builder) delayed() int {
	for i, g := range b.groups {
		if g[0].Delays.Spec != "none" {
			return i
		}
	}
	return min(0, len(b.groups)-1)
}

func (b *builder) tiles() []tile {
	var out []tile
	if k := b.delayed(); k >= 0 {
		r, s := b.groups[k][0], &b.Summary[k]
		mean := s.Loss.shown(r.Rewards)
		out = append(out, tile{"Mean " + r.Rewards.Of() + " of " + r.Learner, mean.first(), within(float64(mean.SE)) +
			"a round, delays " + r.Delays.Spec})
		if r.UniformLoss != nil {
			out = append(out, tile{"For comparison", words.Digits(r.Rewards.Shown(*r.UniformLoss)),
				"the uniform policy; the best policy has " + words.Digits(r.Rewards.Shown(*r.BestLoss))})
		}
		if s.Cost.known() {
			out = append(out, costTile(s.Cost.length(r.Rewards), r.Rewards))
		}
		out = append(out, tile{"Mean delay, in rounds", words.Digits(r.Delays.Released.Mean),
			fmt.Sprintf("from decision to learning; %s from decision to outcome", words.Digits(r.Delays.Raw.Mean))})
	}
	if p := b.best(); p != nil {
		e, of := ranking(p), b.Estimators.Of
		note := fmt.Sprintf("mean %s by DR; %s; from %s whose action it plays", of, between(float64(e.Low),
			float64(e.High)), number(int64(p.Matched), "row"))
		if note += fmt.Sprintf(", of which %s a %s other than 0", have(int64(p.NonZero)), of); b.withinNoise() {
			note += "; within noise of the policy that made the log"
		}
		out = append(out, tile{"Best policy: " + p.Policy, words.Digits(float64(e.Value)), note})
	}
	return out
}

// costTile says what delays cost, where that is more than noise.
func costTile(cost mean, rewards *words.Rewards) tile {
	const label = "Cost of delays"
	than := "more loss a round than without delay"
	if rewards != nil {
		than = "less reward a round than without delay"
	}
	value, se := float64(cost.Value), float64(cost.SE)
	switch {
	case cost.chance():
		return tile{label, "within noise", "± " + words.Short(se) + " " + than}
	case math.IsNaN(se) && value < 0:
		return tile{label, "none seen", "in one row order; its noise is not known"}
	}
	return tile{label, signed(value), within(se) + than}
}

func have(n int64) string {
	if n == 1 {
		return "1 has"
	}
	return words.Count(n) + " have"
}

// first is the value without its error.
func (m mean) first() string { return mean{m.Value, ope.Figure(nan)}.String() }

// between writes a 95 % interval.
func between(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return "interval not known"
	}
	return "95 %: " + interval(ope.Figure(low), ope.Figure(high))
}

// within writes a standard error before a note.
func within(se float64) string {
	if math.IsNaN(se) || se == 0 {
		return ""
	}
	return "± " + words.Short(se) + " "
}

// signed writes a difference.
func signed(x float64) string {
	if x > 0 {
		return "+" + words.Digits(x)
	}
	return typographic(words.Digits(x))
}

// A standard error over row orders makes an interval of at least so many; by Student's
// distribution of four degrees of freedom it is so much wider than a normal one.
const (
	fewestOrders = 5
	fewOrders    = 2.776 / 1.96
)

// verdict says whether the learner is worth having: beside the uniform policy where the truth is
// known, else beside what the log recorded.
func (b *builder) verdict() string {
	k := b.delayed()
	if k < 0 {
		return ""
	}
	r, s, other := b.groups[k][0], &b.Summary[k], "the uniform policy"
	if !s.Loss.known() {
		return "Whether " + r.Learner + " is worth having is not known: it drew the log's action in no round."
	}
	loss, than, se, more := float64(s.Loss.Value), nan, float64(s.Loss.SE), ""
	switch {
	case r.UniformLoss != nil && s.Orders >= fewestOrders:
		than, se = *r.UniformLoss, fewOrders*se
	case r.UniformLoss != nil:
		more = " replayer backtest --orders 5 measures it."
	case r.Course != nil && r.Course.Logged != nil:
		other = "the policy that made the log"
		if l, n := r.Course.Logged, len(r.Course.Logged.SoFar)-1; b.unweighted() == nil && n >= 0 {
			than, se = float64(l.SoFar[n]), math.Hypot(se, float64(l.SoFarSE[n]))
		}
	}
	return r.Rewards.Verdict(r.Learner, loss, loss-than, se, other) + more
}

// says are the sentences at the top.
func (b *builder) says() []string {
	var out []string
	if k := b.delayed(); k >= 0 {
		out = append(out, b.saysLoss(k))
		if text := b.saysDelay(k); text != "" {
			out = append(out, text)
		}
	}
	if text := b.saysPolicies(); text != "" {
		out = append(out, text)
	}
	return out
}

func (b *builder) saysLoss(k int) string {
	r, s := b.groups[k][0], &b.Summary[k]
	if !s.Loss.known() {
		return fmt.Sprintf("What %s would have %s is not known: in none of the %s of %s did it draw the action of "+
			"the log.", r.Learner, did(r.Rewards), number(r.Rounds, "round"), r.Environment)
	}
	text := fmt.Sprintf("%s %s %s a round over %s of %s", r.Learner, did(r.Rewards), s.Loss.shown(r.Rewards),
		number(r.Rounds, "round"), r.Environment)
	if r.UniformLoss != nil {
		less, more := "less", "more"
		if r.Rewards != nil {
			less, more = more, less
		}
		text += fmt.Sprintf(": %s %s than the uniform policy, and %s %s than the best that could be done",
			words.Digits(r.Rewards.Length(*r.UniformLoss-float64(s.Loss.Value))), less,
			words.Digits(r.Rewards.Length(float64(s.Loss.Value)-*r.BestLoss)), more)
	}
	if r.Matched != nil {
		text += fmt.Sprintf(", judged on the %s of the rounds in which it drew the action of the log",
			words.Percent(float64(s.Matched)))
	}
	return text + "."
}

// did says what learners do in rounds.
func did(r *words.Rewards) string {
	if r == nil {
		return "lost"
	}
	return "earned"
}

// saysDelay compares a group with the same learner without delay.
func (b *builder) saysDelay(k int) string {
	rewards := b.rewards()
	cost := b.Summary[k].Cost.length(rewards)
	if !cost.known() {
		return ""
	}
	none := slices.IndexFunc(b.Summary, func(g group) bool {
		return g.Learner == b.Summary[k].Learner && g.Delays == "none"
	})
	value, se := float64(cost.Value), float64(cost.SE)
	text := fmt.Sprintf("Without delay it would have %s %s a round: ", did(rewards),
		b.Summary[none].Loss.shown(rewards).first())
	switch {
	case value == 0:
		return text + "as much."
	case math.IsNaN(se) && value < 0:
		return text + "one row order shows no cost of the delays. Its noise is not known; replayer backtest --orders " +
			"5 measures it."
	case math.IsNaN(se):
		return text + fmt.Sprintf("the delays cost %s in one row order. Its noise is not known; replayer backtest "+
			"--orders 5 measures it.", signed(value))
	case cost.chance():
		return text + fmt.Sprintf("the difference is within twice its standard error of %s, and may be chance.",
			words.Short(se))
	}
	return text + fmt.Sprintf("the delays cost %s.", cost)
}
