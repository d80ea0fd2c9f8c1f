package replay

import (
	"strconv"
	"strings"
)

// rowPropensity reads the propensity of the recorded action. One that is 0, missing or no
// probability makes every estimate wrong: it is an error, never left out.
func (p *logParser) rowPropensity(row []string) error {
	if p.propensity < 0 {
		return nil
	}
	name, cell := p.o.Mapping.Propensity, strings.TrimSpace(row[p.propensity])
	if cell == "" {
		return p.errorAll(p.line(p.propensity), name, "the propensity of the action is missing")
	}
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case err != nil:
		return p.errorAll(p.line(p.propensity), name, "%q is not a number", cell)
	case v == 0:
		return p.errorAll(p.line(p.propensity), name, "the action was played with propensity 0: that cannot be")
	case !(v > 0 && v <= 1):
		return p.errorAll(p.line(p.propensity), name, "the propensity %v is not in (0, 1]", v)
	}
	p.kept.props.add(v)
	return nil
}
