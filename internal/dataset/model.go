package dataset

import (
	"cmp"
	"slices"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// listedActions is how many actions a model of a log lists: where more occur they come and
// go, and contexts alone say which there are.
const listedActions = 1000

// Fit gives a model that was made for a log what the log says: the range of its values,
// which actions there may be, and an oracle that fits the memory of a model.
func (b *Table) Fit(m *model.Model) {
	if b.Scale != (loop.Range{Min: 0, Max: 1}) {
		m.Reward, m.Range = b.Kind == codec.Reward, b.Scale
	}
	if b.rows == nil {
		b.declare(m)
		return
	}
	if b.Arms {
		b.declare(m)
	}
	if len(b.Actions) > listedActions && b.rows.largest < len(b.Actions) {
		m.Actions, m.MaxActions = nil, b.rows.largest
	}
	m.MaxFeatures = min(m.MaxFeatures, codec.MaxFeatures)
	if b.Intake.Featured && b.rows.slots != nil || m.Memory() > model.MaxMemory {
		m.Oracle, _ = model.ParseOracle(model.Hybrid)
	}
}

// declare gives a model the schema of a log in CSV, where a column of it is one of texts whose words count.
func (b *Table) declare(m *model.Model) {
	if !slices.ContainsFunc(b.columns, func(c logColumn) bool { return c.ngrams }) {
		return
	}
	for _, c := range b.columns {
		f := loop.FeatureRule{Name: c.name, Kind: loop.TextFeature}
		switch {
		case c.ngrams:
			f.Kind = loop.NgramsFeature
		case c.truth:
			f.Kind = loop.BoolFeature
		case c.number:
			f.Kind = loop.NumberFeature
		}
		m.Features = append(m.Features, f)
	}
	slices.SortFunc(m.Features, func(a, b loop.FeatureRule) int { return cmp.Compare(a.Name, b.Name) })
}
