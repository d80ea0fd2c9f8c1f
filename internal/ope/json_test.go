package ope

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

// TestEvaluationFromJSON: what is written comes back to the byte, in the same order, with
// figures that are not defined and a λ of ∞.
func TestEvaluationFromJSON(t *testing.T) {
	s := &Sample{Actions: 2, Action: []int32{0, 1, 0, 0}, Propensity: []float64{.5, .5, .25, .5},
		Reward: []float64{1, 1, 0, 1}}
	for _, lambda := range []float64{10, 0, math.Inf(1)} {
		o := Defaults()
		o.Lambda, o.Bootstrap = lambda, 0
		want, err := Evaluate(s, "always 0", func(dst []float64, _ int) { dst[0] = 1 }, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Evaluation
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(&got)
		if err != nil || string(again) != string(text) {
			t.Errorf("λ = %v: %s\ncame back as %s (%v)", lambda, text, again, err)
		}
		// JSON says null of both, and a table does not.
		if i := slices.IndexFunc(got.Estimates,
			func(e Estimate) bool { return e.Lambda != nil }); *got.Estimates[i].Lambda != *want.Estimates[i].Lambda {
			t.Errorf("λ = %v came back as %v", lambda, *got.Estimates[i].Lambda)
		}
	}
	for _, text := range []string{`[]`, `7`, `{"ips":[]}`, `{"ips":{"lambda":"x"}}`} {
		var e Estimates
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("%s became %v", text, e)
		}
	}
}
