package paper

import (
	"fmt"

	"hindsight/internal/chart"
)

// stagesClaim plays the environment in which the order of arrival fails.
func stagesClaim() Claim {
	return Claim{
		Name:   "stages",
		Source: "derived here: where theorem 3 does not hold, and theorem 1 does (ALGORITHMS.md, 3.4)",
		Says: "Where delays look at losses that have not come, DA-FA with η = ½ in the order of arrival can lose ten " +
			"times: 64 contexts one after the other, in each of which another function looks right while good news of the " +
			"best action is held back. FIFO does not, and neither does η by what is outstanding.",
		plan: func(o Options) plan {
			const rounds = 20000
			delays := []lateDelays{lateConstant(50), goodNewsLate(100, 600)}
			if o.few {
				delays = delays[1:]
			}
			var cells []*late
			var all []job
			for _, d := range delays {
				for _, a := range []lateAlgo{halfFIFO, halfArrival, outstanding} {
					c := &late{world: lateStages(rounds, 64), rounds: rounds, delays: d, algo: a}
					cells = append(cells, c)
					all = append(all, c.jobs(o, size(o, max(5, o.seeds()/4), 1))...)
				}
			}
			return plan{all, func(f *Finding) { concludeStages(f, cells) }}
		},
	}
}

func concludeStages(f *Finding, cells []*late) {
	t := Table{Title: "regret in 64 stages", Columns: []string{"delays"}}
	pic := chart.Chart{Title: "Regret in 64 stages", Y: "regret", LogY: true}
	for i := 0; i < len(cells); i += 3 {
		row := []any{cells[i].delays.name}
		pic.Names = append(pic.Names, cells[i].delays.name)
		for j, c := range cells[i : i+3] {
			if i == 0 {
				t.Columns, pic.Series = append(t.Columns, c.algo.name), append(pic.Series, chart.Series{Name: c.algo.name})
			}
			e := estimate(c.regret)
			row = append(row, e)
			addPoint(&pic.Series[j], float64(i/3), e)
		}
		t.row(row...)
	}
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"stages", pic})
	last := cells[len(cells)-3:]
	fifo, arrival, slowed := mean(last[0].regret), mean(last[1].regret), mean(last[2].regret)
	f.check(arrival > 5*fifo,
		"with good news held back the order of arrival, η = ½, regrets over five times as much as FIFO")
	f.check(slowed < 2*fifo, "with η by what is outstanding it regrets less than twice as much")
	f.check(fifo < 1000, "FIFO regrets less than a quarter of uniform play")
	f.Checked = "with good news held back the order of arrival regrets over five times as much as FIFO, with η by what " +
		"is outstanding less than twice"
	f.Seen = fmt.Sprintf("with good news held back FIFO regretted %.0f, the order of arrival with η = ½ %.0f, and with η "+
		"by what is outstanding %.0f.", fifo, arrival, slowed)
}
