package model

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// certificate says what DA-FA over a hedge oracle keeps beside what it learns, to say
// what its regret is at most and whether its class can be right. An Alpha of 0 says that nothing is kept.
type certificate learner.ModelsOptions

// defaultCertificate is what a model file without the key has.
var defaultCertificate = certificate{Alpha: learner.DefaultAlpha, Alarm: true}

// maxAlpha keeps levels to what is worth saying.
const maxAlpha = 0.5

func (c *certificate) fields() []field {
	return []field{
		{key: "alpha", into: &c.Alpha, expected: "a level in (0, 0.5], found %v; for example: alpha: 0.05",
			ok: func(a float64) bool { return a > 0 && a <= maxAlpha }, example: "alpha: 0.05"},
		{key: "alarm", into: &c.Alarm, example: "alarm: true"},
	}
}

func (c *certificate) read(p *parser, n *yaml.Node) {
	if *c = (certificate{}); isWord(n, "none") {
		return
	}
	*c = defaultCertificate
	p.group(n, "certificate", "none, or alpha and alarm", "certificate: {alpha: 0.05, alarm: true}", c.fields())
}

func (c *certificate) canonical() string {
	if c.Alpha == 0 {
		return "none"
	}
	return braces(c.fields())
}

func (m *Model) certificateProblems(add adder) {
	if c := m.Certificate; !(c.Alpha >= 0 && c.Alpha <= maxAlpha) || c.Alpha == 0 && c.Alarm {
		add("certificate", "alpha: expected a level in (0, 0.5], found %v; for example: certificate: {alpha: 0.05}",
			c.Alpha)
	}
	if m.Learner.Kind != elimination {
		return
	}
	if m.Oracle.Kind != Hedge {
		add("learner", "elimination leaves out what no surviving function of a class thinks best; "+
			"use oracle: {kind: hedge, class: FILE}, or learner: dafa")
	}
	if m.Certificate.Alpha == 0 {
		add("learner", "elimination needs the surviving functions; take certificate: none out")
	}
	if m.Arrival {
		add("learner", "elimination needs outcomes in the order of decisions; use order: fifo")
	}
}

var errElimination = errors.New("elimination needs a hedge oracle")

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
		if err = errElimination; ok {
			return d, d.Eliminate()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	return d, nil
}
