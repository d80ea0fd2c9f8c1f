package replay

import (
	"fmt"
	"slices"
	"strings"

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

// UseActions gives a model the actions of the data where it lists none and the contexts
// do not bring theirs, and reports one that cannot play what the data needs.
func UseActions(m *model.Model, r *Rounds) error {
	all := r.Actions
	if r.Log != nil && r.Log.rows != nil {
		n := r.Log.rows.largest
		if m.Actions == nil && n == len(all) {
			m.Actions = slices.Clone(all)
		}
		if n > m.MaxActions {
			return fmt.Errorf("a round of the log has %d actions, and the model's max_actions is %d", n, m.MaxActions)
		}
		for _, a := range all {
			if m.Actions != nil && !slices.Contains(m.Actions, a) {
				return fmt.Errorf("the model does not list the action %q of the log", a)
			}
		}
		return nil
	}
	if m.Actions == nil {
		m.Actions = slices.Clone(all)
	}
	if !slices.Equal(m.Actions, all) {
		return fmt.Errorf("the model lists the actions %s, but the data has %s: list those, in this order, or "+
			"write actions: any", fewNames(m.Actions), fewNames(all))
	}
	return nil
}

// fewNames writes the first of many names.
func fewNames(all []string) string {
	const most = 10
	if len(all) > most {
		return strings.Join(all[:most], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}
