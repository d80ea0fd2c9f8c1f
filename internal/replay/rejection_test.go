package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/world"
)

// replayOf plays a learner on a log.
func replayOf(t testing.TB, env *Rounds, learner string, seed uint64) *Result {
	t.Helper()
	l, err := model.ParseLearner(learner)
	if err != nil {
		t.Fatal(err)
	}
	m, files := ModelFor(env, "m", l, loop.Window{Rounds: 10})
	trial := &Trial{Rounds: env, Delays: none(t, env), Model: m, Files: files, Label: learner, Seed: seed}
	r, err := trial.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func none(t testing.TB, env *Rounds) *delay.Delays {
	t.Helper()
	d, err := delay.Parse("none", env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReplayUnbiased: what replay says of the uniform learner is right on average over
// logs, with all matches and with rejection sampling; the plain mean of matched losses,
// which follows the logging policy, is not.
func TestReplayUnbiased(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	truth := 0.0
	for x := range worldMeans {
		for _, m := range worldMeans[x] {
			truth += m / 6
		}
	}
	logs := 120
	if testing.Short() {
		logs = 60
	}
	for _, c := range []float64{1, .2, 0} {
		var ips, snips, plain []float64
		for i := range logs {
			env, err := Accepting(worldLog(t, uint64(i), 400), c, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			r := replayOf(t, env, "uniform", uint64(i))
			ips, snips, plain = append(ips, float64(r.Replay.IPS.Value)), append(snips, float64(r.Replay.SNIPS.Value)),
				append(plain, *r.MeanLoss)
			if r.Replay.Rounds != *r.Matched || (c == 0 && math.Abs(float64(r.Replay.ESS)-float64(*r.Matched)) > 1e-6) {
				t.Fatalf("accept %v: %d accepted of %d, ESS %v", c, r.Replay.Rounds, *r.Matched, r.Replay.ESS)
			}
		}
		for name, values := range map[string][]float64{"IPS": ips, "SNIPS": snips} {
			if e := NewEstimate(values); math.Abs(e.Value-truth) > 2.5**e.SE || *e.SE > .05*truth {
				t.Errorf("accept %v: %s is %.4f ± %.4f, the truth is %.4f", c, name, e.Value, *e.SE, truth)
			}
		}
		if e := NewEstimate(plain); c == 1 && math.Abs(e.Value-truth) < 5**e.SE {
			t.Errorf("the plain mean is unbiased, too: %.4f ± %.4f: the test shows nothing", e.Value, *e.SE)
		}
	}
}

// TestReplayByHand: two of four rows match, with propensities ½ and ¼.
func TestReplayByHand(t *testing.T) {
	const text = "a,l,p\nx,1,.5\ny,1,.5\nx,0,.25\ny,,.5\nx,,.5\n"
	log, err := readLog("h.csv", strings.NewReader(text),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{Action: "a", Loss: "l", Propensity: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := replayOf(t, log, "fixed:x", 1)
	want := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	want("matched", float64(*r.Matched), 3)
	want("with an outcome", float64(r.Replay.Rounds), 2)
	want("ESS", float64(r.Replay.ESS), 36./20)
	want("IPS", float64(r.Replay.IPS.Value), 2./3)
	want("IPS se", float64(r.Replay.IPS.SE), math.Sqrt((4./3*4/3+2*4./9)/2/3))
	want("SNIPS", float64(r.Replay.SNIPS.Value), 2./6)
	want("SNIPS se", float64(r.Replay.SNIPS.SE), math.Sqrt(4*4./9+16./9)/6)
	if _, err := Accepting(log, 1.5, 1); err == nil {
		t.Error("accepted with 1.5")
	}
	if _, err := Accepting(OfWorld(world.NewSigmoid(1, 10, world.SigmoidOptions{})), .5, 1); err == nil {
		t.Error("an environment without propensities")
	}
}

// TestReplayOfUnitsByHand: rows of one unit are one term of an error. Of two units with two rows each, one loses 0 and
// the other 1, at weight 2; a row without a unit is its own, and so are all without units.
func TestReplayOfUnitsByHand(t *testing.T) {
	row := func(unit string, loss int) string {
		return fmt.Sprintf(`{"actions":["x","y"],"action":"x","propensity":0.5,"loss":%d%s}`+"\n", loss, unit)
	}
	u, v := `,"unit":"u"`, `,"unit":"v"`
	for name, c := range map[string]struct {
		text       string
		ips, snips float64 // standard errors
	}{
		"units": {row(u, 0) + row(v, 1) + row(u, 0) + row(v, 1), math.Sqrt((4+4)*2) / 4, math.Sqrt(4+4) / 8},
		"rows":  {row("", 0) + row("", 1) + row("", 0) + row("", 1), math.Sqrt(4*4./3) / 4, math.Sqrt(4*1) / 8},
		"both":  {row(u, 1) + row("", 1) + row(u, 0) + row("", 0), math.Sqrt((0+1+1)*3./2) / 4, math.Sqrt(0+1+1) / 8},
	} {
		r := replayOf(t, readEvents(t, c.text, dataset.Options{}, logs.Options{}), "fixed:x", 1).Replay
		if math.Abs(float64(r.SNIPS.SE)-c.snips) > 1e-12 || r.Rounds != 4 {
			t.Errorf("%s: SNIPS %v ± %v, want ± %v", name, r.SNIPS.Value, r.SNIPS.SE, c.snips)
		}
		if math.Abs(float64(r.IPS.SE)-c.ips) > 1e-12 {
			t.Errorf("%s: IPS %v ± %v, want ± %v", name, r.IPS.Value, r.IPS.SE, c.ips)
		}
	}
}
