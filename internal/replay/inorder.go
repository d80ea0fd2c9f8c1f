package replay

import (
	"errors"
	"slices"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// inOrder keeps the models of a class whose oracle learns in the order of arrival, which
// are fed in the order of decisions: the proofs want that (package learner). It is for one
// partition, from its first round on. A live learner keeps none then, for it would have to
// hold in its state all rounds that are ahead of one that waits.
type inOrder struct {
	models *learner.Models
	warm   *loop.Warm
	next   int64 // round
	ahead  map[int64]*codec.Feedback
}

// newInOrder returns nil where no models are missing, at the default level.
func newInOrder(ep loop.Epoch) (*inOrder, error) {
	d, ok := ep.Learner.(*learner.DAFA)
	if !ok || !ep.Rules.Arrival {
		return nil, nil
	}
	h, ok := d.Oracle().(*oracle.Hedge)
	if !ok {
		return nil, nil
	}
	m, err := learner.NewModels(h.Class(), learner.ModelsOptions{Alarm: true})
	if err != nil {
		return nil, err
	}
	return &inOrder{models: m, next: 1, ahead: map[int64]*codec.Feedback{},
		warm: loop.NewWarm(loop.Epoch{Number: ep.Number, Rules: ep.Rules, Learner: modelsAlone{learner.NewUniform(), m}})}, nil
}

// modelsAlone is a learner that feeds models and nothing else.
type modelsAlone struct {
	learner.Learner
	models *learner.Models
}

func (l modelsAlone) Learn(r *learner.Round) { l.models.Add(r) }

var errOrder = errors.New("a round has its feedback twice")

// add takes the next feedback in the order of arrival.
func (o *inOrder) add(f *codec.Feedback) error {
	if o == nil {
		return nil
	}
	if f.Round < o.next {
		return errOrder
	}
	if f.Round > o.next {
		c := *f
		c.ID, c.Reason = strings.Clone(f.ID), strings.Clone(f.Reason)
		c.Actions, c.Propensities, c.Context = nil, slices.Clone(f.Propensities), slices.Clone(f.Context)
		o.ahead[f.Round] = &c
		return nil
	}
	for f != nil {
		if err := o.warm.Again(f); err != nil {
			return err
		}
		delete(o.ahead, o.next)
		o.next++
		f = o.ahead[o.next]
	}
	return nil
}
