package layout

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"hindsight/internal/judge"
	"hindsight/internal/ope"
	"hindsight/internal/words"
)

// briefWeights and briefEstimates are what a screen has room for.
var (
	briefWeights   = []int{0, 2, 4}
	briefEstimates = []string{"snips", "dr"}
)

// WritePolicies writes what a log says of policies for people, at most so wide: the weights, the estimates,
// and the flags in words; briefly of the weights the sample size that they leave and their mean, and of the
// estimators two.
func WritePolicies(w io.Writer, e *judge.Evaluations, width int, brief bool) error {
	if len(e.Policies) == 0 {
		return nil
	}
	weights := [][]string{{"policy"}, {"matched"}, {"ESS"}, {"max w"}, {"mean w"}, {"overlap"}}
	estimates, biased := [][]string{{"policy"}}, false
	for _, v := range e.Policies[0].Estimates {
		estimates = append(estimates, []string{v.Name})
	}
	for _, p := range e.Policies {
		for i, cell := range []string{clip(p.Policy), words.Count(int64(p.Matched)), words.Figure(float64(p.ESS), 3),
			words.Figure(p.MaxWeight, 3),
			words.Figure(p.MeanWeight, 3) + plus(p.MeanWeightSE), words.Figure(p.Overlap, 2)} {
			weights[i] = append(weights[i], cell)
		}
		estimates[0] = append(estimates[0], clip(p.Policy))
		for i, v := range p.Estimates {
			estimates[i+1] = append(estimates[i+1], words.WithError(v.Value, v.SE)+v.Mark())
			biased = biased || v.Bias != nil
		}
	}
	tables := [][][]string{weights, estimates}
	if brief {
		tables = [][][]string{briefly(weights, estimates)}
	}
	for _, columns := range tables {
		if err := writeColumns(w, columns, width); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, policyLegend(e, width, brief, biased && !brief))
	return err
}

// briefly joins what a screen has room for.
func briefly(weights, estimates [][]string) (out [][]string) {
	for _, i := range briefWeights {
		out = append(out, weights[i])
	}
	for _, c := range estimates {
		if slices.Contains(briefEstimates, c[0]) {
			out = append(out, c)
		}
	}
	return out
}

// policyLegend is the legend and the flags.
func policyLegend(e *judge.Evaluations, width int, brief, biased bool) string {
	s := &e.Settings
	rows := words.Count(int64(s.Rows)) + " rows"
	if events := float64(s.Events); events > float64(s.Rows) {
		rows += fmt.Sprintf(" that stand for %s events (pdrop)", words.Count(int64(math.Round(events))))
	}
	text := fmt.Sprintf("Mean %s a row of %s, %d actions, smallest propensity %s; ± the standard error, %s", s.Of, rows,
		s.Actions, words.Figure(s.MinPropensity, 3), s.Method())
	if brief {
		text += ". The mean weight should be 1; ESS, the effective sample size, is what estimates rest on. More " +
			"estimators, and 95 % intervals: --json, --report."
	} else {
		text += ". Weights w = π/p: their mean should be 1, and the effective sample size (ESS) is what the estimates rest " +
			"on. 95 % intervals (normal, bootstrap, empirical Bernstein) are in --json."
	}
	if biased {
		text += " * may be biased, and so has no standard error; of ** the log shows more than three standard errors of a " +
			"bias, which is in --json."
	}
	out := wrap(text, width, 0) + "\n"
	shared := ope.SharedFlags(e.Policies)
	for _, f := range shared {
		out += "\n" + wrap("! all policies: "+f+".", width, 2)
	}
	for _, p := range e.Policies {
		for _, f := range p.Flags {
			if slices.Contains(shared, f) {
				continue
			}
			out += "\n" + wrap("! "+p.Policy+": "+f+".", width, 2)
		}
	}
	if strings.HasSuffix(out, "\n") {
		return out
	}
	return out + "\n"
}

// clip shortens the name of a policy, which the flags give in full.
func clip(name string) string {
	const most = 40
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

func plus(se ope.Figure) string {
	if !(se > words.RoundedAway) {
		return ""
	}
	return "±" + words.Figure(float64(se), 2)
}
