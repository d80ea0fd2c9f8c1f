package report

import (
	"strings"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/verify"
)

func environment(t testing.TB, spec string, seed uint64, rounds int) *replay.Rounds {
	t.Helper()
	e, err := replay.NewEnvironment(spec, seed, rounds)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name != spec || e.Len() != rounds {
		t.Fatalf("%s is called %s and has %d rounds", spec, e.Name, e.Len())
	}
	return e
}

// playSeed plays a learner to sigmoid with everything drawn from a seed.
func playSeed(t *testing.T, seed uint64, rounds int, window, spec string) *replay.Result {
	t.Helper()
	env := environment(t, "sigmoid", seed, rounds)
	tr := trialOf(t, env, "dafa", window, spec)
	tr.Seed, tr.Delays = seed, delays(t, spec, seed)
	r, err := tr.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trialOf returns a trial of a learner with the windows and delays given.
func trialOf(t testing.TB, env *replay.Rounds, learner, window, spec string) *replay.Trial {
	t.Helper()
	l, err := model.ParseLearner(learner)
	if err != nil {
		t.Fatal(err)
	}
	w, err := model.ParseWindow(window)
	if err != nil {
		t.Fatal(err)
	}
	d, err := delay.Parse(spec, env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	m, files := replay.ModelFor(env, "replay", l, w)
	return &replay.Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: learner, Seed: 1}
}

func delays(t testing.TB, spec string, seed uint64) *delay.Delays {
	t.Helper()
	d, err := delay.Parse(spec, delay.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// said is a report of verify for people.
func said(r *verify.Report) string {
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}
