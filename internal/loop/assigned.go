package loop

import (
	"errors"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// A round that another system decided is a round of the same log, of mode [codec.External]. Nothing is drawn for it,
// and outcomes join it as any other. A learner learns it as one that another law played, with its true propensity;
// certificate, guard and judge of candidates leave it out.

var (
	errAssignedID     = errors.New("is missing: whoever has decided gives the context its id")
	errAssignedAction = errors.New("is not among the actions")
	errAssignedAlone  = errors.New("is less than 1, and there is one action only")
	errAssignedSmall  = errors.New("is less than 2^-53, the least propensity that a record has")
)

// assigned is what another system decided, as the decision says it.
type assigned struct {
	action  int
	law     []float64 // on the grid that laws have
	unknown codec.Unknown
}

// assign fills in what another system decided of the parsed context, whose actions are known, or says what is wrong.
func (r *reader) assign() error {
	a, actions, said := &r.ctx.Assigned, r.in.Actions, &r.said
	if r.ctx.ID == "" { // minted or of a header it would be another at a retry
		return codec.ContextError("id", errAssignedID)
	}
	said.action = slices.IndexFunc(actions, func(x oracle.Action) bool { return x.Name == a.Action })
	if said.action < 0 {
		return codec.ContextError("assigned.action", fmt.Errorf("%w: %q", errAssignedAction, a.Action))
	}
	said.law, said.unknown = appendZeros(said.law[:0], len(actions)), 0
	if len(a.Law) > 0 {
		return r.assignLaw()
	}
	switch p := a.Propensity; {
	case p == 0:
		said.unknown = codec.UnknownLaw
	case p < 0x1p-53:
		return codec.ContextError("assigned.propensity", errAssignedSmall)
	case p < 1 && len(actions) == 1:
		return codec.ContextError("assigned.propensity", errAssignedAlone)
	default:
		said.unknown = codec.UnknownRest
	}
	said.unknown = said.unknown.Fill(said.law, said.action, a.Propensity)
	return nil
}

// assignLaw takes the whole law; an action that it leaves out has propensity 0.
func (r *reader) assignLaw() error {
	a, law, strange := &r.ctx.Assigned, r.said.law, -1
	r.match(a.Law, r.in.Actions, func(i, at int) {
		if at >= 0 {
			law[at] = a.Law[i].P
		} else {
			strange = i
		}
	})
	if strange >= 0 {
		return codec.ContextError("assigned.propensities", fmt.Errorf("%w: %q", errAssignedAction, a.Law[strange].Name))
	}
	normalise(law)
	if learner.Law(law, law); law[r.said.action] == 0 {
		return codec.ContextError("assigned.propensities", errAssignedSmall)
	}
	return nil
}

// repeat fills in a decision what another system decided.
func (d *Decider) repeat(dst *codec.Decision, said *assigned) {
	dst.Mode, dst.Would, dst.Prices, dst.Unknown = codec.External, dst.Would[:0], dst.Prices[:0], said.unknown
	dst.Action, dst.Gamma = said.action, 0
	d.law = append(d.law[:0], said.law...)
}
