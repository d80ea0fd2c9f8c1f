package replay

import (
	"strings"
	"testing"

	"hindsight/internal/dataset"
	classes "hindsight/internal/fit"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
)

// TestFitSharedData: a row is that of the action that was played, with its columns behind
// the context's; columns are those of all actions that could be played and that differ
// among them, and names only where the actions are always the same.
func TestFitSharedData(t *testing.T) {
	const changing = `{"features":{"h":2},"actions":[{"name":"a","features":{"p":1,"one":1,"k":"u"}},{"name":"b",` +
		`"features":{"p":2,"one":1}}],"action":"b","propensity":0.5,"loss":1}
{"features":{"h":3},"actions":[{"name":"c","features":{"p":3,"one":1,"k":"u"}}],"action":"c","propensity":0.25,` +
		`"loss":0,"weight":2}
{"features":{"h":4},"actions":["c"],"action":"c","propensity":1}
`
	o := FitOptions{Columns: 9, Shared: 9}
	d, err := FitData(readEvents(t, changing, dataset.Options{}, logs.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, []any{d.Features, d.ActionFeatures, d.Actions, d.X, d.Loss,
		d.Weight}); got != `[["h"],["k=u","one","p"],null,[[2,0,1,2],[3,1,1,3]],[[1],[0]],[2,8]]` {
		t.Errorf("%s", got) // one is not there in the third row
	}
	same := strings.ReplaceAll(changing[:strings.Index(changing, "\n")+1], `"p":2,`, "")
	d, err = FitData(readEvents(t, same+same, dataset.Options{}, logs.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, []any{d.ActionFeatures, d.X}); got != `[["=a","=b","k=u","p"],[[2,0,1,0,0],[2,0,1,0,0]]]` {
		t.Errorf("%s", got)
	}
	if _, err := FitData(worldLog(t, 1, 5), o); err != nil {
		t.Errorf("names alone are columns of actions that are always the same: %v", err)
	}
	if _, err := FitData(readEvents(t, strings.Repeat(`{"actions":["c"],"action":"c","loss":0}`+"\n", 2),
		dataset.Options{}, logs.Options{}), o); err == nil {
		t.Error("of one action without features nothing can be told apart")
	}
}

// TestFitShared: where the actions of every round are new, a class over their features,
// loaded by the Hedge oracle of a model, finds the good ones at once; a class over names
// cannot be fitted.
func TestFitShared(t *testing.T) {
	log := readEvents(t, freshActions(700), dataset.Options{}, logs.Options{Format: logs.Dsjson})
	d, err := FitData(log, FitOptions{Rows: 200, Columns: 9, Shared: 9})
	if err != nil {
		t.Fatal(err)
	}
	o := classes.Defaults()
	o.Functions = 6
	c, err := classes.Fit(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	rest := Tail(log, 200)
	m, _ := ModelFor(rest, "m", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 20})
	m.Oracle = model.Oracle{Kind: model.Hedge, Eta: .5, Class: "c"}
	m.Resolve(rest.Columns, len(rest.Actions))
	r, err := (&Trial{Rounds: rest.For(m), Delays: none(t, rest), Model: m,
		Files: map[string][]byte{"c": c.File.Append(nil)}, Seed: 1}).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if loss := float64(r.Replay.SNIPS.Value); loss > .2 {
		t.Errorf("the class loses %v; at random it would be ⅔", loss)
	}
	if d, err := FitData(log, FitOptions{Rows: 200, Columns: 9}); err == nil {
		if _, err = classes.Fit(t.Context(), d, o); err == nil {
			t.Error("functions of 2,100 names were fitted to 200 rows")
		}
	}
}
