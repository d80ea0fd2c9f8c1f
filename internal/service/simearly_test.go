package service

import (
	"math/rand/v2"

	"hindsight/internal/check"
	"hindsight/internal/loop"
)

// hurries gives some simulations a model that learns rounds before their feedback. It draws from numbers of its own.
func (o *simOptions) hurries(seed int64) {
	if seed%5 != 1 {
		return
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0xea51))
	o.rules.Early, o.rules.Arrival, o.rules.Impute, o.rules.DefaultLoss = false, false, true, 1
	if o.rules.WindowRounds > 0 {
		o.rules.WindowRounds += 4
	} else {
		o.rules.WindowNanos += 300 * millisecond
	}
	o.rules.Soon = &check.Soon{Silence: []float64{.25, 1}[rng.IntN(2)]}
	switch rng.IntN(4) {
	case 0:
		o.rules.Soon.AfterRounds = 1 + rng.Int64N(4)
	case 1:
		o.rules.Soon.AfterNanos = 1 + rng.Int64N(300*millisecond)
	}
}

// soonRules returns what rules say of provisional records.
func (s *sim) soonRules(r *check.Rules) *loop.Provisional {
	p := &loop.Provisional{After: loop.Window{Rounds: r.Soon.AfterRounds, Nanos: r.Soon.AfterNanos},
		Silence: r.Soon.Silence}
	if s.plant.soon {
		p.Silence /= 2
	}
	return p
}
