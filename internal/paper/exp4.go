package paper

import (
	"fmt"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/world"
	"hindsight/pkg/learner"
)

// plays sets the learner that flags would name by a specification, which must be right.
func plays(spec string) func(m *model.Model) {
	return func(m *model.Model) {
		l, err := model.ParseLearner(spec)
		if err != nil {
			panic(err) // a constant of this package
		}
		m.Learner = l
	}
}

// exp4Bound is what the package comment of learner proves at the theorem's η.
func exp4Bound(rounds, actions, policies, delays int) float64 {
	t, k, sum := float64(rounds), float64(actions), float64(delays)
	eta := learner.EXP4Eta(policies, actions, int64(rounds), int64(delays))
	return logOf(policies)/eta + eta/2*k*t + eta*sum
}

// exp4Claim tries the bound of EXP4-DALE where there is something to learn.
var exp4Claim = Claim{
	Name:   "exp4",
	Source: "thm:-exp4-main (EXP4-DALE)",
	Says: "E regret ≤ log N/η + ηKT + 2ηD, which is O(√(KT log N) + √(D log N)) at η = √(log N/(KT+D)), for losses " +
		"and contexts of an adversary: here one whose actions lose nothing at first and then always, one after the " +
		"other, and one that sorts the rounds by their best action. Proved here: log N/η + (η/2)KT + ηD with known " +
		"D. The adaptive rate, a transfer of Zimmert and Seldin's (2020), is held against the same bound, though " +
		"none is proved of it. (The printed proof adds up to η(K/2+2)T + 2ηD; its OMD step is cited for feedback " +
		"that comes all at once, where it is false; lem:drift-bound puts means for estimates on which the weights " +
		"depend. The package comment of pkg/learner repairs them.)",
	plan: func(o Options) plan { return sweepPlan(o, "EXP4-DALE", exp4Sweeps(o)) },
}

// exp4Sweeps lays out the axes: in T, K and D constant policies that betray, in log N those
// that go by the functions of a class, on rounds that are sorted against them.
func exp4Sweeps(o Options) []sweep {
	const actions = 4
	rounds := size(o, 32768, 8192)
	betrayals := func(t, k int) func(uint64) *replay.Rounds {
		return func(uint64) *replay.Rounds { return replay.OfWorld(world.NewBetrayals(t, k)) }
	}
	t, k, sum, n := sweep{axis: "T"}, sweep{axis: "K"}, sweep{axis: "KT + D"}, sweep{axis: "log N"}
	for _, v := range size(o, []int{2048, 8192, 32768, 131072}, []int{2048, 16384}) {
		t.addEXP4(float64(v), v, actions, actions, 0, betrayals(v, actions))
	}
	for _, v := range size(o, []int{2, 4, 8, 16, 32, 64}, []int{2, 4, 16}) {
		k.addEXP4(float64(v), rounds, v, v, 0, betrayals(rounds, v))
	}
	for _, d := range size(o, []int{0, 4, 16, 64, 256}, []int{0, 8, 64}) {
		sum.addEXP4(float64(rounds*(actions+d)), rounds, actions, actions, d, betrayals(rounds, actions))
	}
	for _, v := range size(o, []int{4, 16, 64, 256}, []int{4, 64}) {
		n.addEXP4(logOf(v), rounds, actions, v, 0, sorted(rounds, actions, v))
	}
	// the adaptive rate is high at first, and enough where K and N are small
	k.lines[0].bent, n.lines[0].bent = true, true
	return []sweep{t, k, sum, n}
}

// addEXP4 adds a point at x to both lines: T rounds, K actions, N policies and delay d.
func (s *sweep) addEXP4(x float64, t, k, n, d int, env func(uint64) *replay.Rounds) {
	if s.lines == nil {
		s.lines = make([]line, 2)
	}
	for i, spec := range []string{"exp4dale", fmt.Sprintf("exp4dale:%d", t*d)} {
		c := &cell{label: label(spec), x: x, rounds: t, env: env, delays: fmt.Sprintf("constant:%d", d),
			tune: plays(spec)}
		s.lines[i].points = append(s.lines[i].points, point{c, exp4Bound(t, k, n, t*d)})
	}
}

// label names a learner in tables.
func label(spec string) string {
	switch {
	case spec == "exp4dale":
		return "adaptive"
	case strings.HasPrefix(spec, "exp4dale:plain"):
		return "plain weighting"
	case strings.HasPrefix(spec, "exp4dale:"):
		return "known D"
	}
	return spec
}

// weightingClaim compares the delay-adapted estimator with plain importance weighting.
var weightingClaim = Claim{
	Name:   "weighting",
	Source: "alg:delay-exp4, eqn:exp4-biased-estim (why the denominator is a maximum)",
	Says: "What does the delay-adapted estimator L/max(Q, Q̃) save over L/Q, where outcomes come when the law has " +
		"moved?",
	plan: func(o Options) plan {
		o.Seeds = 4 * o.seeds() // regret has heavy tails: five seeds may miss the difference
		var all []*cell
		for _, c := range []struct {
			env    string
			rounds int
			d      string
		}{
			{"trap:2,400,800,2000", size(o, 20000, 8000), "560000"}, // D = 400·1400
			{"cyc:1000,1000", 20000, "0"},                           // a rate that expects no delay
		} {
			for _, spec := range []string{"exp4dale:" + c.d, "exp4dale:plain," + c.d} {
				all = append(all, &cell{label: label(spec), rounds: c.rounds, env: builtin(c.env, c.rounds),
					tune: func(m *model.Model) {
						plays(spec)(m)
						m.Arrival = true
					}})
			}
		}
		return played(o, all, concludeWeighting)
	},
}

func concludeWeighting(f *Finding, all []*cell) {
	t := Table{Title: "regret", Columns: []string{"environment", "rounds", "delay-adapted", "plain weighting",
		"plain − adapted"}}
	pic := chart.Chart{Title: "Delay-adapted against plain importance weighting", X: "environment", Y: "regret"}
	var seen []string
	for i := 0; i < len(all); i += 2 {
		adapted, plain := all[i], all[i+1]
		saved := estimate(minus(plain.regret, adapted.regret))
		name := adapted.runs[0].Environment
		t.row(name, adapted.rounds, estimate(adapted.regret), estimate(plain.regret), saved)
		f.check(saved.Value > 2*se(saved), "%s: delay-adapted weighting regrets less", name)
		seen = append(seen, fmt.Sprintf("%.0f of %.0f on %s", saved.Value, mean(plain.regret), name))
	}
	f.Checked = "delay-adapted weighting regrets less by over two standard errors of the paired difference"
	f.draw(t, "weighting", pic, 2, 3).Series[1].Name = "plain"
	f.Seen = "the maximum in the denominator saved " + strings.Join(seen, ", ") + "."
}
