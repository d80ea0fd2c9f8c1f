package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// adsLog is dsjson in which every round has three new ads, of which the cheap ones earn; half
// of the events were dropped, and most name a baseline: the second ad.
func adsLog(n int) string {
	rng := rand.New(rand.NewPCG(4, 4))
	var b strings.Builder
	for i := range n {
		played, ba := rng.IntN(3), `"_ba":[2],`
		if i%10 == 0 {
			ba = ""
		}
		var actions []string
		price := [3]float64{rng.Float64(), rng.Float64(), rng.Float64()}
		for a, p := range price {
			actions = append(actions, fmt.Sprintf(`{"_tag":"ad%d-%d","ad":{"price":%.3f}}`, i, a, p))
		}
		reward := 0
		if rng.Float64() > price[played] {
			reward = 1
		}
		fmt.Fprintf(&b,
			`{"_label_cost":%d,"_label_probability":0.25,"_label_Action":%d,"o":[{"v":%d}],"EventId":"e%d","a":[%d],`+
				`"p":[0.25],"pdrop":0.5,%s"c":{"u":{"hour":%d},"_multi":[%s]}}`+"\n",
			-reward, played+1, reward, i, played+1, ba, i%24, strings.Join(actions, ","))
	}
	return b.String()
}

// TestFitFeatures: a class over features of actions is fitted from dsjson, written, and
// played by the model that names it; what the flag cannot do is said.
func TestFitFeatures(t *testing.T) {
	dir := t.TempDir()
	log, class, m := filepath.Join(dir, "ads.json"), filepath.Join(dir, "ads.class.jsonl"), filepath.Join(dir, "m.yaml")
	for name, text := range map[string]string{log: adsLog(300),
		m: "name: ads\noracle: {kind: hedge, class: ads.class.jsonl}\nwindow: 20 rounds\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := object(t, "fit", "--data", log, "--fit-rows", "200", "--functions", "4", "--out", class, "--json")
	if number(t, o, "actions") != 0 || number(t, o, "action_columns") != 1 || number(t, o, "columns") != 1 ||
		len(need(t, o, "played").([]any)) != 2 {
		t.Errorf("%v", o)
	}
	o = object(t, "backtest", "--data", log, "--model", m, "--json")
	if len(need(t, o, "runs").([]any)) != 1 || number(t, o, "intake.weighted") != 300 ||
		number(t, o, "estimators.events") != 600 {
		t.Errorf("%v", o)
	}
	if p := need(t, o, "policies").([]any); need(t, p[2].(map[string]any), "policy") != "baseline" ||
		!strings.Contains(fmt.Sprint(need(t, p[2].(map[string]any), "flags")), "30 of 300 rows name no "+
			"baseline action") {
		t.Errorf("%v", p[2])
	}
	for want, args := range map[string]string{
		"expected names, features or auto":         "--over both",
		"--action-columns 0":                       "--action-columns 0",
		"the actions of sigmoid":                   "--over features",
		"is known in none":                         "--over names --data " + log,
		"have features, which a class over names ": "--over names --fit-rows 100 --data " + log,
	} {
		if got := execute(t.Context(), append([]string{"fit", "--out", class},
			strings.Fields(args)...)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
