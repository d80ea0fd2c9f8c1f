package paper

import "fmt"

// stagesClaim plays the environment in which the order of arrival fails.
var stagesClaim = Claim{
	Name:   "stages",
	Source: "derived here: where theorem 3 does not hold, and theorem 1 does (docs/algorithms.md, 3.4)",
	Says: "Where delays look at losses that have not come, DA-FA with η = ½ in the order of arrival can lose ten " +
		"times: 64 contexts one after the other, in each of which another function looks right while good news of " +
		"the best action is held back. FIFO does not, and neither does η by what is outstanding.",
	plan: func(o Options) plan {
		const rounds = 20000
		delays := []lateDelays{lateConstant(50), goodNewsLate(100, 600)}
		if o.few {
			delays = delays[1:]
		}
		cells := make([][]*late, len(delays))
		var all []job
		for i, d := range delays {
			for _, a := range []lateAlgo{halfFIFO, halfArrival, outstanding} {
				c := &late{world: lateStages(rounds, 64), rounds: rounds, delays: d, algo: a}
				cells[i] = append(cells[i], c)
				all = append(all, c.jobs(o, size(o, max(5, o.seeds()/4), 1))...)
			}
		}
		return plan{all, func(f *Finding) { concludeStages(f, cells) }}
	},
}

func concludeStages(f *Finding, cells [][]*late) {
	f.lateCells("regret in 64 stages", "stages", "Regret in 64 stages", cells)
	last := cells[len(cells)-1]
	fifo, arrival, slowed := mean(last[0].regret), mean(last[1].regret), mean(last[2].regret)
	f.check(arrival > 5*fifo,
		"with good news held back the order of arrival, η = ½, regrets over five times as much as FIFO")
	f.check(slowed < 2*fifo, "with η by what is outstanding it regrets less than twice as much")
	f.check(fifo < 1000, "FIFO regrets less than a quarter of uniform play")
	f.Checked = "with good news held back the order of arrival regrets over five times as much as FIFO, with η by " +
		"what is outstanding less than twice"
	f.Seen = fmt.Sprintf("with good news held back FIFO regretted %.0f, the order of arrival with η = ½ %.0f, and "+
		"with η by what is outstanding %.0f.", fifo, arrival, slowed)
}
