package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream/mem"
)

// namedModel is a model file with a cost that comes soon and a quality that comes late.
func namedModel(version int, rest string) string {
	return fmt.Sprintf("name: m\nversion: %d\nactions: [a, b, c]\noutcomes: {cost: {max: 2, window: 4 rounds}, "+
		"quality: {window: 9 rounds}}\nbaseline: {fixed: b}\nguard: {worse_by: 0.9, alpha: 0.1}\n"+
		"candidates: [uniform]\n%s\n", version, rest)
}

// TestNamedKeep: a learner goes on with other formulas, constants and budgets, across restarts; what was learned of
// outcomes stays, and so does the evidence of guard and candidates, prices are in the decisions, and the log verifies.
// A formula that is learned as one number, and another range, need a new learner.
func TestNamedKeep(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), namedModel(1, "reward: quality"))
	defer s.shut()
	s.named, s.worse, s.rng = true, "b", rand.New(rand.NewPCG(5, 1))
	s.rounds(120)
	const keep = "\nwarm: keep"
	const budget = "\nbudget: {spend: {of: usd*cost, mean_at_most: %s, about: {a: 0.4, b: 1}}}"
	for i, text := range []string{
		"reward: quality - 0.2*usd*cost\nconstants: {usd: 0.5}",
		"reward: quality - 0.2*cost\nconstants: {usd: 1}" + fmt.Sprintf(budget, "0.5"),
		"reward: quality\nconstants: {usd: {a: 1, b: 2, c: 1}}" + fmt.Sprintf(budget, "0.8"),
	} {
		before := s.j.Epoch()
		src := s.source(namedModel(2+i, text+keep))
		_, err := s.j.Renew(s.ctx, src)
		s.no(err)
		s.jc.Source = src
		s.pump()
		from := s.read
		if s.rounds(30); i == 1 {
			s.open()
		}
		late, priced := false, 0
		for _, d := range s.decisions(from) {
			if d.Epoch <= before {
				continue
			}
			late = late || d.Propensities[0] < .3 && d.Propensities[1] < .3 // of three, a law that was learned
			if len(d.Prices) == 1 && d.Prices[0] == (codec.Price{Name: "spend", X: d.Prices[0].X}) {
				priced++
			}
		}
		if !late || (priced > 0) != (i > 0) {
			t.Errorf("version %d: a learned law %v, %d decisions with a price", 2+i, late, priced)
		}
	}
	for text, want := range map[string]string{
		namedModel(9, "reward: quality*quality"+keep): "reward differs: " +
			"it has \"cost in [0, 2]; quality in [0, 1]\"",
		strings.Replace(namedModel(9, "reward: quality"+keep), "max: 2", "max: 3", 1): "reward differs",
		strings.Replace(namedModel(9, "reward: quality"+keep), "cost:", "usd:", 1):    "reward differs",
		"name: m\nversion: 9\nactions: [a, b, c]\nwarm: keep":                         "loss differs",
	} {
		if _, err := s.j.Renew(s.ctx, s.source(text)); !errors.Is(err, follow.ErrModel) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	s.end()
	if r := s.verify(); r.ExitCode() != Identical || r.Epochs.Records != 4 {
		t.Fatalf("does not verify: %+v\n%+v", r.First, r)
	}
	if want, got := s.fromStart(), s.fromSnapshot(); !bytes.Equal(want, got) {
		t.Error("a restart from a snapshot has another state than one from the start")
	}
}
