package model

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/oracle"
)

func (p *parser) actions(n *yaml.Node) []string {
	const expected, example = "any or a list of names", "actions: [red, green, blue]"
	if n.Kind == yaml.ScalarNode && n.Value == "any" {
		return nil
	}
	return p.names(n, "actions", expected, example)
}

// names reads a list of names of actions.
func (p *parser) names(n *yaml.Node, where, expected, example string) []string {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.errorf(n, "%s: expected %s, found %s; for example: %s", where, expected, describe(n), example)
		return nil
	}
	names := make([]string, 0, len(n.Content))
	seen := make(map[string]bool, len(n.Content))
	for _, c := range n.Content {
		name, ok := p.scalar(c, where, "a name", example)
		if !ok {
			continue
		}
		if err := checkText(name); err != nil {
			p.errorf(c, "%s: the name %v; for example: %s", where, err, example)
		} else if seen[name] {
			p.errorf(c, "%s: the name %q is there twice", where, name)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

func (p *parser) features(n *yaml.Node) []Feature {
	const example = "features: {age: number, price: {number: [0, 100]}, country: text, vip: bool}"
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		return nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.errorf(n, "features: expected auto or names with their types, found %s; for example: %s", describe(n), example)
		return nil
	}
	var fs []Feature
	p.mapping(n, "features", nil, func(name string, v *yaml.Node) {
		if err := checkText(name); err != nil {
			p.errorf(v, "features: the name %v", err)
			return
		}
		fs = append(fs, p.feature(name, v))
	})
	sortFeatures(fs)
	return fs
}

func sortFeatures(fs []Feature) {
	slices.SortFunc(fs, func(a, b Feature) int { return strings.Compare(a.Name, b.Name) })
}

func (p *parser) feature(name string, n *yaml.Node) Feature {
	f := Feature{Name: name}
	where := "features." + name
	if n.Kind != yaml.MappingNode {
		f.Kind = loop.FeatureKind(p.choice(n, where, "number", "text", "bool")) + loop.NumberFeature
		return f
	}
	f.Kind, f.Bounded, f.Hi = loop.NumberFeature, true, 1
	p.mapping(n, where, []string{"number"}, func(_ string, v *yaml.Node) {
		const example = "price: {number: [0, 100]}"
		if v.Kind != yaml.SequenceNode || len(v.Content) != 2 {
			p.errorf(v, "%s: expected the least and the largest value, found %s; for example: %s", where, describe(v), example)
			return
		}
		f.Lo, f.Hi = p.number(v.Content[0], where, example), p.number(v.Content[1], where, example)
		if !(f.Lo < f.Hi) {
			p.errorf(v, "%s: the least value %v is not below the largest %v; for example: %s", where, f.Lo, f.Hi, example)
		}
	})
	if len(n.Content) == 0 {
		p.errorf(n, "%s: expected a type; for example: price: {number: [0, 100]}", where)
	}
	return f
}

func (p *parser) scale(n *yaml.Node, key string) loop.Range {
	example := key + ": {min: 0, max: 1, clip: false}"
	r := loop.Range{Min: 0, Max: 1}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "%s: expected min, max and clip, found %s; for example: %s", key, describe(n), example)
		return r
	}
	p.mapping(n, key, []string{"min", "max", "clip"}, func(k string, v *yaml.Node) {
		switch k {
		case "min":
			r.Min = p.number(v, key+".min", example)
		case "max":
			r.Max = p.number(v, key+".max", example)
		case "clip":
			r.Clip = p.boolean(v, key+".clip", example)
		}
	})
	if !(r.Min < r.Max) || r.Max-r.Min > maxRange {
		p.errorf(n, "%s: expected min below max, found min %v and max %v; for example: %s", key, r.Min, r.Max, example)
	}
	return r
}

// maxRange keeps max − min finite.
const maxRange = 1e300

// parameter splits `NAME`, `NAME:ARG` and {NAME: ARG} into name and argument.
func (p *parser) parameter(n *yaml.Node, where, example string) (name, arg string, has, ok bool) {
	if n.Kind == yaml.MappingNode {
		if len(n.Content) != 2 || n.Content[0].Kind != yaml.ScalarNode {
			p.errorf(n, "%s: expected one name with its parameter, found %d; for example: %s", where, len(n.Content)/2, example)
			return "", "", false, false
		}
		arg, ok = p.scalar(n.Content[1], where, "a parameter", example)
		return n.Content[0].Value, arg, true, ok
	}
	s, ok := p.scalar(n, where, "a name", example)
	name, arg, has = strings.Cut(s, ":")
	return strings.TrimSpace(name), strings.TrimSpace(arg), has, ok
}

func (p *parser) learner(n *yaml.Node) Learner {
	if isKind(n) {
		return p.exp4(n)
	}
	name, arg, has, ok := p.parameter(n, "learner", "learner: {egreedy: 0.05}")
	if !ok {
		return Learner{}
	}
	l, err := newLearner(name, arg, has)
	if err != nil {
		p.errorf(n, "learner: %v", err)
	}
	return l
}

func (p *parser) explore(n *yaml.Node) Explore {
	name, arg, has, ok := p.parameter(n, "explore", "explore: balanced")
	if !ok {
		return Explore{}
	}
	e, err := newExplore(name, arg, has)
	if err != nil {
		p.errorf(n, "explore: %v", err)
	} else if why := e.Warning(); why != "" {
		p.warn(n, "%s", why)
	}
	return e
}

func (p *parser) window(n *yaml.Node) loop.Window {
	s, ok := p.scalar(n, "window", "a duration or a number of rounds", "window: 10m")
	if !ok {
		return loop.Window{}
	}
	w, err := ParseWindow(s)
	if err != nil {
		p.errorf(n, "%v", err)
	} else {
		p.warnWindow(n, w)
	}
	return w
}

