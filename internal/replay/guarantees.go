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
		row("plausible set: regret ≤ " + boundText(&p.Bound, c.T) + fmt.Sprintf(" with probability %v, at all times at once; %d of %d functions survive", 1-p.Alpha, p.Surviving, p.Functions))
		if x := p.MissingAtRandom; x != nil && p.Value != nil && *x < *p.Value {
			row("and " + words.Digits(*x) + " if whether an outcome is missing does not depend on the loss")
		}
	}
	if b := c.RealisedLoss; b != nil {
		row("realised loss: regret ≤ " + boundText(&b.Bound, c.T) + fmt.Sprintf(" with probability %v, at all times at once, as if the best lost nothing", 1-b.Alpha))
	}
	for _, k := range []struct {
		name string
		b    *Bound
	}{{"measured", c.Measured}, {"measured drift", c.MeasuredDrift}, {"a priori", c.APriori}} {
		if k.b != nil {
			row(k.name + ": regret ≤ " + boundText(k.b, c.T))
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

// boundText says a bound, and beside it T of which a vacuous one says nothing.
func boundText(b *Bound, rounds int64) string {
	text := "∞"
	if b.Value != nil {
		text = words.Digits(*b.Value)
	}
	if b.Vacuous {
		return text + " (vacuous: not below T = " + words.Count(rounds) + ")"
	}
	return text + " of T = " + words.Count(rounds)
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

// bound returns the mean of the sharpest bounds of a group, all of one kind.
func bound(g []*Result) string {
	vacuous := false
	for _, r := range g {
		_, b := sharpest(&r.Certificate)
		if b == nil {
			return "–"
		}
		vacuous = vacuous || b.Vacuous
	}
	if vacuous {
		return "vacuous"
	}
	return words.Digits(average(g, func(r *Result) float64 {
		_, b := sharpest(&r.Certificate)
		return *b.Value
	}))
}
