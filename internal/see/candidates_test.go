package see

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hindsight/internal/browsertest"
)

// The page shows each candidate with its interval, draws its course, and says that the rule holds.
func TestBrowserCandidates(t *testing.T) {
	b := browsertest.Start(t)
	plain := newWorld(t, "window: 20 rounds\n")
	p := b.Open(t, plain.url+"/")
	p.Wait(`document.body.dataset.looks > 1 && document.getElementById("candidates").hidden`)
	w := newWorld(t, "window: 20 rounds\nlearner: uniform\ncandidates: [{always: red}, {always: blue}]\n"+
		"promote: {of: {always: red}, better_by: 0.1}\n")
	p = b.Open(t, w.url+"/")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 4 {
		for range 100 {
			id, action := w.ask(r)
			w.report(`{"id":%q,"loss":%d}`, id, map[string]int{"blue": 1, "none": 1}[action])
		}
		w.until("rounds", func(s *state) bool { return s.Candidates != nil && s.Candidates.Rounds == int64(i+1)*100 })
	}
	p.Wait(`document.querySelector("#candidates-table td:nth-child(2)")?.textContent === "400" && ` +
		`drawn.candidates?.data[1].length > 3 && /the rule has held since feedback/.test(` +
		`document.getElementById("candidates-says").textContent)`)
	cells := browsertest.Eval[[]string](p,
		`[...document.querySelectorAll("#candidates-table td")].map((e) => e.textContent)`)
	if len(cells) != 10 || cells[0] != "always:red" || cells[1] != "400" || cells[4] != "better than the "+
		"played actions" || !slices.Contains(cells, "beaten") {
		t.Errorf("the table says %q", cells)
	}
	if !browsertest.Eval[bool](p, `(([, mean, low, high]) => mean.every((y, i) => low[i] <= y && y <= high[i]))`+
		`(drawn.candidates.data)`) {
		t.Error("an estimate is drawn outside its interval")
	}
	p.Picture("page-candidates")
	for _, f := range p.Accessible("page") {
		t.Error(f)
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}