func (p *parser) warm(n *yaml.Node) Warm {
	const expected, example = "none, keep, refit or the number of a feedback", "warm: refit"
	s, ok := p.scalar(n, "warm", expected, example)
	switch {
	case !ok || s == "none":
	case s == "refit":
		return Warm{Refit: true}
	case s == "keep":
		return Warm{Keep: true}
	case n.Tag == "!!int":
		return Warm{Through: p.integer(n, "warm", 1, 1<<53, "warm: 12000")}
	default:
		p.errorf(n, "warm: expected %s, found %q; for example: %s", expected, s, example)
	}
	return Warm{}
}

func (p *parser) oracle(n *yaml.Node) Oracle {
	const example = "oracle: auto"
	if n.Kind == yaml.ScalarNode && slices.Contains([]string{Auto, Linear, Shared, Hybrid}, n.Value) {
		kind := &yaml.Node{Kind: yaml.ScalarNode, Value: "kind", Line: n.Line, Column: n.Column}
		n = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{kind, n}, Line: n.Line, Column: n.Column}
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "oracle: expected a kind and its parameters, found %s; for example: %s", describe(n), example)
		return Oracle{}
	}
	kind := Linear
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "kind" {
			kind = n.Content[i+1].Value
			if !slices.Contains(oracleKinds(), kind) {
				p.oracleKind(n.Content[i+1])
				return Oracle{}
			}
		}
	}
	o, allowed := newLinear(), linearKeys()
	switch kind {
	case Hedge:
		o, allowed = Oracle{Kind: kind}, []string{"kind", "eta", "class", "unproved", "substitution"}
	case Shared, Hybrid:
		o, allowed = newShared(kind), []string{"kind", "version", "beta", "lambda", "hashed"}
	case Auto:
		o, allowed = newAuto(), []string{"kind", "version", "beta", "columns", "fourier", "seed", "share"}
	}
	if kind != Hedge {
		o.Version = p.version
	}
	given := map[string]*yaml.Node{}
	p.mapping(n, "oracle", allowed, func(k string, v *yaml.Node) {
		given[k] = v
		p.oracleKey(&o, k, v)
	})
	if kind == Linear {
		p.finishLinear(&o, given)
	}
	return o
}

// oracleKinds returns what a model file may name.
func oracleKinds() []string { return []string{Auto, Linear, Hedge, Shared, Hybrid} }

// newLinear returns the linear oracle with its defaults.
func newLinear() Oracle {
	return Oracle{Kind: Linear, Version: oracle.Newest, Beta: Number{Auto: true}, Lambda: Number{Auto: true}}
}

// newAuto returns the aggregate with its defaults.
func newAuto() Oracle {
	auto := Number{Auto: true}
	return Oracle{Kind: Auto, Version: oracle.Newest, Beta: auto, Columns: auto, Fourier: auto, Seed: 1}
}

func (p *parser) oracleKind(n *yaml.Node) {
	if n.Value == Unstable || n.Value == Own {
		p.errorf(n, "oracle.kind: %s is the oracle of an environment, for backtests only (replayer backtest --env unstable); a live system has linear or hedge", n.Value)
		return
	}
	p.errorf(n, "oracle.kind: expected auto | linear | hedge | shared | hybrid, found %s%s; for example: oracle: {kind: linear}", describe(n), didYouMean(n.Value, oracleKinds()))
}

func (p *parser) oracleKey(o *Oracle, key string, n *yaml.Node) {
	switch key {
	case "version":
		o.Version = int(p.integer(n, "oracle.version", 1, oracle.Newest, "version: "+strconv.Itoa(oracle.Newest)))
	case "beta":
		o.Beta = p.autoNumber(n, "oracle.beta", "beta: 0.5")
	case "lambda":
		o.Lambda = p.autoNumber(n, "oracle.lambda", "lambda: 1")
	case "columns":
		o.Columns = p.autoNumber(n, "oracle.columns", "columns: 17")
	case "forget":
		o.Forget = p.number(n, "oracle.forget", "forget: 0.998")
		if !(o.Forget >= 0.5 && o.Forget < 1) {
			p.errorf(n, "oracle.forget: expected a number in [0.5, 1), found %v; leave it out to forget nothing; for example: forget: 0.998", o.Forget)
		}
	case "hashed":
		o.Hashed = p.integer(n, "oracle.hashed", 2, maxHashed, "hashed: 256")
	case "fourier":
		o.Fourier = p.autoNumber(n, "oracle.fourier", "fourier: 128")
	case "share":
		o.Steered = p.choice(n, "oracle.share", "fixed", "steered") == 1
	case "bandwidth":
		o.Bandwidth = p.number(n, "oracle.bandwidth", "bandwidth: 1")
	case "seed":
		o.Seed = p.integer(n, "oracle.seed", 0, 1<<53, "seed: 1")
	case "eta":
		o.Eta = p.number(n, "oracle.eta", "eta: 0.5")
		if o.Eta <= 0 {
			p.errorf(n, "oracle.eta: expected a positive number, found %v; for example: eta: 0.5", o.Eta)
		}
	case "class":
		o.Class = p.text(n, "oracle.class", "class: shop.class.jsonl")
	case "substitution":
		o.Vovk = p.choice(n, "oracle.substitution", "mean", "vovk") == 1
	case "unproved":
		o.Unproved = p.boolean(n, "oracle.unproved", "unproved: true")
	}
}

func (p *parser) autoNumber(n *yaml.Node, where, example string) Number {
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		return Number{Auto: true}
	}
	return Number{Value: p.number(n, where, example)}
}
