package replay

import (
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// listedActions is how many actions a model of a log lists: where more occur they come and
// go, and contexts alone say which there are.
const listedActions = 1000

// fit gives a model that was made for a log what the log says: the range of its values,
// which actions there may be, and an oracle that fits the memory of a model.
func (b *BanditLog) fit(m *model.Model) {
	if b.scale != (loop.Range{Min: 0, Max: 1}) {
		m.Reward, m.Range = b.kind == codec.Reward, b.scale
	}
	if b.rows == nil {
		return
	}
	if len(b.actions) > listedActions && b.rows.largest < len(b.actions) {
		m.Actions, m.MaxActions = nil, b.rows.largest
	}
	m.MaxFeatures = min(m.MaxFeatures, codec.MaxFeatures)
	if b.intake.Featured && b.rows.slots != nil || m.Memory() > model.MaxMemory {
		m.Oracle, _ = model.ParseOracle(model.Hybrid)
	}
}
