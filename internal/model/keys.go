package model

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// keyNames returns the top-level keys in the order of the canonical form.
func keyNames() []string {
	return []string{"name", "version", "actions", "max_actions", "features", "max_features", "loss", "reward",
		"learner", "explore", "oracle", "window", "missing", "default_loss", "outcomes", "activation", "order", "certificate", "warm", "baseline", "masked", "guard", "mode"}
}

// key reads the value of one top-level key into m.
func (p *parser) key(m *Model, key string, n *yaml.Node) {
	switch key {
	case "name":
		m.Name = p.text(n, key, "name: shop")
	case "version":
		m.Version = p.integer(n, key, 1, 1<<53, "version: 2")
	case "actions":
		m.Actions = p.actions(n)
	case "max_actions":
		m.MaxActions = int(p.integer(n, key, 1, codec.MaxActions, "max_actions: 1000"))
	case "features":
		m.Features = p.features(n)
	case "max_features":
		m.MaxFeatures = int(p.integer(n, key, 1, codec.MaxFeatures, "max_features: 256"))
	case "loss", "reward":
		m.Reward = key == "reward"
		m.Range = p.scale(n, key)
	case "learner":
		m.Learner = p.learner(n)
	case "explore":
		m.Explore = p.explore(n)
	case "oracle":
		m.Oracle = p.oracle(n)
	case "window":
		m.Window = p.window(n)
	case "missing":
		m.Impute = p.choice(n, key, "skip", "impute") == 1
	case "default_loss":
		m.DefaultLoss = p.number(n, key, "default_loss: 1")
	case "outcomes":
		m.Outcomes = loop.Aggregate(p.choice(n, key, aggregates()...))
	case "activation":
		m.Activation = p.choice(n, key, "none", "required") == 1
	case "order":
		k := p.choice(n, key, "fifo", "arrival", "early")
		m.Arrival, m.Early = k == 1, k == 2
	case "certificate":
		m.Certificate = p.certificate(n)
	case "warm":
		m.Warm = p.warm(n)
	default:
		p.modeKey(m, key, n)
	}
}

// aggregates returns the names of loop.First, loop.Last, … in their order.
func aggregates() []string { return []string{"first", "last", "sum", "mean", "max", "min"} }

// finish fills what depends on several keys, and reports keys that fight.
func (p *parser) finish(m *Model) {
	if p.at["loss"] != nil && p.at["reward"] != nil {
		p.errorf(p.at["reward"], "reward: loss is given too; keep one of them")
	}
	if p.at["default_loss"] != nil && !m.Impute {
		p.errorf(p.at["default_loss"], "default_loss: it has no effect without missing: impute; for example: missing: impute")
	}
	m.borrow()
	if m.Actions != nil && p.at["max_actions"] == nil {
		m.MaxActions = len(m.Actions)
	}
	if p.at["oracle"] == nil {
		m.defaultOracle(p.version)
	}
	if p.at["order"] == nil {
		if m.DefaultOrder(); p.version == 1 {
			m.Early = false
		}
	}
	if o := p.at["oracle"]; m.Oracle.Kind == Hedge && m.Oracle.Eta == 0 && o != nil {
		m.Oracle.Eta = 0.5
		if m.Oracle.Vovk {
			m.Oracle.Eta = oracle.VovkEta
		}
		if m.Explore.Name == Paper {
			m.Oracle.Eta = PaperEta
		}
	}
}

// scalar returns the text of a scalar that is not null.
func (p *parser) scalar(n *yaml.Node, where, expected, example string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.errorf(n, "%s: expected %s, found %s; for example: %s", where, expected, describe(n), example)
		return "", false
	}
	return n.Value, true
}

func (p *parser) text(n *yaml.Node, where, example string) string {
	s, _ := p.scalar(n, where, "a text", example)
	return s
}

func (p *parser) integer(n *yaml.Node, where string, lo, hi int64, example string) int64 {
	const expected = "a whole number"
	s, ok := p.scalar(n, where, expected, example)
	if !ok {
		return lo
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n.Tag != "!!int" {
		p.errorf(n, "%s: expected %s, found %q; for example: %s", where, expected, s, example)
		return lo
	}
	if v < lo || v > hi {
		p.errorf(n, "%s: expected %s in %d…%d, found %d; for example: %s", where, expected, lo, hi, v, example)
		return lo
	}
	return v
}

func (p *parser) number(n *yaml.Node, where, example string) float64 {
	s, ok := p.scalar(n, where, "a number", example)
	if !ok {
		return 0
	}
	v, err := parseFloat(s)
	if err != nil || (n.Tag != "!!int" && n.Tag != "!!float") {
		p.errorf(n, "%s: expected a finite number, found %q; for example: %s", where, s, example)
		return 0
	}
	return v
}

func (p *parser) boolean(n *yaml.Node, where, example string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.errorf(n, "%s: expected true or false, found %s; for example: %s", where, describe(n), example)
		return false
	}
	var v bool
	if err := n.Decode(&v); err != nil {
		p.errorf(n, "%s: %v", where, err)
	}
	return v
}

// choice returns the index of the scalar in names.
func (p *parser) choice(n *yaml.Node, where string, names ...string) int {
	expected := names[0]
	for _, name := range names[1:] {
		expected += " | " + name
	}
	s, ok := p.scalar(n, where, expected, where+": "+names[0])
	if !ok {
		return 0
	}
	for i, name := range names {
		if s == name {
			return i
		}
	}
	p.errorf(n, "%s: expected %s, found %q%s; for example: %s: %s", where, expected, s, didYouMean(s, names), where, names[0])
	return 0
}
