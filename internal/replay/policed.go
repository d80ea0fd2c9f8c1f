package replay

import (
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Policed is an environment whose losses an adversary fixed beforehand, and whose
// regret is against the best policy of a class that it brings, not against the best
// action of every round.
type Policed struct {
	name              string
	rounds            int
	actions, features []string
	value             func(t, feature int) float64 // of a feature; nil: no features
	loss              func(t, a int) float64
	policies          *model.PolicyFile
	advice            func(i, t int) int // of policy i, an action
	delays            string             // under which the environment is meant; "": any
}

var _ Environment = (*Policed)(nil)

// Policies returns the file of the class Π.
func (e *Policed) Policies() []byte { return e.policies.Append(nil) }

// OwnDelays returns the specification of the delays that the environment is meant to
// be played with; "" if any will do.
func (e *Policed) OwnDelays() string { return e.delays }

// BestPolicy returns the loss of the best policy over all rounds.
func (e *Policed) BestPolicy() float64 {
	best := 0.0
	for i := range e.policies.Policies {
		sum := 0.0
		for t := range e.rounds {
			sum += e.loss(t, e.advice(i, t))
		}
		if i == 0 || sum < best {
			best = sum
		}
	}
	return best
}

// Name implements [Environment].
func (e *Policed) Name() string { return e.name }

// Len implements [Environment].
func (e *Policed) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *Policed) Actions() []string { return e.actions }

// Columns implements [Environment].
func (e *Policed) Columns() int { return len(e.features) + 1 }

// Context implements [Environment].
func (e *Policed) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
	for i, name := range e.features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: e.value(t, i)})
	}
}

// Truth implements [Environment]: losses are certain.
func (e *Policed) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = e.loss(t, a)
	}
	return true
}

// Loss implements [Environment].
func (e *Policed) Loss(t, a int) float64 { return e.loss(t, a) }

// policed returns the environment that env is, in some row order, or nil.
func policed(env Environment) *Policed {
	switch e := env.(type) {
	case *Policed:
		return e
	case *ordered:
		return policed(e.Environment)
	}
	return nil
}

// OwnDelays returns the delays that an environment is meant to be played with, "" if
// any will do.
func OwnDelays(env Environment) string {
	if e, ok := env.(interface{ OwnDelays() string }); ok {
		return e.OwnDelays()
	}
	return ""
}

// constants are the policies that play one action always.
func constants(actions []string) *model.PolicyFile {
	f := &model.PolicyFile{Actions: actions}
	for _, a := range actions {
		f.Policies = append(f.Policies, model.PolicyLine{Prior: 1, Rules: always(a)})
	}
	return f
}

func unless(wrong bool) float64 {
	if wrong {
		return 1
	}
	return 0
}
