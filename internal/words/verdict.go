package words

import (
	"fmt"
	"math"
	"strings"
)

// Verdict says in a sentence what rounds of a mean loss were worth, and whether that is more than
// another policy had: excess is the loss over the other's, and se its standard error; NaN: not known.
// A percentage of the other's is where both are counted from 0, and that is known to a half.
func (r *Rewards) Verdict(who string, loss, excess, se float64, other string) string {
	ours, gap, err := r.Shown(loss), r.Gap(excess), 1.96*r.Length(se)
	low, high, rest, unit, round := gap-err, gap+err, ours-gap, short, " a round"
	var text string
	switch {
	case r == nil:
		text = fmt.Sprintf("%s lost %s of the most possible", who, percent(ours))
	case r.Min == 0:
		text = fmt.Sprintf("%s earned %s of the best possible", who, percent(ours/r.Max))
	default:
		text = fmt.Sprintf("%s earned %s a round, of %s to %s", who, short(ours), short(r.Min), short(r.Max))
	}
	if math.IsNaN(gap + err) {
		return text + "; how that compares with " + other + " is not known yet."
	}
	if (r == nil || r.Min == 0) && rest > 2*err { // the error is of ours, of the other's, or of both
		low, high = math.Min(low/rest, ours/(rest+err)-1), math.Max(high/rest, ours/(rest-err)-1)
		gap, unit, round = gap/rest, percent, ""
	}
	if low <= 0 && high >= 0 {
		return fmt.Sprintf("%s; not shown to be more or less than %s (95%% interval of the difference%s: %s to %s).",
			text, other, round, unit(low), unit(high))
	}
	more := "more"
	if gap < 0 {
		more, gap, low, high = "less", -gap, -high, -low
	}
	return fmt.Sprintf("%s; %s %s%s than %s (95%% interval: %s to %s).", text, unit(gap), more, round, other, unit(low),
		unit(high))
}

// percent writes a share, whole from 10 % on.
func percent(x float64) string {
	decimals := 0
	if math.Abs(x) < .0995 {
		decimals = 1
	}
	return signed(fmt.Sprintf("%.*f%%", decimals, 100*x))
}

// short writes a figure with two digits, or one where that is all.
func short(x float64) string { return signed(strings.TrimSuffix(Short(x), ".0")) }

func signed(x string) string { return strings.Replace(x, "-", "−", 1) }
