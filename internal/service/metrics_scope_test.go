package service

import (
	"math"
	"testing"

	"hindsight/internal/watch"
)

// What is seen of the loop, by a decider and a joiner of one process, and by each alone: the
// joiner sees decisions and feedback in the logs that it reads and writes, the decider what
// it decides and learns.
func TestMetricsOfTheScope(t *testing.T) {
	for name, alone := range map[string]string{"together": "", "decider": watch.RoleDecider,
		"joiner": watch.RoleJoiner} {
		t.Run(name, func(t *testing.T) {
			other := watch.NewMetrics(nil, nil)
			r := newRig(t, func(r *rig) {
				switch alone {
				case watch.RoleDecider:
					r.jc.Metrics = other
				case watch.RoleJoiner:
					r.dc.Metrics = other
				}
			})
			r.expect(map[string]float64{`hindsight_draws_checked`: 0, `hindsight_draw_evidence`: 1})
			if !math.IsNaN(r.value(`hindsight_join_ratio`)) || !math.IsNaN(r.value(`hindsight_propensity_floor`)) {
				t.Error("something is known before the first round")
			}
			r.contexts("1", "2", "3", "4")
			r.must(r.settle())
			r.outcomes("2", "3")
			r.must(r.settle())
			if alone != watch.RoleDecider {
				r.expect(map[string]float64{`hindsight_head_of_line_partition`: 0, `hindsight_head_of_line_round`: 1,
					`hindsight_window_seconds`: math.Inf(1), `hindsight_outcome_delay_seconds`: 0})
				if h := r.m.Scope().View().Head; h == nil || h.ID != plantedText+"1" {
					t.Errorf("the head of the line is %+v", h)
				}
			}
			r.outcomes("1")
			for range 22 { // the window is 20 rounds
				r.put(r.topics.Contexts, `{"actions":["a","b"]}`)
			}
			r.must(r.settle())
			r.expect(map[string]float64{`hindsight_draws_checked`: 26, `hindsight_recent_loss`: .5})
			floor, entropy, ratio := r.value(`hindsight_propensity_floor`),
				r.value(`hindsight_propensity_entropy_ratio`),
				r.value(`hindsight_join_ratio`)
			if !(floor > 0 && floor <= .5 && entropy > 0 && entropy <= 1 && ratio > 0 && ratio < 1) {
				t.Errorf("floor %v, entropy %v, join ratio %v", floor, entropy, ratio)
			}
			if e, w := r.value(`hindsight_importance_effective_ratio`),
				r.value(`hindsight_importance_largest_ratio`); !(e > 0 && e <= 1 && w >= 1./3 && w < 1) {
				t.Errorf("effective %v, largest %v", e, w)
			}
			if alone != watch.RoleDecider {
				r.expect(map[string]float64{`hindsight_outcome_delay_seconds`: 3})
			}
			r.put(r.topics.Outcomes, `{"id":"nobody","loss":1}`)
			r.put(r.topics.Contexts, `x`)
			r.must(r.settle())
			want := map[string]int{"together": 2, "decider": 1, "joiner": 1}[name]
			if got := r.m.Scope().View().Rejects; len(got) != want {
				t.Errorf("rejects %+v", got)
			}
		})
	}
}

// A joiner that is opened again reads what it has read: it counts once.
func TestScopeAfterRestart(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("1", "2")
	r.outcomes("2")
	r.must(r.settle())
	r.d.Close()
	r.j.Close()
	r.open()
	r.outcomes("1")
	r.must(r.settle())
	v := r.m.Scope().View()
	if v.Draws != 2 || v.Exploration.Decisions != 2 || v.Recent != (watch.Recent{Rounds: 2, JoinRatio: 1,
		Largest: v.Recent.Largest,
		Worth:   watch.Worth{Losses: 2, Loss: .5, Uniform: .5, Effective: v.Recent.Effective}}) {
		t.Errorf("%+v", v)
	}
}
