package replay

import (
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/world"
)

// TestScaleOfTheModel: a model that takes outcomes on another scale than [0,1] learns
// the same from an environment.
func TestScaleOfTheModel(t *testing.T) {
	env := OfWorld(world.NewSigmoid(3, 400, world.SigmoidOptions{}))
	d, err := delay.Parse("exp:5", delay.Options{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	mean := func(scale loop.Range) float64 {
		m, files := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 50})
		m.Range = scale
		trial := &Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: "dafa", Seed: 3}
		r, err := trial.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Fates.Malformed > 0 || r.Fates.Observed < 300 {
			t.Fatalf("range %v: fates %+v", scale, r.Fates)
		}
		return *r.MeanLoss
	}
	want := mean(loop.Range{Min: 0, Max: 1})
	for _, scale := range []loop.Range{{Min: -8, Max: 8}, {Min: 0, Max: 64}} { // powers of two: exact
		if got := mean(scale); got != want {
			t.Errorf("range %v: mean loss %v, want %v", scale, got, want)
		}
	}
}
