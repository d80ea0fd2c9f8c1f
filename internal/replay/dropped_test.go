package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
)

// TestDroppedByHand: three rows stand for 2, 1 and 4 events. The learner that plays x meets
// the first, of weight 2/½ = 4 and loss 1, and the third, of weight 4/¼ = 16 and loss 0.
func TestDroppedByHand(t *testing.T) {
	const text = `{"action":"x","actions":["x","y"],"propensity":0.5,"loss":1,"weight":2}
{"action":"y","actions":["x","y"],"propensity":0.5,"loss":1}
{"action":"x","actions":["x","y"],"propensity":0.25,"loss":0,"weight":4}
`
	log := readEvents(t, text, dataset.Options{}, logs.Options{})
	want := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	r := replayOf(t, log, "fixed:x", 1)
	m := 4. / 7 // terms 4 − 2m, −m and −4m
	want("mean loss", *r.MeanLoss, 2./6)
	want("IPS", float64(r.Replay.IPS.Value), m)
	want("IPS se", float64(r.Replay.IPS.SE), math.Sqrt(((4-2*m)*(4-2*m)+17*m*m)*3/2)/7)
	want("SNIPS", float64(r.Replay.SNIPS.Value), 4./20)
	want("ESS", float64(r.Replay.ESS), 400./272)

	if notes := strings.Join(log.Intake.Notes(), "\n"); !strings.Contains(notes, "(pdrop): 2;") {
		t.Errorf("notes %q", notes)
	}
	d, err := FitData(log, FitOptions{Columns: 5})
	if err == nil || d != nil { // there is no feature
		t.Fatal("fitted to nothing")
	}
	b := fitBuilder{env: log}
	for i, weight := range []float64{4, 2, 16} {
		_, got := b.losses(i)
		want(fmt.Sprintf("weight of row %d in a fit", i), got, weight)
	}
}

// TestDroppedAreMet: of context u three events in four were dropped. What a learner meets by
// rejection sampling has as much of it as the log had before; what every match shows it
// has not.
func TestDroppedAreMet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var text strings.Builder
	for range 4000 {
		x, action, weight := "v", rng.IntN(2), 1
		if rng.IntN(2) == 0 {
			if x, weight = "u", 4; rng.IntN(4) > 0 {
				continue
			}
		}
		fmt.Fprintf(&text,
			`{"features":{"x":%q},"action":"%d","actions":["0","1"],"propensity":0.5,"loss":%d,"weight":%d}`+"\n", x,
			action, rng.IntN(2), weight)
	}
	for c, want := range map[float64]float64{0: .5, 1: .2} {
		env, err := Accepting(readEvents(t, text.String(), dataset.Options{}, logs.Options{}), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		log := env
		met, u, least, most := 0., 0., math.Inf(1), 0.
		for i := range log.n {
			if !log.table.Played(i, log.table.Slot(i)) {
				continue
			}
			met++
			least, most = min(least, log.table.Weight(i)), max(most, log.table.Weight(i))
			if log.table.Text(i, "x") == "u" {
				u++
			}
		}
		if share := u / met; math.Abs(share-want) > 4*math.Sqrt(.25/met) || c == 0 && least != most {
			t.Errorf("accept %v: a share of %.3f of u among %v, want %v; weights from %v to %v", c, share, met, want,
				least, most)
		}
	}
}

// TestDroppedInJournal: what rows stand for is part of what a result depends on, with
// propensities and without.
func TestDroppedInJournal(t *testing.T) {
	for _, propensity := range []string{"", `"propensity":0.5,`} {
		seen := map[string]bool{}
		for weight := 2; weight < 5; weight++ {
			text := fmt.Sprintf(`{"action":"x","actions":["x","y"],%s"loss":1,"weight":%d}`, propensity, weight)
			seen[readEvents(t, text+"\n", dataset.Options{}, logs.Options{}).Digest()] = true
		}
		if len(seen) != 3 {
			t.Errorf("%d digests of 3 logs", len(seen))
		}
	}
}
