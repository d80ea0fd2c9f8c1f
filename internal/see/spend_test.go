package see

import (
	"slices"
	"testing"

	"hindsight/internal/browsertest"
	"hindsight/pkg/learner"
)

// spend shows a process how a learner keeps two budgets: in rounds 100 to 1,000 each costs 0.0039, of at most 0.0005,
// and has a quality of 0.875, of at least 0.8.
func spend(w *world) {
	cost, good := learner.Budget{Name: "cost", Mean: .0005}, learner.Budget{Name: "good", Mean: .8, AtLeast: true}
	for n := int64(100); n <= 1000; n += 30 {
		w.see.live.Load().scope.Spends(1<<40+n, []learner.Spending{
			{Budget: &cost, Price: float64(n) / 1e4, Costs: n, Mean: 1.0 / 256, Expected: .0006},
			{Budget: &good, Price: .25, Costs: n, Mean: .875, Expected: .875}})
	}
}

func TestStateBudgets(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n")
	if b := w.state().Budgets; b == nil || len(b) != 0 {
		t.Errorf("of a model without budgets: %+v", b)
	}
	spend(w)
	b := w.state().Budgets
	if len(b) != 2 || b[0].Name != "cost" || b[0].Limit != .0005 || b[0].AtLeast || *b[0].Price != .1 ||
		b[0].Rounds != 1000 || *b[0].Mean != 1.0/256 || *b[0].Next != .6 || !b[0].Missed || len(b[0].Points) != 30 ||
		*b[0].Points[29].Price != .1 {
		t.Errorf("%+v", b)
	}
	if !b[1].AtLeast || b[1].Missed {
		t.Errorf("%+v", b[1])
	}
}

// The page shows each budget with its limit, and draws costs and prices.
func TestBrowserBudgets(t *testing.T) {
	b := browsertest.Start(t)
	w := newWorld(t, "window: 20 rounds\n")
	p := b.Open(t, w.url+"/")
	p.Wait(`document.body.dataset.looks > 1 && document.getElementById("budgets").hidden`)
	spend(w)
	p.Wait(`drawn.budget?.data[1].length == 30 && drawn["budget-1"]?.data[1].length == 30`)
	titles := browsertest.Eval[[]string](p, `[...document.querySelectorAll("#budgets h2")].map((e) => e.textContent)`)
	if want := []string{"Budget: cost", "Budget: good"}; !slices.Equal(titles, want) {
		t.Errorf("charts of %q, want %q", titles, want)
	}
	cells := browsertest.Eval[[]string](p, `[...document.querySelectorAll("#budget-table td")].map((e) => e.textContent)`)
	if want := []string{"cost", "≤ 0.0005", "0.00391", "0.00391 ± 0", "0.6", "0.1", "good", "≥ 0.8", "0.875",
		"0.875 ± 0", "875",
		"0.25"}; !slices.Equal(cells, want) {
		t.Errorf("the table says %q, want %q", cells, want)
	}
	p.Picture("page-budgets")
	for _, f := range p.Accessible("page") {
		t.Error(f)
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}
