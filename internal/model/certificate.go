package model

import (
	"errors"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Elimination is a kind of learner: DA-FA that plays only what a surviving function thinks
// best ([learner.DAFA.Eliminate]).
const Elimination = "elimination"

// Certificate says what DA-FA over a hedge oracle keeps beside what it learns, to say
// what its regret is at most and whether its class can be right ([learner.Models]).
type Certificate struct {
	Alpha float64 // level of the plausible set and of the alarm, in (0, ½]; 0: nothing is kept
	Alarm bool    // watch realizability
}

// defaultCertificate is what a model file without the key has.
var defaultCertificate = Certificate{Alpha: learner.DefaultAlpha, Alarm: true}

// maxAlpha keeps levels to what is worth saying.
const maxAlpha = 0.5

func (p *parser) certificate(n *yaml.Node) Certificate {
	const example = "certificate: {alpha: 0.05, alarm: true}"
	c := defaultCertificate
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return Certificate{}
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "certificate: expected none, or alpha and alarm, found %s; for example: %s", describe(n), example)
		return c
	}
	p.mapping(n, "certificate", []string{"alpha", "alarm"}, func(k string, v *yaml.Node) {
		switch k {
		case "alpha":
			if c.Alpha = p.number(v, "certificate.alpha", "alpha: 0.05"); !(c.Alpha > 0 && c.Alpha <= maxAlpha) {
				p.errorf(v, "certificate.alpha: expected a level in (0, 0.5], found %v; for example: alpha: 0.05", c.Alpha)
			}
		case "alarm":
			c.Alarm = p.boolean(v, "certificate.alarm", "alarm: true")
		}
	})
	return c
}

// write writes the key, unless it is as if it were not there: the canonical form of a file
// that an older program read stays what it was.
func (c Certificate) write(w *writer) {
	switch {
	case c == defaultCertificate:
	case c.Alpha == 0:
		w.line("certificate", "none")
	default:
		w.line("certificate", "{alpha: "+formatFloat(c.Alpha)+", alarm: "+strconv.FormatBool(c.Alarm)+"}")
	}
}

func (m *Model) certificateProblems(add func(key, format string, args ...any)) {
	if c := m.Certificate; !(c.Alpha >= 0 && c.Alpha <= maxAlpha) || c.Alpha == 0 && c.Alarm {
		add("certificate", "alpha: expected a level in (0, 0.5], found %v; for example: certificate: {alpha: 0.05}", c.Alpha)
	}
	if m.Learner.Kind != Elimination {
		return
	}
	if m.Oracle.Kind != Hedge {
		add("learner", "elimination leaves out what no surviving function of a class thinks best; use oracle: {kind: hedge, class: FILE}, or learner: dafa")
	}
	if m.Certificate.Alpha == 0 {
		add("learner", "elimination needs the surviving functions; take certificate: none out")
	}
	if m.Arrival {
		add("learner", "elimination needs outcomes in the order of decisions; use order: fifo")
	}
}

// watch makes DA-FA keep what the certificate needs.
func (m *Model) watch(d *learner.DAFA) (learner.Learner, error) {
	h, ok := d.Oracle().(*oracle.Hedge)
	if ok && m.Certificate.Alpha > 0 {
		models, err := learner.NewModels(h.Class(), learner.ModelsOptions{Alpha: m.Certificate.Alpha, Alarm: m.Certificate.Alarm})
		switch {
		case err != nil:
		case m.Arrival:
			err = d.WatchArrivals(models)
		default:
			err = d.Watch(models)
		}
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
	}
	if m.Learner.Kind != Elimination {
		return d, nil
	}
	if !ok {
		return nil, fmt.Errorf("model %s: %w", m.Name, errElimination)
	}
	return d, d.Eliminate()
}

var errElimination = errors.New("elimination needs a hedge oracle")
