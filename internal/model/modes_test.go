package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// drawModes draws the keys of who decides, for a valid model.
func drawModes(t *rapid.T, m *Model) {
	m.Mode = codec.Mode(rapid.IntRange(0, 3).Draw(t, "mode"))
	m.Baseline.Kind = loop.BaselineKind(rapid.IntRange(0, 3).Draw(t, "baseline"))
	if m.Baseline.Kind == loop.FixedAction {
		if m.Baseline.Action = "else"; m.Actions != nil {
			m.Baseline.Action = m.Actions[0]
		}
	}
	if len(m.Actions) > 1 && rapid.Bool().Draw(t, "mask") {
		m.Masked = []string{m.Actions[1]}
	}
	if rapid.Bool().Draw(t, "guard") {
		m.Guard = loop.GuardRules{Margin: rapid.Float64Range(0, .9).Draw(t, "margin"),
			Alpha: rapid.Float64Range(1e-9, .5).Draw(t, "alpha"), Then: codec.Mode(rapid.IntRange(0,
				3).Draw(t, "then"))}
		m.Guard.LoseAtMost = .02
		if m.holdProblems(func(string, string, ...any) { m.Guard.LoseAtMost = 0 }); m.Guard.LoseAtMost > 0 {
			m.Guard.LoseAtMost = rapid.Float64Range(0, .9).Draw(t, "lose at most")
		}
	}
	if m.Guard.LoseAtMost == 0 {
		m.HoldOut = rapid.Float64Range(0, .5).Draw(t, "hold out")
	}
	if !m.Arrival && !m.Early && rapid.Bool().Draw(t, "candidates") {
		m.Candidates = []loop.Candidate{{Kind: loop.LearnerCandidate}, {Kind: loop.AlwaysCandidate, Action: "else"}}
		if m.Actions != nil {
			m.Candidates[1].Action = m.Actions[0]
		}
		if rapid.Bool().Draw(t, "promote") {
			m.Promote = loop.Promotion{Of: m.Candidates[1], BetterBy: rapid.Float64Range(0, .9).Draw(t, "better"),
				Alpha: rapid.Float64Range(1e-9, .5).Draw(t, "alpha"), Share: 1}
			if m.Guard.LoseAtMost == 0 && rapid.Bool().Draw(t, "share") {
				m.Promote.Of, m.Promote.Switch, m.Promote.Share = m.Candidates[0], true, rapid.Float64Range(.5,
					1).Draw(t, "of")
			}
		}
	}
}

const hedgeGuard = "oracle: {kind: hedge, class: c.jsonl}\nguard: {lose_at_most: .02}\n"

func TestModeErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"mode: off", `mode: expected live | shadow | apprentice | paused, found "off"`},
		{"baseline: firts",
			`baseline: expected first | uniform | context | {fixed: NAME}, found "firts" (did you mean "first"?)`},
		{"baseline: fixed", "baseline: fixed takes the name of an action"},
		{"baseline: {uniform: 3}", "baseline: fixed takes the name of an action and the others nothing"},
		{"actions: [a, b]\nbaseline: {fixed: c}", `baseline: fixed plays "c", which is not in actions`},
		{"actions: [a, b]\nmasked: [c]", `masked: "c" is not in actions`},
		{"actions: [a, b]\nmasked: [b, a]", "masked: no action is left"},
		{"masked: 3", "masked: expected none or a list of names"},
		{"guard: on", "guard: expected none, or some of worse_by, alpha, then, lose_at_most, found \"on\"; " +
			"for example: guard: {worse_by: 0.02, alpha: 0.01, then: alarm}"},
		{"guard: {alpha: 0}", "m.yaml:1:16: guard.alpha: expected a level in (0, 0.5], found 0"},
		{"guard: {worse_by: 1}", "guard.worse_by: expected a loss, on the scale where 1 is worst, in [0, 1), found 1"},
		{"guard: {lose_at_most: 1}",
			"guard.lose_at_most: expected a share of the baseline's gain, 0 for off, in [0, 1)"},
		{"guard: {lose_at_most: .02}", "guard: lose_at_most needs a theorem on the error of predictions: use " +
			"learner: dafa"},
		{hedgeGuard + "certificate: none", "guard: lose_at_most needs a theorem"},
		{hedgeGuard + "learner: greedy", "guard: lose_at_most needs a theorem"},
		{hedgeGuard + "order: arrival", "guard: lose_at_most needs outcomes in the order of decisions"},
		{hedgeGuard + "early: median", "guard: lose_at_most bounds the error of what final outcomes taught"},
		{"oracle: {kind: hedge, class: c.jsonl}\nguard: {lose_at_most: .02, alpha: 0.0001}",
			"guard: lose_at_most: alpha is 0.0001, and what the certificate refutes at a level below"},
		{"actions: [a, b]\nfeatures: {x: bool}\noracle: {kind: ridge, certified: true}\nmissing: impute\n" +
			"default_loss: 1\nguard: {lose_at_most: .02}", "guard: lose_at_most with ridge needs losses that were " +
			"observed"},
		{"candidates: [greedy]",
			`candidates: expected baseline | uniform | learner | {always: ACTION} | {policies: FILE}, found ` +
				`"greedy"`},
		{"candidates: [policies]", `found "policies"`},
		{"candidates: [{policies: [a]}]", "candidates: expected a parameter, found a list"},
		{"candidates: [{policies: ''}]", "candidates: the name of the file is empty"},
		{"candidates: [{policies: p}]\npromote: {of: {policies: q}}", "promote: policies:q is not in candidates"},
		{"candidates: [{policies: p}]\npromote: {of: {policies: p}, only: switch}",
			"promote: policies:p is in no mode"},

		{"candidates: [{model: other.yaml}]", "replayer backtest --data LOG --policy model:other.yaml"},
		{"candidates: [{learner: greedy}]", "replayer backtest --data LOG --policy learner:greedy"},
		{"candidates: [always]", "candidates: always takes the name of an action"},
		{"candidates: [uniform, uniform]", "candidates: uniform is there twice"},
		{"candidates: uniform", "candidates: expected none or a list of 1 to 16 policies"},
		{"actions: [a, b]\ncandidates: [{always: c}]", `candidates: always plays "c", which is not in actions`},
		{"candidates: [uniform]\norder: early", "candidates: they are judged in the order of decisions"},
		{"candidates: [uniform]\npromote: {of: baseline}", "promote: baseline is not in candidates; add it there"},
		{"candidates: [uniform]\npromote: {of: uniform, only: switch}", "promote: uniform is in no mode"},
		{"candidates: [uniform]\npromote: {of: uniform, only: ask}", "promote.only: expected tell | switch"},
		{"guard: {lose_at_most: 0.02}\nhold_out: 0.1", "hold_out: it does not go with guard: {lose_at_most: …}"},
		{"guard: {lose_at_most: 0.02}\ncandidates: [learner]\npromote: {of: learner, only: switch, share: 0.9}",
			"hold_out: it does not go with guard: {lose_at_most: …}"},
		{"candidates: [learner]\npromote: {of: learner, share: 0.5}", "needs of: learner and only: switch"},
		{"candidates: [baseline]\npromote: {of: baseline, only: switch, share: 0.5}", "needs of: learner and " +
			"only: switch"},
		{"guard: {then: live}", "guard.then: expected alarm | shadow | apprentice | paused"},
	} {
		if _, err := Parse("m.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// A file without these keys is what it was: its canonical form has none of them.
func TestModesAreLeftOut(t *testing.T) {
	m, err := Parse("m.yaml", []byte("mode: live\nbaseline: first\nmasked: none\nguard: none"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.Canonical()), string(Default().Canonical()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
