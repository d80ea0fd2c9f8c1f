package model

import (
	"strconv"

	"hindsight/internal/loop"
)

// Canonical returns the model file with every default written out. Equal models
// have equal bytes, Parse reads back an equal model, and the canonical form of
// that is the same again.
func (m *Model) Canonical() []byte {
	w := &writer{}
	w.line("name", strconv.Quote(m.Name))
	w.line("version", strconv.FormatInt(m.Version, 10))
	m.writeActions(w)
	w.line("max_actions", strconv.Itoa(m.MaxActions))
	m.writeFeatures(w)
	w.line("max_features", strconv.Itoa(m.MaxFeatures))
	scale := "loss"
	if m.Reward {
		scale = "reward"
	}
	w.line(scale, "{min: "+formatFloat(m.Range.Min)+", max: "+formatFloat(m.Range.Max)+", clip: "+strconv.FormatBool(m.Range.Clip)+"}")
	switch m.Learner.Kind {
	case EGreedy:
		w.line("learner", "{egreedy: "+formatFloat(m.Learner.Epsilon)+"}")
	case Fixed:
		w.line("learner", "{fixed: "+strconv.Quote(m.Learner.Action)+"}")
	case EXP4DALE:
		w.line("learner", m.Learner.EXP4.canonical())
	default:
		w.line("learner", m.Learner.Kind)
	}
	if m.Explore.Name == Paper {
		w.line("explore", "{paper: "+strconv.FormatInt(m.Explore.Horizon, 10)+"}")
	} else {
		w.line("explore", m.Explore.String())
	}
	w.line("oracle", m.Oracle.canonical())
	w.line("window", FormatWindow(m.Window))
	if m.Impute {
		w.line("missing", "impute")
		w.line("default_loss", formatFloat(m.DefaultLoss))
	} else {
		w.line("missing", "skip")
	}
	w.line("outcomes", aggregates()[m.Outcomes])
	w.line("activation", pick(m.Activation, "required", "none"))
	w.line("order", pick(m.Arrival, "arrival", pick(m.Early, "early", "fifo")))
	m.Certificate.write(w)
	w.line("warm", m.Warm.canonical())
	m.writeModes(w)
	return w.b
}

func (w Warm) canonical() string {
	switch {
	case w.Refit:
		return "refit"
	case w.Keep:
		return "keep"
	case w.Through > 0:
		return strconv.FormatInt(w.Through, 10)
	}
	return "none"
}

type writer struct{ b []byte }

func (w *writer) line(key, value string) {
	w.b = append(append(append(append(w.b, key...), ": "...), value...), '\n')
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func (m *Model) writeActions(w *writer) {
	if m.Actions == nil {
		w.line("actions", "any")
		return
	}
	w.b = append(w.b, "actions:\n"...)
	for _, a := range m.Actions {
		w.b = append(append(append(w.b, "  - "...), strconv.Quote(a)...), '\n')
	}
}

func (m *Model) writeFeatures(w *writer) {
	if m.Features == nil {
		w.line("features", "auto")
		return
	}
	w.b = append(w.b, "features:\n"...)
	for _, f := range m.Features {
		kind := [...]string{loop.NumberFeature: "number", loop.TextFeature: "text", loop.BoolFeature: "bool"}[f.Kind]
		if f.Bounded {
			kind = "{number: [" + formatFloat(f.Lo) + ", " + formatFloat(f.Hi) + "]}"
		}
		// A key that is written "? KEY" may be of any length.
		w.b = append(append(append(w.b, "  ? "...), strconv.Quote(f.Name)...), '\n')
		w.b = append(append(append(w.b, "  : "...), kind...), '\n')
	}
}

func (o Oracle) canonical() string {
	if o.Kind == Hedge {
		return "{kind: hedge, eta: " + formatFloat(o.Eta) + ", class: " + strconv.Quote(o.Class) + ", unproved: " + strconv.FormatBool(o.Unproved) + pick(o.Vovk, ", substitution: vovk}", "}")
	}
	if o.Kind == Auto {
		return o.canonicalAuto()
	}
	s := "{kind: " + o.Kind + o.canonicalVersion() + ", beta: " + o.Beta.canonical() + ", lambda: " + o.Lambda.canonical()
	if o.Forget != 0 { // left out otherwise: older models have the same bytes
		s += ", forget: " + formatFloat(o.Forget)
	}
	if o.Kind == Linear {
		s += o.canonicalRandom()
	}
	if o.Kind == Shared || o.Kind == Hybrid {
		s += ", hashed: " + strconv.FormatInt(o.Hashed, 10)
	}
	return s + "}"
}

func (n Number) canonical() string {
	if n.Auto {
		return "auto"
	}
	return formatFloat(n.Value)
}
