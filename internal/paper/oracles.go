package paper

import (
	"fmt"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
)

// oraclesClaim compares oracles whose stability is not proved, the default one among them.
var oraclesClaim = Claim{
	Name:   "oracles",
	Source: "assum:stability; left open by the paper: weaker oracles",
	Says: "Which oracles are stable enough? Regret with and without delay, and the drift Σ p·g − min g that delay " +
		"made, measured.",
	plan: func(o Options) plan {
		rounds := size(o, 20000, 3000)
		var all []*cell
		for _, env := range []string{"sigmoid", "linear:5,5"} {
			for _, delays := range []string{"none", "constant:100"} {
				for _, kind := range oracleKinds(env) {
					all = append(all, &cell{label: kind.name, rounds: rounds, env: builtin(env, rounds), delays: delays,
						tune: kind.tune})
				}
			}
		}
		return played(o, all, concludeOracles)
	},
}

type oracleKind struct {
	name string
	tune func(m *model.Model)
}

// oracleKinds lists the oracles that can learn an environment.
func oracleKinds(env string) (out []oracleKind) {
	if env == "sigmoid" {
		out = append(out, oracleKind{"hedge", func(*model.Model) {}})
	}
	linear := func(beta float64) func(m *model.Model) {
		return func(m *model.Model) {
			m.Oracle = model.Oracle{Kind: model.Linear, Beta: model.Number{Value: beta}, Lambda: model.Number{Value: 1}}
		}
	}
	return append(out, oracleKind{"ridge (β = 0)", linear(0)}, oracleKind{"β = ½", linear(.5)},
		oracleKind{"VAW (β = 1)", linear(1)},
		oracleKind{"random features", byDefault(model.Fourier)}, oracleKind{"auto", byDefault(model.Auto)})
}

func byDefault(name string) func(m *model.Model) {
	return func(m *model.Model) {
		o, err := model.ParseOracle(name)
		if err != nil {
			panic(err) // the names are those above
		}
		m.Oracle = o
	}
}

func concludeOracles(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("after %d rounds", all[0].rounds), Columns: []string{"environment",
		"oracle", "delays", "regret", "drift"}}
	pic := chart.Chart{Title: "Drift that constant delay 100 made, and regret with it, by oracle", X: "oracle",
		Y: "sum over rounds"}
	var seen []string
	for _, c := range all {
		var drift []float64
		for _, r := range c.runs {
			if d := r.Certificate.Drift; d != nil {
				drift = append(drift, *d)
			}
		}
		e := estimate(drift)
		f.learns(fmt.Sprintf("%s, %s, %s", c.runs[0].Environment, c.label, c.delays), c)
		t.row(c.runs[0].Environment, c.label, c.delays, estimate(c.regret), e)
		if c.delays != "none" {
			pic.Names = append(pic.Names, c.label+", "+c.runs[0].Environment)
			addNamed(&pic, 0, "drift", e)
			addNamed(&pic, 1, "regret", estimate(c.regret))
			seen = append(seen, fmt.Sprintf("%.0f for %s on %s", e.Value, c.label, c.runs[0].Environment))
		}
	}
	f.Checked = learnsSomething
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"oracles", pic})
	f.Seen = "an observation: under delay 100 the drift was " + strings.Join(seen, ", ") +
		". Stability is proved for Hedge-Vovk alone; of the others drift is what was measured, and nothing says that " +
		"it stays so."
}
