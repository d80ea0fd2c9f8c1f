package model

import (
	"errors"
	"fmt"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// certificate says what DA-FA over a hedge oracle keeps beside what it learns, to say
// what its regret is at most and whether its class can be right. An Alpha of 0 says that nothing is kept.
type certificate learner.ModelsOptions

// defaultCertificate is what a model file without the key has.
var defaultCertificate = certificate{Alpha: learner.DefaultAlpha, Alarm: true}

func (c *certificate) group() group {
	g := group{words: []string{"none"}, set: func(word string) {
		if *c = defaultCertificate; word != "" {
			*c = certificate{}
		}
	}, rows: func() []field {
		return []field{alphaField(&c.Alpha, "0.05"), {key: "alarm", into: &c.Alarm, example: "true"}}
	}}
	if *c == (certificate{}) {
		g.word = "none"
	}
	return g
}

func (m *Model) certificateProblems(add adder) {
	if m.Learner.Kind != elimination {
		return
	}
	if m.Oracle.Kind != Hedge {
		add("learner", "elimination leaves out what no surviving function of a class thinks best; use oracle: {kind: "+
			"hedge, class: FILE}, or learner: dafa")
	}
	if m.Certificate.Alpha == 0 {
		add("learner", "elimination needs the surviving functions; take certificate: none out")
	}
	if m.Arrival {
		add("learner", "elimination needs outcomes in the order of decisions; use order: fifo")
	}
}

// watch makes DA-FA keep what the certificate needs.
func (m *Model) watch(d *learner.DAFA) (l learner.Learner, err error) {
	h, ok := d.Oracle().(*oracle.Hedge)
	var models *learner.Models
	if ok && m.Certificate.Alpha > 0 {
		models, err = learner.NewModels(h.Class(), learner.ModelsOptions(m.Certificate))
	}
	switch {
	case err != nil:
	case models != nil && m.Arrival:
		err = d.WatchArrivals(models)
	case models != nil:
		err = d.Watch(models)
	}
	if err == nil && m.Learner.Kind == elimination {
		if err = errors.New("elimination needs a hedge oracle"); ok {
			return d, d.Eliminate()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	return d, nil
}
