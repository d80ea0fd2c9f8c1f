package model

import (
	"math"
	"strings"
	"testing"

	"hindsight/internal/loop"
)

// TestValidateByHand: the ranges that a file is read by hold for models that are made or changed by hand, too; what is
// not a number is in none.
func TestValidateByHand(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"model: max_features: expected a whole number in 1…": func(m *Model) { m.MaxFeatures = 0 },
		"model: default_loss: expected a loss": func(m *Model) {
			m.Impute, m.Early, m.DefaultLoss = true, false, 2
		},
		"model: oracle.lambda: expected auto or a number in [1e-09, 1e+09], found 0; for example: lambda: 1": func(m *Model) {
			m.Oracle = oracleOf(Linear)
			m.Oracle.Lambda = Number{}
		},
		"model: oracle.fourier: expected auto or a whole number in 0…4096, found -5": func(m *Model) {
			m.Oracle = oracleOf(Linear)
			m.Oracle.expectRandom()
			m.Oracle.Fourier = Number{Value: -5}
		},
		"model: oracle.eta: expected outstanding or a number in (0, 1e+06], found 0": func(m *Model) {
			m.Oracle = Oracle{Kind: Hedge, Class: "c"}
		},
		"model: certificate.alpha: expected a level in (0, 0.5], found NaN": func(m *Model) {
			m.Certificate.Alpha = math.NaN()
		},
		"model: guard.worse_by: expected a loss": func(m *Model) {
			m.Guard, m.Early = loop.GuardRules{Margin: 1, Alpha: .1}, false
		},
		"model: hold_out: expected a share in [0, 0.5], found 0.6; for example: hold_out: 0.05": func(m *Model) {
			m.HoldOut = .6
		},
	} {
		m := Default()
		if change(m); m.Validate() == nil || !strings.HasPrefix(m.Validate().Error(), want) {
			t.Errorf("%v, want %s", m.Validate(), want)
		}
	}
}
