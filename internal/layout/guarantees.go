package layout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// addCertificate adds the rows of a run's certificate: the bounds, the sharpest kind first,
// with T and beside them the truth and what exploring cost; the assumptions with their
// states; and what does not hold.
func addCertificate(t *table, r *replay.Result) {
	c := &r.Certificate
	title := "certificate"
	row := func(text string) {
		t.row(title, text)
		title = ""
	}
	if p := c.PlausibleSet; p != nil {
		how := fmt.Sprintf(" with probability %v, at all times at once", 1-p.Alpha)
		row(boundText("plausible set", &p.Bound, c.T, how) + fmt.Sprintf("; %d of %d functions survive", p.Surviving,
			p.Functions))
		if x := p.MissingAtRandom; x != nil && p.Value != nil && *x < *p.Value {
			row("and " + words.Digits(*x) + " if whether an outcome is missing does not depend on the loss")
		}
	}
	for _, b := range c.Bounds() {
		how := ""
		switch b.Kind {
		case certify.KindPlausibleSet:
			continue
		case certify.KindRealisedLoss:
			how = fmt.Sprintf(" with probability %v, at all times at once, as if the best %s nothing", 1-c.RealisedLoss.Alpha,
				r.Rewards.Lost())
		}
		row(boundText(b.Name(), b.Bound, c.T, how))
	}
	if r.Rewards != nil && title == "" {
		row(r.Rewards.Regret())
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
func boundText(name string, b *replay.Bound, rounds int64, how string) string {
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

// kindOf names the kinds of the bounds of runs.
func kindOf(runs []replay.Result) string {
	var kinds []string
	for i := range runs {
		if b, ok := runs[i].Certificate.Sharpest(); ok && !slices.Contains(kinds, b.Name()) {
			kinds = append(kinds, b.Name())
		}
	}
	return cmp.Or(strings.Join(kinds, " or "), "none")
}

// States of the bound of a group that has no figure.
const (
	NoBound = "none"
	Void    = "void"
	Vacuous = "vacuous"
)

// GroupBound returns the mean of the sharpest bounds of runs that differ in their row orders;
// state says what one of them is instead, "" if each is a figure.
func GroupBound(g []*replay.Result) (mean float64, state string) {
	sum := 0.0
	for _, r := range g {
		switch b, ok := r.Certificate.Sharpest(); {
		case !ok:
			return math.NaN(), NoBound
		case b.Void != "":
			state = Void
		case b.Vacuous:
			state = cmp.Or(state, Vacuous)
		default:
			sum += *b.Value
		}
	}
	if state != "" {
		return math.NaN(), state
	}
	return sum / float64(len(g)), ""
}

// bound writes the bound of a group.
func bound(g []*replay.Result) string {
	mean, state := GroupBound(g)
	if state == NoBound {
		return "–"
	}
	return cmp.Or(state, words.Digits(mean))
}
