package replay

import (
	"fmt"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/words"
)

// certificate adds the rows of a run's certificate: the bounds, the sharpest kind first,
// with T and beside them the truth and what exploring cost; the assumptions with their
// states; and what does not hold.
func (t *table) certificate(r *Result) {
	c := &r.Certificate
	title := "certificate"
	row := func(text string) {
		t.row(title, text)
		title = ""
	}
	if p := c.PlausibleSet; p != nil {
		how := fmt.Sprintf(" with probability %v, at all times at once", 1-p.Alpha)
		row(boundText("plausible set", &p.Bound, c.T, how) + fmt.Sprintf("; %d of %d functions survive", p.Surviving, p.Functions))
		if x := p.MissingAtRandom; x != nil && p.Value != nil && *x < *p.Value {
			row("and " + words.Digits(*x) + " if whether an outcome is missing does not depend on the loss")
		}
	}
	if b := c.RealisedLoss; b != nil {
		how := fmt.Sprintf(" with probability %v, at all times at once, as if the best lost nothing", 1-b.Alpha)
		row(boundText("realised loss", &b.Bound, c.T, how))
	}
	for _, k := range []struct {
		name string
		b    *Bound
	}{{"measured", c.Measured}, {"measured drift", c.MeasuredDrift}, {"a priori", c.APriori}} {
		if k.b != nil {
			row(boundText(k.name, k.b, c.T, ""))
		}
	}
	if r.Regret != nil && title == "" {
		row("the true regret is " + words.Digits(*r.Regret))
	}
	if c.ExplorationCost != nil {
		row("exploring cost " + words.Digits(*c.ExplorationCost) + " so far by the model's own belief")
	}
	for _, n := range c.Notes {
		row(n)
	}
	title = "assumptions"
	var plain []string
	for _, a := range c.Assumptions {
		if a.State == certify.Enforced || a.State == certify.Holds || a.State == certify.NotNeeded {
			plain = append(plain, strings.ReplaceAll(a.Name+" "+a.State, " ", words.NoBreak))
		}
	}
	if plain != nil {
		row(strings.Join(plain, ", "))
	}
	for _, a := range c.Assumptions {
		if a.State != certify.Enforced && a.State != certify.Holds && a.State != certify.NotNeeded {
			row(a.Name + " " + a.State + ": " + a.Detail)
		}
	}
}

// boundText says a bound and how it holds, or what voids it; beside it T, of which a vacuous
// one says nothing.
func boundText(name string, b *Bound, rounds int64, how string) string {
	if b.Void != "" {
		return name + ": void, " + b.Void
	}
	text := "∞"
	if b.Value != nil {
		text = words.Digits(*b.Value)
	}
	if b.Vacuous {
		text += " (vacuous: not below T = " + words.Count(rounds) + ")"
	} else {
		text += " of T = " + words.Count(rounds)
	}
	return name + ": regret ≤ " + text + how
}

// sharpest returns the sharpest kind of bound that a run has, nil if it has none.
func sharpest(c *Certificate) (kind string, b *Bound) {
	switch {
	case c.PlausibleSet != nil:
		return "plausible set", &c.PlausibleSet.Bound
	case c.Measured != nil:
		return "measured loss", c.Measured
	case c.RealisedLoss != nil:
		return "realised loss", &c.RealisedLoss.Bound
	case c.MeasuredDrift != nil:
		return "measured drift", c.MeasuredDrift
	}
	return "", nil
}

// kindOf names the kinds of the bounds of runs.
func kindOf(runs []Result) string {
	text := ""
	seen := map[string]bool{"": true}
	for i := range runs {
		kind, _ := sharpest(&runs[i].Certificate)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		if text != "" {
			text += " or "
		}
		text += kind
	}
	if text == "" {
		return "none"
	}
	return text
}

// bound returns the mean of the sharpest bounds of a group, all of one kind, or what one of
// them is instead.
func bound(g []*Result) string {
	void, vacuous := false, false
	for _, r := range g {
		_, b := sharpest(&r.Certificate)
		if b == nil {
			return "–"
		}
		void, vacuous = void || b.Void != "", vacuous || b.Vacuous
	}
	switch {
	case void:
		return "void"
	case vacuous:
		return "vacuous"
	}
	return words.Digits(average(g, func(r *Result) float64 {
		_, b := sharpest(&r.Certificate)
		return *b.Value
	}))
}
