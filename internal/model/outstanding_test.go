package model

import (
	"strings"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestEtaOutstanding holds the word in place of a learning rate: it is kept, is built, and is refused where nothing
// is proved of it.
func TestEtaOutstanding(t *testing.T) {
	const text = "oracle: {kind: hedge, class: f.jsonl, eta: outstanding}\n"
	m := mustParse(t, text)
	if again := mustParse(t, string(m.Canonical())); !again.Oracle.Outstanding || again.Oracle.Eta != .5 {
		t.Errorf("%s", m.Canonical())
	}
	if h := build(t, text).(*learner.DAFA).Oracle().(*oracle.Hedge); !h.Slows() {
		t.Error("the rate does not follow what is outstanding")
	}
	for _, wrong := range []string{"learner: greedy\n" + text, "learner: elimination\n" + text,
		"oracle: {kind: hedge, class: f.jsonl, eta: outstanding, substitution: vovk, unproved: true}",
		"explore: {paper: 100}\n" + text, "oracle: {kind: hedge, class: f.jsonl, eta: late}"} {
		if _, err := Parse("m.yaml", []byte(wrong)); err == nil || !strings.Contains(err.Error(), "eta: ") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
