package model

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
)

// Warning returns what a number is probably mistaken for, "" if it is not: other programs
// explore by ε, which is below 1, and a factor that small leaves all to chance.
func (e Explore) Warning() string {
	if e.Name != "" || e.Factor >= 1 {
		return ""
	}
	f := formatFloat(e.Factor)
	return fmt.Sprintf("explore: %s is no ε, the share of rounds that are left to chance: it is a factor of γ, and one so small plays nearly at random for very long; for ε-greedy write learner: {egreedy: %s}, else leave explore out", f, f)
}

// fewRounds is below which a window in rounds that is written as a bare number was perhaps
// meant in other units.
const fewRounds = 100

// warnWindow adds what a window that was read is probably mistaken for.
func (p *parser) warnWindow(n *yaml.Node, w loop.Window) {
	if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil && w.Rounds < fewRounds {
		p.warn(n, "window: %s means rounds: a round waits until %d later ones are decided; for minutes write window: %[2]dm, and if rounds are meant, window: %[3]s", n.Value, w.Rounds, FormatWindow(w))
	}
}

func (p *parser) warn(n *yaml.Node, format string, args ...any) {
	p.warnings = append(p.warnings, p.errorAt(n, format, args...))
}
