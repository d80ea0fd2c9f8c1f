package oracle_test

import (
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// TestNewestContract runs the contract over what the oracles compute since version 2.
func TestNewestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const rounds = 25
	for name, input := range map[string]func(rng *rand.Rand) *oracle.Input{
		"numbers": oracletest.Input, "action features": withActionFeatures,
		"terms": withTerms} {
		for kind, fresh := range map[string]func() oracle.Regressor{
			"auto": func() oracle.Regressor {
				return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: oracle.ByWhatComes, Fourier: 8,
					MaxFeatures: 14, Version: 2}))
			},
			"auto, told": func() oracle.Regressor {
				return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: 0.5, Fourier: 7, Columns: 20,
					MaxFeatures: 14, MaxActions: 3, Steered: true, Version: 2}))
			},
			"auto, terms": func() oracle.Regressor {
				return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: oracle.ByWhatComes, Fourier: 8,
					MaxFeatures: 14, Steered: true, Version: 2, Places: places}))
			},
			"linear": func() oracle.Regressor {
				return must(oracle.NewLinear(oracle.LinearOptions{Beta: oracle.ByWhatComes, Lambda: oracle.ByWhatComes,
					Forget: 0.99, Version: 2}))
			},
			"linear, random": func() oracle.Regressor {
				return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5, Fourier: 6, MaxFeatures: 9, Version: 2}))
			},
			"hybrid": func() oracle.Regressor {
				return must(oracle.NewShared(oracle.SharedOptions{Hybrid: true, Hashed: 32, Beta: 0.5, Version: 2}))
			},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				oracletest.Test(t, fresh, oracletest.Options{Input: input, Rounds: rounds, Part: turns(t)})
			})
		}
	}
}
