package logs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/scan"
)

// Mapping says which columns of a CSV file are what in a bandit log. "" stands for a column that is not there.
type Mapping struct {
	Time          string   // of the decision
	OutcomeTime   string   // at which the outcome was known; an empty cell: never
	Action        string   // that was played
	Loss, Reward  string   // one of both; an empty cell: no outcome
	Outcomes      []string // instead of both: columns of named outcomes, or COLUMN:TIME, each with its own time
	ID            string   // of the round
	Propensity    string   // with which Action was played, in (0, 1]
	Features      []string // columns that are features: NAME, or NAME:number, NAME:text, NAME:ngrams
	FeaturePrefix string   // columns whose name begins with it are features, too
}

// mappingKey is one key of a mapping: of its file, and behind -- of the command line.
type mappingKey struct {
	name string
	text func(m *Mapping) *string   // the name of a column
	list func(m *Mapping) *[]string // or those of several
}

func mappingKeys() []mappingKey {
	return []mappingKey{
		{name: "time-column", text: func(m *Mapping) *string { return &m.Time }},
		{name: "outcome-time-column", text: func(m *Mapping) *string { return &m.OutcomeTime }},
		{name: "action-column", text: func(m *Mapping) *string { return &m.Action }},
		{name: "loss-column", text: func(m *Mapping) *string { return &m.Loss }},
		{name: "reward-column", text: func(m *Mapping) *string { return &m.Reward }},
		{name: "id-column", text: func(m *Mapping) *string { return &m.ID }},
		{name: "propensity-column", text: func(m *Mapping) *string { return &m.Propensity }},
		{name: "outcome-columns", list: func(m *Mapping) *[]string { return &m.Outcomes }},
		{name: "features", list: func(m *Mapping) *[]string { return &m.Features }},
		{name: "feature-prefix", text: func(m *Mapping) *string { return &m.FeaturePrefix }},
	}
}

// IsZero reports whether the mapping says nothing.
func (m *Mapping) IsZero() bool {
	for _, k := range mappingKeys() {
		if k.text != nil && *k.text(m) != "" || k.list != nil && len(*k.list(m)) > 0 {
			return false
		}
	}
	return true
}

// OnlyFeatures reports whether the mapping says nothing but features.
func (m *Mapping) OnlyFeatures() bool {
	rest := *m
	rest.Features = nil
	return len(m.Features) > 0 && rest.IsZero()
}

// Keys returns the names of the features for [Options.Keys], and which of them may be texts of any length: those
// declared so, and those that long has.
func (m *Mapping) Keys(long func(name string) bool) (keys []string, any func(name string) bool) {
	var ngrams []string
	for _, f := range m.Features {
		name, is := strings.CutSuffix(f, ":ngrams")
		if is {
			ngrams = append(ngrams, name)
		}
		keys = append(keys, strings.TrimSuffix(strings.TrimSuffix(name, ":text"), ":number"))
	}
	return keys, func(name string) bool { return slices.Contains(ngrams, name) || long != nil && long(name) }
}

// value is the column of outcomes.
func (m *Mapping) value() string { return m.Loss + m.Reward }

// untyped reports whether it names features without their types.
func (m *Mapping) untyped() bool {
	return m.FeaturePrefix != "" || slices.ContainsFunc(m.Features, func(f string) bool {
		return !strings.HasSuffix(f, ":text") && !strings.HasSuffix(f, ":number") && !strings.HasSuffix(f, ":ngrams")
	})
}

// Override sets in m what o says.
func (m *Mapping) Override(o Mapping) {
	for _, k := range mappingKeys() {
		if k.text != nil && *k.text(&o) != "" {
			*k.text(m) = *k.text(&o)
		}
	}
	if len(o.Features) > 0 {
		m.Features = o.Features
	}
	if o.value() != "" || len(o.Outcomes) > 0 {
		m.Loss, m.Reward, m.Outcomes = o.Loss, o.Reward, o.Outcomes
	}
}

// Validate reports what a mapping of a bandit log lacks.
func (m *Mapping) Validate() error {
	switch {
	case m.Action == "":
		return errors.New("a bandit log needs the column of its actions: --action-column, or action-column: in the " +
			"file of --mapping")
	case m.value() == "" && len(m.Outcomes) == 0:
		return errors.New("a bandit log needs the column of its losses or of its rewards: --loss-column or " +
			"--reward-column, or those of named outcomes: --outcome-columns; or likewise in the file of --mapping")
	case m.Loss != "" && m.Reward != "" || m.value() != "" && len(m.Outcomes) > 0:
		return errors.New("a bandit log has a column of losses or one of rewards, not both, and columns of named " +
			"outcomes in place of either")
	case m.OutcomeTime != "" && m.Time == "":
		return errors.New("an outcome time needs the time of the decision beside it: --time-column")
	}
	return nil
}

const mappingExample = "for example:\ntime-column: decision_ts\noutcome-time-column: outcome_ts\naction-column: " +
	"carrier\nreward-column: on_time\nfeatures: [origin, dest, distance]"

// ParseMapping reads a mapping from YAML: the flags' names as keys, with - or _. Errors are [*LineError].
func ParseMapping(file string, b []byte) (Mapping, error) {
	var m Mapping
	root, wrong := scan.YAML(file, b)
	switch {
	case wrong != nil:
		wrong.Column = max(wrong.Column, 1) // YAML says the line alone
		return m, wrong
	case root == nil:
		return m, &scan.LineError{File: file, Line: 1, Column: 1, Msg: "the mapping is empty; " + mappingExample}
	case root.Kind != yaml.MappingNode:
		return m, scan.AtNode(file, root, "expected keys with the names of columns; "+mappingExample)
	}
	seen := map[string]bool{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		name := strings.ReplaceAll(key.Value, "_", "-")
		if seen[name] {
			return m, scan.AtNode(file, key, key.Value+" is there twice")
		}
		seen[name] = true
		if err := m.set(name, key, value); err != nil {
			err.File = file
			return m, err
		}
	}
	return m, nil
}

func (m *Mapping) set(name string, key, value *yaml.Node) *scan.LineError {
	all := mappingKeys()
	i := slices.IndexFunc(all, func(k mappingKey) bool { return k.name == name })
	if i < 0 {
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		return scan.AtNode("", key, fmt.Sprintf("unknown key %q; the keys are %s", key.Value,
			strings.Join(names, ", ")))
	}
	if all[i].list != nil {
		return setList(all[i].list(m), name, value)
	}
	if value.Kind != yaml.ScalarNode || value.Value == "" || value.Tag == "!!null" {
		return scan.AtNode("", value, fmt.Sprintf("%s: expected the name of a column, for example %s: %s", key.Value,
			key.Value, "decision_ts"))
	}
	*all[i].text(m) = value.Value
	return nil
}

// setList reads the names of columns.
func setList(into *[]string, key string, value *yaml.Node) *scan.LineError {
	if value.Kind == yaml.ScalarNode && value.Value != "" && value.Tag != "!!null" {
		*into = SplitColumns(value.Value)
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		return scan.AtNode("", value, key+": expected a list of columns, for example "+key+": [origin, "+
			"distance:number]")
	}
	for _, n := range value.Content {
		if n.Kind != yaml.ScalarNode || n.Value == "" || n.Tag == "!!null" {
			return scan.AtNode("", n, key+": expected the name of a column")
		}
		*into = append(*into, n.Value)
	}
	return nil
}

// SplitColumns splits a list of columns as a flag gives it.
func SplitColumns(text string) []string {
	var out []string
	for _, name := range strings.Split(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
